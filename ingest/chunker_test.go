package ingest

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"sluice/chunk"
	"sluice/store"
)

// single puts every element into a chunk of its own.
type single struct{ err error }

func (s single) Plan(_ context.Context, section chunk.Section) (groups [][]string, err error) {
	for _, e := range section.Elements {
		groups = append(groups, []string{e.ID})
	}
	return groups, s.err
}

// TestChunkers: the collection's chunker cuts, that of the format where it names
// none, and a planner where plan/1 is named.
func TestChunkers(t *testing.T) {
	d := Document{Key: "k", Format: "markdown", Text: []byte("one\n\ntwo\n\n|k|v|\n|-|-|\n|1|2|\n")}
	w := NewWriter(nil, informed{}, nil).Planning(single{})
	named := func(chunker string) []store.Generation { return []store.Generation{{Chunker: chunker}} }
	for name, chunks := range map[string]int{"": 1, "fixed/1": 1, "structure/1": 1, "plan/1": 3} {
		v, err := w.prepareText(t.Context(), named(name), d)
		require.NoError(t, err)
		require.Len(t, v.Chunks, chunks, name)
		if name == "" {
			name = "markdown/1"
		}
		require.Equal(t, name, v.Chunker)
		require.Equal(t, name == "structure/1", v.Chunks[0].Index != "")
	}
	_, err := w.prepareText(t.Context(), named("none/1"), d)
	require.ErrorIs(t, err, store.ErrInvalid)
	failed := errors.New("no plan")
	_, err = w.Planning(single{failed}).prepareText(t.Context(), named("plan/1"), d)
	require.ErrorIs(t, err, failed)
}
