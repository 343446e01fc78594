package eval

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"sluice/needs"
)

// folder writes files under a directory of their own.
func folder(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "set")
	for name, text := range files {
		path := filepath.Join(dir, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	}
	return dir
}

func beir() map[string]string {
	return map[string]string{
		"corpus.jsonl":    `{"_id":"d1","title":"T","text":"one"}` + "\n" + `{"_id":"d2","title":"only a title","text":" "}` + "\n" + `{"_id":"d3","text":""}` + "\n" + `{"_id":"d4","text":"four"}`,
		"queries.jsonl":   `{"_id":"q1","text":"first?"}` + "\n" + `{"_id":"q2","text":"second \"quoted\"?","metadata":{}}` + "\n" + `{"_id":"q3","text":"nothing relevant"}`,
		"qrels/test.tsv":  "query-id\tcorpus-id\tscore\nq1\td1\t1\nq1\td4\t2\nq1\td2\t0\nq2\td3\t1\n",
		"qrels/dev.tsv":   "query-id\tcorpus-id\tscore\nq2\td2\t1\n",
		"qrels/notes.txt": "no split",
	}
}

func TestBEIR(t *testing.T) {
	d := load(t, folder(t, beir()))
	require.Equal(t, "set", d.Name)
	require.Equal(t, []Document{
		{Tenant: "beir", Key: "d1", Version: 1, Title: "T", Format: "text", Text: "one"},
		{Tenant: "beir", Key: "d2", Version: 1, Title: "only a title", Format: "text", Text: "only a title"},
		{Tenant: "beir", Key: "d4", Version: 1, Format: "text", Text: "four"},
	}, d.Documents)
	require.Equal(t, []string{"1 documents without text are left out"}, d.Notes)
	one := func(key string) Evidence { return Evidence{Documents: []string{key}, Version: 1} }
	require.Equal(t, []Case{
		{ID: "dev-q2", Split: "dev", Query: `second "quoted"?`, Principal: "reader", Evidence: []Evidence{one("d2")}},
		{ID: "test-q1", Split: "test", Query: "first?", Principal: "reader", Evidence: []Evidence{one("d1"), one("d4")}},
	}, d.Cases, "what is not relevant, or not there, is no evidence")

	f := newFake(nil)
	report, err := gate(t, f, func(o *Options) { o.Dataset = folder(t, beir()) })
	require.NoError(t, err)
	require.InDelta(t, 1, report.Strategies[0].Metrics["ndcg@10"].Mean, 1e-12)
	require.Contains(t, report.Strategies[0].Metrics, "recall@100")
}

func TestBEIRRefuses(t *testing.T) {
	for want, change := range map[string]map[string]string{
		"no whole number": {"qrels/test.tsv": "query-id\tcorpus-id\tscore\nq1\td1\tyes\n"},
		"wrong number":    {"qrels/test.tsv": "query-id\tcorpus-id\tscore\nq1\td1\n"},
		"object 1":        {"corpus.jsonl": "[]"},
		"no cases":        {"qrels/test.tsv": "", "qrels/dev.tsv": ""},
		"queries.jsonl":   {"queries.jsonl": "{"},
	} {
		files := beir()
		for name, text := range change {
			files[name] = text
		}
		_, err := Load(folder(t, files))
		require.ErrorContains(t, err, want)
	}
}

func own() map[string]string {
	return map[string]string{
		"documents.jsonl": `{"tenant":"a","key":"k","title":"Old","format":"text","text":"An old line."}` + "\n" +
			`{"tenant":"a","key":"k","title":"New","format":"markdown","text":"A **new** line.","readers":["user:p"],"regions":["EU"]}` + "\n" +
			`{"tenant":"b","key":"k","format":"text","text":"Theirs.","attributes":{"level":1}}`,
		"principals.jsonl": `{"name":"p","tenant":"a","groups":["g"],"attributes":{"region":"EU"},"visible":["k"]}` + "\n" + `{"name":"q","tenant":"b"}`,
		"cases.jsonl": `{"id":"1","split":"test","query":"What?","principal":"p","evidence":[{"document":"k","version":2,"quote":"new line"}],"tags":["x"]}` + "\n" +
			`{"id":"2","query":"What else?","principal":"q","unauthorized_documents":["k"]}`,
	}
}

