package client

import (
	"encoding/json"
	"io"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
)

func noDocuments(func(Document, error) bool) {}

func ignore(WriteResult) error { return nil }

// operations are the operations of the API's description, each asked for by its method.
var operations = map[string]func(*Client) error{
	"putCollection":   func(c *Client) error { _, err := c.CreateCollection(ctx, "c", CollectionSettings{}); return err },
	"getCollection":   func(c *Client) error { _, err := c.Collection(ctx, "c"); return err },
	"postDocuments":   func(c *Client) error { return c.Ingest(ctx, "c", noDocuments, ignore) },
	"listDocuments":   func(c *Client) error { _, err := c.List(ctx, "c", "", 10); return err },
	"getDocument":     func(c *Client) error { _, err := c.Document(ctx, "c", "k"); return err },
	"deleteDocument":  func(c *Client) error { return c.Delete(ctx, "c", "k") },
	"patchAccess":     func(c *Client) error { _, err := c.SetAccess(ctx, "c", "k", AccessPatch{}); return err },
	"importAccess":    func(c *Client) error { return c.ImportAccess(ctx, "c", strings.NewReader(""), ignore) },
	"previewAccess":   func(c *Client) error { _, err := c.PreviewAccess(ctx, "c", AccessPreviewRequest{}); return err },
	"explainAccess":   func(c *Client) error { _, err := c.ExplainAccess(ctx, "c", AccessQuestion{}); return err },
	"search":          func(c *Client) error { _, err := c.Search(ctx, "c", SearchRequest{}); return err },
	"answer":          func(c *Client) error { _, err := c.Answer(ctx, "c", AnswerRequest{}); return err },
	"putQueries":      func(c *Client) error { return c.SetQueries(ctx, "c", QuerySet{}) },
	"getQueries":      func(c *Client) error { _, err := c.Queries(ctx, "c"); return err },
	"startReindex":    func(c *Client) error { _, err := c.Reindex(ctx, "c", ReindexRequest{}); return err },
	"getReindex":      func(c *Client) error { _, err := c.Generations(ctx, "c"); return err },
	"estimateReindex": func(c *Client) error { _, err := c.EstimateReindex(ctx, "c", ReindexRequest{}); return err },
	"watchReindex":    func(c *Client) error { return c.WatchReindex(ctx, "c", func(Generations) error { return nil }) },
	"changeReindex":   func(c *Client) error { _, err := c.ChangeReindex(ctx, "c", "pause", nil); return err },
	"embeddings":      func(c *Client) error { _, err := c.Embed(ctx, EmbeddingRequest{}); return err },
	"embed":           func(c *Client) error { _, err := c.EmbedInputs(ctx, EmbedRequest{}); return err },
	"embedAll":        func(c *Client) error { _, err := c.EmbedAll(ctx, EmbedAllRequest{}); return err },
	"similarity":      func(c *Client) error { _, err := c.Similarity(ctx, SimilarityRequest{}); return err },
	"rerank":          func(c *Client) error { _, err := c.Rank(ctx, RankRequest{}); return err },
	"predict":         func(c *Client) error { _, err := c.Predict(ctx, PredictRequest{}); return err },
	"tokenize":        func(c *Client) error { _, err := c.Tokenize(ctx, TokenizeRequest{}); return err },
	"decode":          func(c *Client) error { _, err := c.Decode(ctx, DecodeRequest{}); return err },
	"info":            func(c *Client) error { _, err := c.ModelInfo(ctx); return err },
	"jinaRerank":      func(c *Client) error { _, err := c.JinaRerank(ctx, JinaRerankRequest{}); return err },
	"cohereRerank":    func(c *Client) error { _, err := c.CohereRerank(ctx, CohereRerankRequest{}); return err },
	"healthz":         func(c *Client) error { return c.Health(ctx) },
	"readyz":          func(c *Client) error { return c.Ready(ctx) },
	"getMetrics":      func(c *Client) error { _, err := c.Metrics(ctx); return err },
	"openAPI":         func(c *Client) error { _, err := c.OpenAPI(ctx); return err },
	"getIdentity":     func(c *Client) error { _, err := c.Identity(ctx); return err },
	"listCollections": func(c *Client) error { _, err := c.Collections(ctx); return err },
	"getPolicies":     func(c *Client) error { _, err := c.Policies(ctx); return err },
	"getDemo":         func(c *Client) error { _, err := c.Demo(ctx); return err },
}

// Every operation of the API's description has a method that asks for it. POST /
// is another name of /embed, and the console is for browsers.
func TestEveryOperationHasAMethod(t *testing.T) {
	text, err := os.ReadFile("../server/openapi.json")
	require.NoError(t, err)
	var document struct {
		Paths map[string]map[string]struct{ OperationID string }
	}
	require.NoError(t, json.Unmarshal(text, &document))
	for _, page := range []string{"/", "/console", "/console/", "/console/{file}"} {
		delete(document.Paths, page)
	}
	want := map[string]string{}
	for path, item := range document.Paths {
		for method, operation := range item {
			want[operation.OperationID] = strings.ToUpper(method) + " " + filled(path)
		}
	}

	got := map[string]string{}
	for id, ask := range operations {
		var asked atomic.Value
		c := dial(t, func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			asked.Store(r.Method + " " + r.URL.Path)
			w.WriteHeader(http.StatusTeapot)
		})
		var p *Problem
		require.ErrorAs(t, ask(c), &p, id)
		require.Equal(t, http.StatusTeapot, p.Status)
		got[id] = asked.Load().(string)
	}
	require.Equal(t, want, got)
}

// filled puts the values of operations into a path's variables.
func filled(path string) string {
	values := map[string]string{"{collection}": "c", "{key}": "k", "{action}": "pause"}
	return regexp.MustCompile(`{\w+}`).ReplaceAllStringFunc(path, func(name string) string { return values[name] })
}

// A lone sequence is answered without a list around its labels.
func TestPredictReadsBothForms(t *testing.T) {
	const labels = `[{"score":0.75,"label":"a"}]`
	want := []Prediction{{Score: 0.75, Label: "a"}}
	for answer, texts := range map[string][][]string{labels: {{"x"}}, "[" + labels + "," + labels + "]": {{"x"}, {"y"}}} {
		c := dial(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, answer) })
		got, err := c.Predict(ctx, PredictRequest{Inputs: PredictInputs{Sequences: texts}})
		require.NoError(t, err)
		require.Equal(t, slices.Repeat([][]Prediction{want}, len(texts)), got)
	}
}
