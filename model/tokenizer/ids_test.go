package tokenizer

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestEncodeIDsEqualsEncode(t *testing.T) {
	for _, name := range []string{"bert_uncased", "bpe_roberta", "unigram_precompiled"} {
		tok, err := Load("testdata/" + name + "/tokenizer.json")
		require.NoError(t, err)
		for _, text := range []string{"", "a", "The quick brown fox, 12 dogs — and ünïcode 漢字", "x[SEP]y</s>z"} {
			for _, o := range []Options{{}, {MaxLength: 6}, {MaxLength: 6, TruncateLeft: true}, {NoSpecialTokens: true}} {
				var bare, want, got Encoding
				require.NoError(t, tok.Encode(&bare, text, Options{NoSpecialTokens: true}))
				require.NoError(t, tok.Encode(&want, text, o))
				given := [][]int32{bare.IDs}
				if !o.NoSpecialTokens { // what Encode adds may be there already
					var whole Encoding
					require.NoError(t, tok.Encode(&whole, text, Options{}))
					given = append(given, whole.IDs)
				}
				for _, ids := range given {
					before := slices.Clone(ids)
					require.NoError(t, tok.EncodeIDs(&got, ids, o))
					require.Equal(t, want.IDs, got.IDs, "%s %q %+v", name, text, o)
					require.Equal(t, want.TypeIDs, got.TypeIDs)
					require.Equal(t, want.Special, got.Special)
					require.Equal(t, want.Cut, got.Cut)
					require.Equal(t, before, ids)
				}
			}
		}
	}
}

func TestEncodeIDsRefusesUnknown(t *testing.T) {
	tok, err := Load("testdata/bert_uncased/tokenizer.json")
	require.NoError(t, err)
	for _, id := range []int32{-1, int32(tok.VocabSize())} {
		var e Encoding
		require.ErrorIs(t, tok.EncodeIDs(&e, []int32{100, id}, Options{}), ErrUnknownID)
	}
	var e Encoding
	require.ErrorIs(t, tok.EncodeIDs(&e, []int32{2054}, Options{MaxLength: 1}), ErrCannotTruncate)
}
