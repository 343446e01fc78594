package ground

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// A sentence of which a source has exactly half stands each time, in whatever order
// its words are added up.
func TestWeightsAddUpExactly(t *testing.T) {
	l := language(t, "english")
	var shown []*Source
	for _, text := range []string{"alpha bravo delta echo foxtrot.", "bravo golf delta echo hotel foxtrot india.", "delta echo hotel foxtrot india juliet.", "echo foxtrot india juliet.", "kilo foxtrot juliet.", "lima."} {
		shown = append(shown, NewSource([]Section{{"", text}}, l))
	}
	c := NewContext("", shown, l)
	for range 1000 {
		require.Empty(t, shown[0].Faults("alpha bravo delta kilo hotel juliet", c))
	}
}
