package local

import (
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"

	"sluice/filter"
	"sluice/index"
	"sluice/kernels/ref"
)

const (
	codedDims      = 32
	codedDocuments = 15_000
)

// codedCollection is vectors around centres, two rows a document.
func codedCollection(rng *rand.Rand, documents int) []index.Document {
	c := newCollection(codedDims)
	centres := make([][]float32, 200)
	for i := range centres {
		centres[i] = c.vector()
	}
	all := make([]index.Document, documents)
	for i := range all {
		all[i].Ordinal = uint32(3 * i)
		for j := range 2 {
			all[i].Rows = append(all[i].Rows, index.Row{Row: uint32(2*i + j), Vector: nearVector(rng, centres[rng.IntN(len(centres))])})
		}
	}
	return all
}

func nearVector(rng *rand.Rand, centre []float32) []float32 {
	v := slices.Clone(centre)
	square := float32(0)
	for d := range v {
		v[d] += 0.12 * float32(rng.NormFloat64())
		square += v[d] * v[d]
	}
	for d := range v {
		v[d] /= float32(math.Sqrt(float64(square)))
	}
	return v
}

// scanned answers by a plain scan in float32.
func scanned(ix *Index, allowed filter.Set, query []float32, k int) (hits []index.Hit) {
	for _, p := range ix.current.parts {
		for i := range p.seg.documents() {
			d := p.seg.document(i)
			if !allowed.Contains(d.ordinal) || p.isDeleted(d.ordinal) {
				continue
			}
			for slot := d.lo; slot < d.hi; slot++ {
				hits = append(hits, index.Hit{Row: p.seg.row(slot), Ordinal: d.ordinal, Score: ref.Dot(query, p.seg.vector(slot))})
			}
		}
	}
	slices.SortFunc(hits, compareHits)
	return hits[:min(k, len(hits))]
}

func dense(t *testing.T, ix *Index, allowed filter.Set, query []float32, k int) []index.Hit {
	t.Helper()
	r, err := ix.Reader()
	require.NoError(t, err)
	defer r.Close()
	hits, err := r.Dense(t.Context(), allowed, query, k)
	require.NoError(t, err)
	return hits
}

// TestDenseIsTheScan compares with a scan of every allowed row, over a listed
// segment, a coded one, fresh rows and deleted ones: equal where few documents
// are allowed; where many are a neighbour may be missing, and nothing else differ.
func TestDenseIsTheScan(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 9))
	documents := codedCollection(rng, codedDocuments)
	options := testOptions(t, vfs.NewMem())
	options.Dimensions, options.FreshRows, options.listedRows = codedDims, 1<<20, 16_000
	ix, err := Open("index", options)
	require.NoError(t, err)
	apply := func(epoch uint64, from, to int, deleted ...uint32) {
		require.NoError(t, ix.Apply(t.Context(), index.Batch{Epoch: epoch, Put: documents[from:to], Delete: deleted}))
	}
	apply(1, 0, 13_000)
	require.NoError(t, ix.Flush(t.Context()))
	require.NoError(t, ix.mergeAll(t.Context(), ingesting)) // gives it lists
	apply(2, 13_000, 14_500)
	require.NoError(t, ix.Flush(t.Context()))
	apply(3, 14_500, codedDocuments)
	apply(4, 0, 200, 900, 3*13_100) // replaced and deleted ones
	parts := ix.current.parts
	require.True(t, parts[0].seg.codes.index.Listed())
	require.False(t, parts[1].seg.codes.index.Listed())
	require.Zero(t, parts[len(parts)-1].seg.id)

	everything := rng.Perm(codedDocuments)
	for _, count := range []int{1, 30, 450, 9000, codedDocuments} {
		allowed := make([]uint32, count)
		for i := range allowed {
			allowed[i] = uint32(3 * everything[i])
		}
		set, found, wanted := filter.SetOf(allowed...), 0, 0
		for range 20 {
			query, k := nearVector(rng, documents[rng.IntN(len(documents))].Rows[0].Vector), 1+rng.IntN(20)
			want, got := scanned(ix, set, query, k), dense(t, ix, set, query, k)
			if count < 500 {
				require.Equal(t, want, got, "%d documents allowed", count)
				continue
			}
			require.True(t, slices.IsSortedFunc(got, compareHits))
			require.Subset(t, scanned(ix, set, query, 3*k), got, "%d documents allowed", count)
			wanted += len(want)
			for _, h := range want {
				if slices.Contains(got, h) {
					found++
				}
			}
		}
		require.GreaterOrEqual(t, float64(found), 0.97*float64(wanted), "%d documents allowed", count)
	}
	require.NoError(t, ix.Close())
}

// TestEqualScores: of rows with one score the lower ones are found, wherever
// they lie.
func TestEqualScores(t *testing.T) {
	c := newCollection(codedDims)
	same := c.vector()
	documents := func(from, to uint32) (all []index.Document) {
		for i := from; i < to; i++ {
			all = append(all, index.Document{Ordinal: i, Rows: []index.Row{{Row: i, Vector: same}}})
		}
		return all
	}
	options := testOptions(t, vfs.NewMem())
	options.Dimensions = codedDims
	ix, err := Open("index", options)
	require.NoError(t, err)
	require.NoError(t, ix.Apply(t.Context(), index.Batch{Epoch: 1, Put: documents(20, 3000)}))
	require.NoError(t, ix.Flush(t.Context()))
	require.NoError(t, ix.Apply(t.Context(), index.Batch{Epoch: 2, Put: documents(0, 20)}))
	for _, set := range []filter.Set{every(1, 60), every(1, 500), every(1, 3000)} {
		hits := dense(t, ix, set, same, 5)
		require.Equal(t, scanned(ix, set, same, 5), hits)
		require.Equal(t, uint32(4), hits[4].Row)
	}
	require.NoError(t, ix.Close())
}

