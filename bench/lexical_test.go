package bench

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"sluice/index/text"
)

// writeTexts makes a folder of sentences in which no two are alike.
func writeTexts(t *testing.T) string {
	t.Helper()
	words := strings.Fields("alpha beta gamma delta epsilon zeta eta theta iota kappa lambda omicron sigma omega")
	var b strings.Builder
	for i := range 300 {
		for j := range 9 {
			fmt.Fprintf(&b, "%s%d ", words[(i*7+j*j)%len(words)], (i+j)%9)
		}
		b.WriteString("ends here.\n\n")
	}
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "a.md"), []byte(b.String()), 0o600))
	return dir
}

// A process that plays a peer: every query takes a hundred seconds and finds row 0.
const fakeLexicalPeer = `import json, sys
print(json.dumps({"peers": ["other", "other_set"]}), flush=True)
for line in sys.stdin:
    n = len(json.loads(line)["queries"])
    print(json.dumps({"seconds": [100] * n, "cpu_seconds": 50 * n, "hits": [[0]] * n}), flush=True)
`

func TestLexical(t *testing.T) {
	script := filepath.Join(t.TempDir(), "peer.py")
	require.NoError(t, os.WriteFile(script, []byte(fakeLexicalPeer), 0o600))
	o := LexicalOptions{
		Data: writeTexts(t), Cache: t.TempDir(), Passages: 400, Queries: 5, Rounds: 2, K: 10,
		Peers: &Peers{Python: "python3", Script: script},
	}
	for range 2 { // the second time from the cache
		file, err := Lexical(t.Context(), o)
		require.NoError(t, err)
		for _, f := range []string{"100", "50", "10"} {
			require.Positive(t, file.Figures["sluice.lexical."+f+".qps"], f)
			require.InEpsilon(t, 0.01, file.Figures["other.lexical."+f+".qps"], 1e-9)
			require.Greater(t, file.Figures["ratio.lexical."+f+".qps_to_other"], 1.0)
			require.Greater(t, file.Figures["ratio.cpu.lexical."+f+".qps_to_other"], 1.0)
		}
		require.NotContains(t, file.Figures, "sluice.lexical.0.1.qps", "no passage is allowed there")
		require.Contains(t, file.Figures, "ratio.lexical.10.qps_to_other_set")
		require.NotContains(t, file.Figures, "ratio.lexical.100.qps_to_other_set", "nothing is filtered there")
	}
}

func TestPassages(t *testing.T) {
	analyzer, err := text.New(text.Default)
	require.NoError(t, err)
	all, err := readSentences(writeTexts(t))
	require.NoError(t, err)
	passages := makePassages(all, 500, analyzer)
	require.Equal(t, passages, makePassages(all, 500, analyzer), "the same at every call")
	require.Len(t, passages, 500)
	for i, p := range passages {
		require.Equal(t, passages[i/passagesPerDoc*passagesPerDoc].Class, p.Class, "a document has one class")
	}
	for _, q := range makeQueries(passages, 50, analyzer) {
		require.GreaterOrEqual(t, len(q.terms), queryTermsLeast)
		require.LessOrEqual(t, len(q.terms), queryTermsMost)
		clauses := analyzer.Parse(q.text)
		require.Len(t, clauses, len(q.terms))
		for i, c := range clauses {
			require.Equal(t, q.terms[i], c.Terms[0])
		}
	}
	require.Zero(t, overlap([][]uint32{{1}}, [][]uint32{{2}}))
	require.Equal(t, 0.5, overlap([][]uint32{{1, 2}}, [][]uint32{{2, 3}}))
}
