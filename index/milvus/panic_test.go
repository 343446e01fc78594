package milvus

import (
	"testing"

	"github.com/stretchr/testify/require"

	"sluice/filter"
)

// A panic in one of several searches of a query, or on one of several clusters, is
// the query's error, and not the daemon's end.
func TestPanicIsAnError(t *testing.T) {
	broken := &collection{Cluster: new(Cluster)} // it has no connection
	two := cover{searches: []expression{in(classField, []int64{1}), in(classField, []int64{2})}, share: 1}
	at := &state{shards: []shardState{{collection: broken}, {collection: broken}}}
	s := search{state: at, allowed: filter.SetOf(1), vector: []float32{1}, k: 1}
	_, err := s.covered(t.Context(), broken, two)
	require.ErrorContains(t, err, "panicked")
	_, err = s.run(t.Context(), &plan{rows: 1, covers: []cover{two, two}})
	require.ErrorContains(t, err, "panicked")
}