// TestForeignDocumentsChangeNothing: on the exact path, what a principal may
// not see has no effect, whatever it is and wherever it lies.
func TestForeignDocumentsChangeNothing(t *testing.T) {
	rng := rand.New(rand.NewPCG(2, 9))
	documents := codedCollection(rng, 2500)
	var own []uint32
	for _, d := range documents[:400] {
		own = append(own, d.Ordinal)
	}
	set := filter.SetOf(own...)
	var answers [][]index.Hit
	for _, foreign := range []int{0, 100, 1700} {
		options := testOptions(t, vfs.NewMem())
		options.Dimensions, options.listedRows = codedDims, 1000
		ix, err := Open("index", options)
		require.NoError(t, err)
		batch := slices.Concat(documents[:400], documents[400:400+foreign])
		require.NoError(t, ix.Apply(t.Context(), index.Batch{Epoch: 1, Put: batch}))
		require.NoError(t, ix.Flush(t.Context()))
		require.NoError(t, ix.mergeAll(t.Context(), ingesting))
		queries := rand.New(rand.NewPCG(3, 9))
		var all []index.Hit
		for range 20 {
			all = append(all, dense(t, ix, set, nearVector(queries, documents[queries.IntN(2500)].Rows[0].Vector), 10)...)
		}
		answers = append(answers, all)
		require.NoError(t, ix.Close())
	}
	require.Equal(t, answers[0], answers[1])
	require.Equal(t, answers[0], answers[2])
}

// TestCodesSurviveReopening, and belong to their segment.
func TestCodesSurviveReopening(t *testing.T) {
	rng := rand.New(rand.NewPCG(4, 9))
	options := testOptions(t, nil)
	options.Dimensions, options.listedRows = codedDims, 1000
	dir := filepath.Join(t.TempDir(), "index")
	ix, err := Open(dir, options)
	require.NoError(t, err)
	documents := codedCollection(rng, 2000)
	for epoch, half := range [][]index.Document{documents[:1000], documents[1000:]} {
		require.NoError(t, ix.Apply(t.Context(), index.Batch{Epoch: uint64(epoch + 1), Put: half}))
		require.NoError(t, ix.Flush(t.Context()))
		require.NoError(t, ix.mergeAll(t.Context(), ingesting))
	}
	query, set := documents[7].Rows[1].Vector, every(3, 3000)
	want := dense(t, ix, set, query, 10)
	require.NoError(t, ix.Close())
	ix, err = Open(dir, options)
	require.NoError(t, err)
	for _, p := range ix.current.parts {
		require.True(t, p.seg.codes.index.Listed())
	}
	require.Equal(t, want, dense(t, ix, set, query, 10))
	require.NoError(t, ix.Close())

	names, err := filepath.Glob(filepath.Join(dir, "*"+codesSuffix))
	require.NoError(t, err)
	require.Len(t, names, 2)
	data, err := os.ReadFile(names[0])
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(names[1], data, 0o600))
	_, err = Open(dir, options)
	require.ErrorIs(t, err, index.ErrRebuild)

	for _, name := range names { // an earlier version wrote none: merging makes them
		require.NoError(t, os.Remove(name))
	}
	ix, err = Open(dir, options)
	require.NoError(t, err)
	require.Equal(t, want, dense(t, ix, set, query, 10))
	require.NoError(t, ix.mergeAll(t.Context(), ingesting))
	require.True(t, ix.current.parts[0].seg.codes.index.Listed())
	require.Equal(t, want, dense(t, ix, set, query, 10))
	require.NoError(t, ix.Close())
}

var raceEnabled bool // set by race_test.go

// TestDenseAllocatesItsAnswer and nothing else, once memory has grown and the
// set is known.
func TestDenseAllocatesItsAnswer(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector makes pools forget")
	}
	rng := rand.New(rand.NewPCG(5, 9))
	options := testOptions(t, vfs.NewMem())
	options.Dimensions, options.listedRows = codedDims, 1000
	ix, err := Open("index", options)
	require.NoError(t, err)
	documents := codedCollection(rng, 8000)
	require.NoError(t, ix.Apply(t.Context(), index.Batch{Epoch: 1, Put: documents}))
	require.NoError(t, ix.Flush(t.Context()))
	require.NoError(t, ix.mergeAll(t.Context(), ingesting))
	r, err := ix.Reader()
	require.NoError(t, err)
	defer r.Close()
	for _, set := range []filter.Set{every(30, 24_000), every(3, 24_000)} {
		search := func() { _, err = r.Dense(t.Context(), set, documents[5].Rows[0].Vector, 10) }
		search()
		require.LessOrEqual(t, testing.AllocsPerRun(50, search), 2.0) // now and then the pool is emptied
		require.NoError(t, err)
	}
	require.NoError(t, ix.Close())
}

// Half of the cores make codes, whatever the runtime has beside them.
func TestBuildThreads(t *testing.T) {
	for cores, threads := range map[int]int{1: 1, 2: 1, 3: 1, 4: 2, 64: 32} {
		require.Equal(t, threads, Options{Cores: cores}.buildThreads(), "%d cores", cores)
	}
}
