package figures

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func rounds(name string, values ...float64) File {
	f := File{Figures: map[string]float64{}, Rounds: map[string][]float64{}}
	f.Median(name, values)
	return f
}

func compareOne(t *testing.T, a, b File) Difference {
	t.Helper()
	all := Compare([]File{a}, []File{b})
	require.Len(t, all, 1)
	return all[0]
}

// Of the 252 ways to mix five and five, two are as extreme as all of one before
// all of the other.
func TestCompareTells(t *testing.T) {
	a := rounds("int8.tokens_per_s", 100, 101, 102, 103, 104)
	slower := compareOne(t, a, rounds("int8.tokens_per_s", 90, 91, 92, 93, 94))
	require.InDelta(t, 2.0/252, slower.P, 1e-12)
	require.True(t, slower.Detected())
	require.InDelta(t, -10.0/102, slower.Change(), 1e-12)
	require.InDelta(t, 10.0/102, slower.Worse(), 1e-12)
	require.Equal(t, "worse", slower.Verdict())

	faster := compareOne(t, a, rounds("int8.tokens_per_s", 110, 111, 112, 113, 114))
	require.Equal(t, "better", faster.Verdict())
	require.Zero(t, faster.Worse())

	same := compareOne(t, a, rounds("int8.tokens_per_s", 100.5, 101.5, 102.5, 103.5, 99))
	require.Equal(t, "no detectable difference", same.Verdict())
	require.Zero(t, same.Worse())
	require.Equal(t, "no detectable difference", compareOne(t, rounds("x_ms", 1, 1, 1, 1), rounds("x_ms", 1, 1, 1, 1)).Verdict())
}

func TestCompareNeedsRounds(t *testing.T) {
	few := compareOne(t, rounds("x_ms", 1, 2, 3), rounds("x_ms", 11, 12, 13))
	require.False(t, few.Tested, "2 of 20 ways are as extreme")
	require.Equal(t, "not tested: 3 and 3 rounds", few.Verdict())
	require.True(t, compareOne(t, rounds("x_ms", 1, 2, 3, 4), rounds("x_ms", 11, 12, 13, 14)).Detected(), "2 of 70")

	// Four runs without rounds are four rounds.
	var a, b []File
	for i := range 4 {
		a, b = append(a, File{Figures: map[string]float64{"x_ms": float64(i)}}), append(b, File{Figures: map[string]float64{"x_ms": float64(10 + i)}})
	}
	require.Equal(t, "worse", Compare(a, b)[0].Verdict())
}

func TestCompareLeavesOut(t *testing.T) {
	a := File{Figures: map[string]float64{"ratio.x": 1, "ratio.x.min": 1, "ratio.x.max": 1, "only": 1}}
	b := File{Figures: map[string]float64{"ratio.x": 1, "ratio.x.min": 1, "ratio.x.max": 1}}
	require.Len(t, Compare([]File{a}, []File{b}), 1)
}

func TestDirection(t *testing.T) {
	for name, want := range map[string]int{
		"sluice.embed.c1.p50_ms": -1, "sluice.embed.c8.requests_per_s": 1, "overhead.p50_us": -1, "int8.tokens_per_cpu_s": 1,
		"sluice.sel1.qps": 1, "recall@10": 1, "ratio.embed.c1.p95.ours_to_peer": -1, "ratio.embed.c1.requests_per_s.ours_to_peer": 1,
		"ratio.tokens_per_s.sluice_to_engine": 1, "ratio.load80.p99_to_batch": -1, "build_cpu_s": -1, "idle.rss_mb": -1, "full.seconds": -1,
		"failed_queries": -1, "embedding_cache.hit_rate": 1, "visible": 0, "documents": 0,
		"sluice.search.c8.cpu_ms": -1, "bytes_per_vector": -1, "ratio.int8_to_openvino_bf16": 1,
	} {
		require.Equal(t, want, direction(name), name)
	}
}

func TestUnlike(t *testing.T) {
	a := File{Flags: map[string]string{"rounds": "5", "json": "a"}, Environment: Environment{CPU: "c", Cores: 2}}
	require.Empty(t, Unlike(a, a))
	b := File{Flags: map[string]string{"rounds": "7"}, Environment: Environment{CPU: "d", Cores: 2}}
	require.Equal(t, []string{"processor: c and d", "--rounds: 5 and 7"}, Unlike(a, b))
}

func TestReadWhatWasWritten(t *testing.T) {
	path := filepath.Join(t.TempDir(), "run.json")
	f := New(t.Context(), "ref")
	f.Flags, f.Modules = map[string]string{"rounds": "5"}, map[string]string{"a": "v1"}
	f.Spread("x_ms", []float64{3, 1, 2})
	f.Series["x"] = []Interval{{At: .1, Requests: 2, Mean: 1.5, Max: 2}}
	require.NoError(t, f.Write(path))
	read, err := Read(path)
	require.NoError(t, err)
	require.Equal(t, 2.0, read.Figures["x_ms"])
	require.Equal(t, 1.0, read.Figures["x_ms.min"])
	require.Equal(t, 3.0, read.Figures["x_ms.max"])
	require.Equal(t, []float64{3, 1, 2}, read.Rounds["x_ms"])
	require.NotEmpty(t, read.Environment.Governor)
	require.False(t, read.Started.IsZero())
	f.Histograms, read.Histograms = nil, nil
	require.Equal(t, f, read)

	_, err = Read(filepath.Join(t.TempDir(), "none.json"))
	require.ErrorContains(t, err, "none.json")
	require.NoError(t, File{Command: "x"}.Write(path))
	_, err = Read(path)
	require.ErrorContains(t, err, "give a file that --json wrote")
}
