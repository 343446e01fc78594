package chunk

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestSentence(t *testing.T) {
	for _, sentences := range [][]string{
		{"One. ", "Two! ", "Three? ", "Four… ", "Five"},
		{"It costs 2.5 dollars, e.g. in May, etc. and more. ", "Then 3."},
		{"By J. R. Doe. ", "See section 5. Then more. ", "End."},
		{`He said "Yes." `, `(She did.) `, "**Bold.** ", "End"},
		{"Wrapped\nline.\n", "Next"},
		{"一つ。", "二つ！", "「三つ？」", "四"},
		{"x.)\"'*_ Y"}, // more closing marks than a sentence has
		{"no end at all"},
	} {
		rest := strings.Join(sentences, "")
		for _, want := range sentences {
			got := rest[:sentence(rest)]
			require.Equal(t, strings.TrimSpace(want), strings.TrimSpace(got), "of %q", rest)
			rest = rest[len(got):]
		}
		require.Empty(t, strings.TrimSpace(rest))
	}
}

func TestWordAndLine(t *testing.T) {
	require.Equal(t, len("  one "), word("  one  two"))
	require.Equal(t, len("one\u3000"), word("one\u3000two"))
	require.Equal(t, 3, word("one"))
	require.Equal(t, 2, word("  "))
	require.Equal(t, 2, line("a\nb"))
	require.Equal(t, 1, line("b"))
}

func TestMeasure(t *testing.T) {
	for text, want := range map[string]size{
		"":                   {0, 0},
		"one two":            {2, 2},
		"abcdef abcdefg":     {2, 3},
		"a-b, c.":            {2, 6},
		"日本 語です":             {5, 5},
		"v2日x":               {3, 3},
		"приветы":            {1, 3}, // 14 bytes
		"| --- |":            {3, 5},
		"e\u0301e\u0301 \tz": {2, 2},
	} {
		require.Equal(t, want, measure(text, usual), "%q", text)
	}
}

func TestBudgetLeavesHalf(t *testing.T) {
	require.Equal(t, usual, usual.beside(nil))
	require.Equal(t, maxPieces-3, usual.beside([]string{"One two", "Three"}).pieces)
	require.Equal(t, maxPieces/2, usual.beside([]string{strings.Repeat("word ", 200)}).pieces)
}

func TestMeasureAllocatesNothing(t *testing.T) {
	text := strings.Repeat("Some words, 日本語 too. ", 20)
	require.Zero(t, testing.AllocsPerRun(100, func() { measure(text, usual) }))
}
