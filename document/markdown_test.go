package document

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
)

// TestWindowsDoNotShow: a document of small blocks has the same tree whatever
// the size of the windows.
func TestWindowsDoNotShow(t *testing.T) {
	parts := []string{
		"# One *title*\n", "two\nlines\n===\n", "\nText\nover lines.\n\n", "- a\n  - b\n\n- c\n\n", "```\n# no heading\n\nx\n```\n",
		"\n    indented\n\n    code\n\n", "| a | b |\n|---|---|\n| 1 | 2 |\n\n", "> quote\nlazy\n\n", "<div>\n\n", "<!-- a\n\nb -->\n", "***\n",
	}
	for seed := range uint64(200) {
		random := rand.New(rand.NewPCG(seed, 0))
		var source strings.Builder
		for range 40 {
			source.WriteString(parts[random.IntN(len(parts))])
		}
		text, err := Normalize([]byte(source.String()))
		require.NoError(t, err)
		whole, err := parseWindows(text, len(text))
		require.NoError(t, err)
		for _, size := range []int{150, 200, 333} {
			windowed, err := parseWindows(text, size)
			require.NoError(t, err)
			if diff := cmp.Diff(whole, windowed); diff != "" {
				t.Fatalf("seed %d, size %d, of\n%s\n%s", seed, size, text, diff)
			}
		}
	}
}

// TestLongBlocks: fenced code longer than a window ends at its closing fence;
// other long blocks are cut, and nothing is lost.
func TestLongBlocks(t *testing.T) {
	long := strings.Repeat("a | b\n", 100)
	for _, fence := range []string{"```", "~~~~"} {
		text := fmt.Sprintf("%s go\n%s```x\n\n  %s\n# After", fence, long, fence)
		doc, err := parseWindows(text, 100)
		require.NoError(t, err)
		require.NoError(t, Check(doc))
		require.Len(t, doc.Blocks, 2)
		require.Equal(t, Code, doc.Blocks[0].Kind)
		require.Equal(t, "After", doc.Title)
	}
	for _, text := range []string{"```\n" + long, long, "a | b\n---|---\n" + long, "- " + long, strings.Repeat("    code\n", 100)} {
		text = strings.TrimSpace(text)
		doc, err := parseWindows(text, 100)
		require.NoError(t, err)
		require.NoError(t, Check(doc))
		require.NotEmpty(t, doc.Blocks)
	}
}

// TestNestingIsBounded: containers beyond the limit are text, in every format
// that has any.
func TestNestingIsBounded(t *testing.T) {
	for format, source := range map[string]string{
		"markdown": strings.Repeat("> - ", 1000) + "deep\n",
		"html":     strings.Repeat("<blockquote><ul><li>", 100_000) + "deep",
	} {
		doc, err := Parse(format, []byte(source))
		require.NoError(t, err)
		require.NoError(t, Check(doc))
		require.LessOrEqual(t, nesting(doc.Blocks), 2*maxNesting)
		require.Contains(t, doc.Text, "deep")
	}
}

func nesting(blocks []*Block) int {
	deepest := 0
	for _, b := range blocks {
		deepest = max(deepest, 1+nesting(b.Children))
	}
	return deepest
}
