package filter_test

import (
	"fmt"
	"maps"
	"runtime"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"sluice/filter"
	"sluice/needs"
)

// What is asked at every search and is known already costs no memory.
func TestKnownSetsAllocateNothing(t *testing.T) {
	view := filter.NewView("acme", starter(t))
	for i := range 100 {
		view = view.Apply([]filter.Change{{Ordinal: uint32(i), Access: benchAccess(i, 10)}})
	}
	p := benchPrincipal(1)
	resolve := func() filter.Set {
		set, err := view.Resolve(p)
		require.NoError(t, err)
		return set
	}
	want := resolve()
	require.Zero(t, testing.AllocsPerRun(100, func() {
		if set, err := view.Resolve(p); err != nil || set.Len() != want.Len() {
			t.Fatal("another Set")
		}
	}))
}

// maxEdgeBytes is what one reader of one document may cost in memory.
const maxEdgeBytes = 16

// TestMemoryOfReaders measures a real access matrix, and lists of groups. It
// takes the difference of two Views that differ in nothing but readers.
func TestMemoryOfReaders(t *testing.T) {
	if testing.Short() {
		t.Skip("not -short: the heap of the race detector is another")
	}
	matrices := map[string][][]string{"groups": groupLists(100_000)}
	permissions := readMatrix(t, needs.Data(t, "hp-rbac/americas_large.tsv.gz"))
	for _, name := range slices.Sorted(maps.Keys(permissions)) {
		matrices["americas_large"] = append(matrices["americas_large"], prefixed("user:", permissions[name]))
	}
	for name, lists := range matrices {
		edges := 0
		for _, list := range lists {
			edges += len(list)
		}
		with := heapOf(t, func(i int) []string { return lists[i] }, len(lists))
		without := heapOf(t, func(int) []string { return nil }, len(lists))
		perEdge := float64(with-without) / float64(edges)
		t.Logf("%s: %d documents, %d edges, %.1f bytes an edge", name, len(lists), edges, perEdge)
		require.LessOrEqual(t, perEdge, float64(maxEdgeBytes), name)
	}
}

// groupLists has four of 1,000 groups on every document.
func groupLists(documents int) [][]string {
	lists := make([][]string, documents)
	for i := range lists {
		for _, step := range []int{1, 7, 31, 211} {
			lists[i] = append(lists[i], fmt.Sprint("group:", i*step%1000))
		}
	}
	return lists
}

// heapOf is the size of a View that was fed documents in batches, as at start.
func heapOf(t *testing.T, list func(i int) []string, documents int) int64 {
	before := heap()
	view := filter.NewView("acme", starter(t))
	for from := range documents/1000 + 1 {
		var changes []filter.Change
		for i := from * 1000; i < min(documents, from*1000+1000); i++ {
			readers, err := filter.ParseReaders(list(i))
			require.NoError(t, err)
			changes = append(changes, filter.Change{Ordinal: uint32(i), Access: filter.Access{Readers: readers}})
		}
		view = view.Apply(changes)
	}
	size := heap() - before
	require.Equal(t, documents, view.Len())
	return size
}

func heap() int64 {
	runtime.GC()
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return int64(stats.HeapAlloc)
}
