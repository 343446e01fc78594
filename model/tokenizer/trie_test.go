package tokenizer

import (
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestTrieIsAMap(t *testing.T) {
	key := rapid.OneOf(rapid.StringOfN(rapid.SampledFrom([]rune("ab\x00é")), 1, 6, -1), rapid.StringN(1, 8, -1))
	rapid.Check(t, func(t *rapid.T) {
		entries := rapid.MapOf(key, rapid.Int32Min(0)).Draw(t, "entries")
		text := rapid.OneOf(key, rapid.String()).Draw(t, "text")
		want, length := int32(noValue), 0
		for k, v := range entries {
			if strings.HasPrefix(text, k) && len(k) > length {
				want, length = v, len(k)
			}
		}
		if got, n := newTrie(entries).longest(root, text); got != want || n != length {
			t.Fatalf("longest: %d, %d bytes; want %d, %d", got, n, want, length)
		}
	})
}

// TestTrieIsCompact holds the build to a good use of its array.
func TestTrieIsCompact(t *testing.T) {
	for _, model := range wordPieces {
		nodes := load(t, model).model.(*wordPiece).pieces.nodes
		used := 0
		for _, n := range nodes {
			if n != freeNode {
				used++
			}
		}
		if used*10 < len(nodes)*8 {
			t.Errorf("%s: %d of %d nodes used", model, used, len(nodes))
		}
		t.Logf("%s: %d of %d nodes used", model, used, len(nodes))
	}
}
