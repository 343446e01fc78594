package milvus

import (
	"errors"
	"testing"

	"github.com/milvus-io/milvus-sdk-go/v2/client"
	"github.com/milvus-io/milvus-sdk-go/v2/entity"
	"github.com/stretchr/testify/require"
)

// An answer that is not what was asked for is an error that names the fault and the
// way out, and no type of Go's.
func TestAnswers(t *testing.T) {
	rows := entity.NewColumnInt64("row", []int64{7, 9})
	whole := client.SearchResult{ResultCount: 2, IDs: rows, Scores: []float32{.5, .25}}
	hits, err := hitsOf([]client.SearchResult{whole, {}}, 2)
	require.NoError(t, err)
	require.Equal(t, [][]found{{{7, .5}, {9, .25}}, nil}, hits)
	hits, err = hitsOf(nil, 2)
	require.NoError(t, err)
	require.Equal(t, [][]found{nil, nil}, hits)

	failed := errors.New("injected")
	_, err = hitsOf([]client.SearchResult{whole, {Err: failed, ResultCount: 1}}, 2)
	require.ErrorIs(t, err, failed)
	for name, results := range map[string][]client.SearchResult{
		"one of two":    {whole},
		"other ids":     {whole, {ResultCount: 1, IDs: entity.NewColumnVarChar("row", []string{"7"}), Scores: []float32{.5}}},
		"scores enough": {whole, {ResultCount: 2, IDs: rows, Scores: []float32{.5}}},
	} {
		_, err := hitsOf(results, 2)
		require.ErrorIs(t, err, errWrong, name)
		require.NotContains(t, err.Error(), "Column", name)
	}
	_, err = storedOf(client.ResultSet{rows})
	require.ErrorIs(t, err, errWrong)
	require.ErrorContains(t, err, "there is no document")
}
