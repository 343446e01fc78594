package bench

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"sluice/kernels/ref"
)

// A process that plays two peers: the first finds only with its second setting
// what is right, under filters, in a hundred seconds a query; the other has no filters.
const fakeDensePeers = `import array, json, sys
def floats(path):
    a = array.array("f")
    a.frombytes(open(path, "rb").read())
    return a
argv = dict(zip(sys.argv[1::2], sys.argv[2::2]))
d = int(argv["--dims"])
rows, queries = floats(argv["--rows"]), floats(argv["--queries"])
one = {"settings": [1, 2], "build_cpu_s": 1e6, "bytes": 1200}
print(json.dumps({"peers": {"hnswlib": {"filters": True, **one}, "bare": {"filters": False, **one}}}), flush=True)
for line in sys.stdin:
    r = json.loads(line)
    n = r["queries"]
    assert not r["filters"] or r["peer"] == "hnswlib"
    assert not r["each"] or r["setting"] == 2, "the first setting reaches nothing"
    hits = []
    for i in range(n):
        allowed = range(len(rows) // d)
        if r["filters"]:
            allowed = array.array("I", open(r["filters"][i % len(r["filters"])], "rb").read())
        score = lambda row: sum(a * b for a, b in zip(queries[i * d:(i + 1) * d], rows[row * d:(row + 1) * d]))
        hits.append(sorted(allowed, key=score, reverse=True)[:r["k"] if r["setting"] == 2 else 1])
    print(json.dumps({"seconds": 100 * n, "cpu_seconds": 50 * n, "hits": hits, "times": [100] * n, "cpu_times": [50] * n}), flush=True)
`

func tinySearch(t *testing.T) SearchOptions {
	return SearchOptions{
		Vectors: VectorOptions{Model: tinyModel, Corpora: writeSentences(t, 1300), Cache: t.TempDir(), Rows: 1100, Queries: 20},
		Queries: 8, Rounds: 2,
	}
}

func TestSearch(t *testing.T) {
	script := filepath.Join(t.TempDir(), "peer.py")
	require.NoError(t, os.WriteFile(script, []byte(fakeDensePeers), 0o600))
	o := tinySearch(t)
	o.Peers = &Peers{Python: "python3", Script: script}
	var log strings.Builder
	o.Log = &log
	file, err := Search(t.Context(), o)
	require.NoError(t, err)
	require.NoError(t, file.Write(filepath.Join(t.TempDir(), "figures.json")))
	f := file.Figures
	for _, place := range []string{"sel0.01", "sel0.1", "sel1", "sel10", "sel50", "sel100"} {
		for _, name := range []string{".qps", ".queries_per_cpu_s", ".p50_ms", ".p95_ms"} {
			require.Positive(t, f[place+name], place+name)
		}
		require.Equal(t, 1.0, f[place+".recall@10"], "so few are all scored")
		require.InEpsilon(t, .01, f["best_peer."+place+".qps"], 1e-9)
		for _, suffix := range []string{"", ".at0.95", ".at0.97", ".at0.99"} {
			require.Greater(t, f["ratio."+place+".qps_to_best_peer"+suffix], 1.0)
			require.Greater(t, f["ratio.cpu."+place+".qps_to_best_peer"+suffix], 1.0)
			require.Less(t, f["ratio."+place+".p95_cpu_to_best_peer"+suffix], 1.0)
		}
		require.Equal(t, 2.0, f["hnswlib.random."+place+".setting"])
	}
	require.Contains(t, f, "bare.random.sel100.qps")
	require.NotContains(t, f, "bare.random.sel50.qps")
	require.Contains(t, f, "hnswlib.correlated.sel50.at0.99.p95_cpu_ms")
	require.Less(t, f["ratio.build_to_hnswlib"], 1.0)
	require.Positive(t, f["open_ms"])
	require.Greater(t, f["disk_bytes_per_vector"], 4.0*32)
	require.Contains(t, log.String(), "building the index")

	o.Peers = nil
	log.Reset()
	again, err := Search(t.Context(), o)
	require.NoError(t, err)
	require.NotContains(t, log.String(), "building", "it is found again")
	require.Equal(t, f["build_cpu_s"], again.Figures["build_cpu_s"])
	require.NotContains(t, again.Figures, "ratio.sel1.qps_to_best_peer")
}

// The exact search and recall, beside a full sort.
func TestPoint(t *testing.T) {
	v := filled(500, 2000)
	v.Queries = v.Rows[700*v.Dims : 708*v.Dims]
	b := &searchBench{SearchOptions: SearchOptions{Queries: 8}, vectors: v, dot: ref.Dot, scratch: t.TempDir()}
	for _, share := range []float64{.01, .3, 1} {
		p, err := b.point(share, true)
		require.NoError(t, err)
		var right, half [][]int
		for i := range 8 {
			var allowed []int
			for row := range p.set(i).Each {
				allowed = append(allowed, int(row))
			}
			slices.SortFunc(allowed, func(x, y int) int {
				if ref.Dot(v.query(i), v.Row(x)) > ref.Dot(v.query(i), v.Row(y)) {
					return -1
				}
				return 1
			})
			require.Equal(t, ref.Dot(v.query(i), v.Row(allowed[9])), p.least[i])
			right = append(right, allowed[:10])
			half = append(half, slices.Concat(allowed[:5], allowed[:5]))
		}
		require.Equal(t, 1.0, p.recall(right))
		require.Equal(t, .5, p.recall(half), "nothing counts twice")
	}
	p, err := b.point(.01, false)
	require.NoError(t, err)
	var forbidden [][]int
	for i := range 8 {
		best := 0
		for row := range v.count() {
			if !p.set(i).Contains(uint32(row)) && ref.Dot(v.query(i), v.Row(row)) > ref.Dot(v.query(i), v.Row(best)) {
				best = row
			}
		}
		forbidden = append(forbidden, []int{best})
	}
	require.Zero(t, p.recall(forbidden))
}