func TestOneOfYourOwn(t *testing.T) {
	d := load(t, folder(t, own()))
	require.Equal(t, []uint32{1, 2, 1}, []uint32{d.Documents[0].Version, d.Documents[1].Version, d.Documents[2].Version})
	require.Equal(t, map[string]map[string]uint32{"p": {"k": 2}, "q": {}}, d.Visible)
	require.Equal(t, &[]string{"user:p"}, d.Documents[1].Readers)
	require.Empty(t, d.Policies)
	require.Equal(t, []Evidence{{Documents: []string{"k"}, Version: 2, Quote: "new line"}}, d.Cases[0].Evidence)

	files := own()
	files["policies/p.cedar"] = "permit(principal, action, resource);"
	require.NotEmpty(t, load(t, folder(t, files)).Policies)

	v, err := Validate(folder(t, own()), Bounds{})
	require.NoError(t, err)
	require.Equal(t, 1, v.Items)
}

func TestOneOfYourOwnRefuses(t *testing.T) {
	for want, change := range map[string][2]string{
		"unknown field":         {"cases.jsonl", `{"id":"1","query":"?","principal":"p","unautorized_documents":["k"]}`},
		"which tenant b does":   {"principals.jsonl", `{"name":"p","tenant":"b","visible":["x"]}`},
		"is not visible to p":   {"principals.jsonl", `{"name":"p","tenant":"a"}` + "\n" + `{"name":"q","tenant":"b"}`},
		"unknown principal":     {"principals.jsonl", `{"name":"p","tenant":"a","visible":["k"]}`},
		"documents.jsonl":       {"documents.jsonl", `{"tenant":1}`},
		"evidence k version 1 ": {"cases.jsonl", `{"id":"1","query":"?","principal":"p","evidence":[{"document":"k","version":1,"quote":"old"}]}`},
	} {
		files := own()
		files[change[0]] = change[1]
		_, err := Load(folder(t, files))
		require.ErrorContains(t, err, want)
	}
}

func TestCodePointsAreNotBytes(t *testing.T) {
	text := "añb añb añb" // n with tilde has two bytes
	require.Equal(t, 0, codePoint(text, 0))
	require.Equal(t, 5, codePoint(text, 4))
	require.Equal(t, len(text), codePoint(text, 11))
	require.Equal(t, -1, codePoint(text, 12))
	require.Equal(t, -1, codePoint(text, -1))
	e, err := chunkingSpan{4, 7, "añb"}.evidence("c", text)
	require.NoError(t, err)
	require.Equal(t, 2, e.Occurrence)
	start, end, err := e.locate(text, Verbatim)
	require.NoError(t, err)
	require.Equal(t, [2]int{5, 9}, [2]int{start, end})
	_, _, err = e.locate("añb", Verbatim)
	require.ErrorIs(t, err, errNoPlace)
	_, err = chunkingSpan{5, 8, "añb"}.evidence("c", text)
	require.ErrorContains(t, err, "are not the quote")
	_, err = chunkingSpan{0, 99, "añb"}.evidence("c", text)
	require.Error(t, err)
	require.Equal(t, []int{0, 1}, placesOf("aaa", "aa"))
}

// All 790 spans are where their code points say.
func TestChunkingEvaluation(t *testing.T) {
	dir := needs.Data(t, "chunking-evaluation")
	d := load(t, dir)
	require.Len(t, d.Documents, 5)
	require.Len(t, d.Cases, 472)
	items, repeated := 0, 0
	for _, c := range d.Cases {
		for _, e := range c.Evidence {
			items++
			repeated += min(e.Occurrence, 1)
		}
	}
	require.Equal(t, []int{790, 97}, []int{items, repeated}, "693 quotes occur once")
	if testing.Short() {
		return // the labels are checked; the run over all of them is long under the race detector
	}
	_, err := Run(context.Background(), Options{Dataset: dir, Strategies: []string{"dense"}, Ingest: true, Connect: newFake(nil).connect})
	require.NoError(t, err)
}
