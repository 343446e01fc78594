package pdf

import (
	"testing"

	"github.com/stretchr/testify/require"

	"sluice/document"
)

// letter stands from left to right, on a line of height 8.
func letter(r rune, left, right float64) char {
	return char{r, document.Box{Left: left, Right: right, Bottom: 8}}
}

// Text ends where a wide gap follows or the next letter stands further back, but
// not at an accent, a glyph of several letters, or a script from the right.
func TestGapAfter(t *testing.T) {
	for name, c := range map[string]struct {
		chars []char
		end   int
	}{
		"one after the other": {[]char{letter('a', 0, 5), letter('b', 5, 10)}, 2},
		"a wide gap":          {[]char{letter('a', 0, 5), letter('b', 13, 18)}, 1},
		"a step back":         {[]char{letter('a', 0, 5), letter('b', 5, 10), letter('c', 1, 6)}, 2},
		"kerned":              {[]char{letter('T', 0, 5), letter('o', 4, 9)}, 2},
		"an accent":           {[]char{letter('´', 1, 4), letter('e', 0, 5)}, 2},
		"a wide ligature":     {[]char{letter('f', 0, 9), letter('f', 0, 9), letter('i', 0, 9)}, 3},
		"from the right":      {[]char{letter('א', 20, 25), letter('ב', 15, 20)}, 2},
	} {
		require.Equal(t, c.end, gapAfter(c.chars, 0, 7), name)
	}
}

// A letter without extent is not to be seen; a space may have none.
func TestWhatHasNoExtentIsNoText(t *testing.T) {
	text, box := textOfChars([]char{letter('a', 0, 5), letter(' ', 5, 5), letter('f', 7, 7), letter('b', 7, 12)})
	require.Equal(t, "a b", text)
	require.Equal(t, document.Box{Right: 12, Bottom: 8}, box)
}
