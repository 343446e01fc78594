package server

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"sluice/gpu"
	"sluice/model"
	"sluice/model/tokenizer"
	"sluice/needs"
)

// Published clients against the daemon: what they read is what the engine
// itself says. `make test` installs them.

var clientTexts = []string{"What is a KEP?", "volunteer days EU", "ein Ünïcode 漢字 text"}

// python is the interpreter that has the clients.
func python(t *testing.T) string {
	t.Helper()
	return filepath.Join(needs.Installed(t, "clients", "clients"), "bin", "python")
}

// clientTest is a daemon with models and a query with passages for it.
type clientTest struct {
	*daemon
	query    string
	passages []string
	ids      [][]int32
}

func startClientTest(t *testing.T) clientTest {
	t.Helper()
	c := clientTest{daemon: startModels(t)}
	for _, pair := range goldenPairs(t) {
		c.query = pair.Text[0]
		c.passages = append(c.passages, pair.Text[1])
	}
	c.query = goldenPairs(t)[0].Text[0]
	for _, text := range clientTexts {
		var e tokenizer.Encoding
		require.NoError(t, c.fake.models.Tokenizer().Encode(&e, text, tokenizer.Options{NoSpecialTokens: true}))
		c.ids = append(c.ids, slices.Clone(e.IDs))
	}
	return c
}

// ask runs a script and reads what it prints.
func (c clientTest) ask(script string, out any) {
	c.t.Helper()
	text := func(v any) string {
		data, err := json.Marshal(v)
		require.NoError(c.t, err)
		return string(data)
	}
	command := exec.CommandContext(c.t.Context(), python(c.t), filepath.Join("testdata", "clients", script))
	command.Env = append(os.Environ(), "URL="+c.url, "KEY="+keys["alice"].key, "MODEL="+embeddingModel, "RERANKER="+rerankingModel,
		"TEXTS="+text(clientTexts), "IDS="+text(c.ids), "LONG="+words(100), "QUERY="+c.query, "PASSAGES="+text(c.passages),
		"HF_HUB_DISABLE_TELEMETRY=1", "HF_HUB_OFFLINE=0", "LANGSMITH_TRACING=false", "no_proxy=127.0.0.1", "NO_PROXY=127.0.0.1")
	var stderr bytes.Buffer
	command.Stderr = &stderr
	printed, err := command.Output()
	require.NoError(c.t, err, "%s", &stderr)
	require.NoError(c.t, json.Unmarshal(printed, out), "%s", printed)
}

// embed is the engine's own word.
func (c clientTest) embed(r gpu.Request) (vectors [][]float32, tokens int) {
	c.t.Helper()
	embeddings, err := c.fake.models.Embed(c.t.Context(), r)
	require.NoError(c.t, err)
	for _, e := range embeddings {
		vectors = append(vectors, e.Vector)
		tokens += e.Tokens
	}
	return vectors, tokens
}

// requireVectors allows for what a float loses on its way through decimals.
func requireVectors(t *testing.T, want, got [][]float32, what string) {
	t.Helper()
	require.Len(t, got, len(want), what)
	for i := range want {
		require.Len(t, got[i], len(want[i]), what)
		require.InDeltaSlice(t, want[i], got[i], 1e-7, what)
	}
}

// The client asks for base64 by default (openai-python#1490).
func TestOpenAIPython(t *testing.T) {
	c := startClientTest(t)
	type failure struct {
		Class  string
		Status int
		Code   string
		Type   string
	}
	var got struct {
		List, String, Float, IDs [][]float32
		OneIDs                   [][]float32 `json:"one_ids"`
		Dimensions               [][]float32
		Tokens                   int
		NoModel                  failure `json:"no_model"`
		Empty, Unauthorized      failure
	}
	c.ask("ask_openai.py", &got)
	want, tokens := c.embed(gpu.Request{Texts: clientTexts})
	requireVectors(t, want, got.List, "list")
	requireVectors(t, want[:1], got.String, "string")
	requireVectors(t, want, got.Float, "float")
	requireVectors(t, want, got.IDs, "token ids")
	requireVectors(t, want[:1], got.OneIDs, "token ids of one text")
	require.Equal(t, tokens, got.Tokens)
	for i, v := range want {
		want[i] = model.Shorten(v, 8)
	}
	requireVectors(t, want, got.Dimensions, "dimensions")
	require.Equal(t, failure{"NotFoundError", 404, "model_not_found", "invalid_request_error"}, got.NoModel)
	require.Equal(t, failure{"BadRequestError", 400, "", "invalid_request_error"}, got.Empty)
	require.Equal(t, failure{"AuthenticationError", 401, "invalid_api_key", "invalid_request_error"}, got.Unauthorized)
}

func TestHuggingFaceInferenceClient(t *testing.T) {
	c := startClientTest(t)
	var got struct {
		List, Root, Raw, Prompted, Cut [][]float32
		Similarity                     []float32
		TooLong                        struct {
			Status int
			Body   map[string]string
		} `json:"too_long"`
	}
	c.ask("ask_huggingface.py", &got)
	want, _ := c.embed(gpu.Request{Texts: clientTexts})
	requireVectors(t, want, got.List, "list")
	requireVectors(t, want[:1], got.Root, "root")
	for i, v := range got.Raw {
		n := length(v)
		require.Greater(t, n, 1.1)
		for j := range v {
			require.InDelta(t, want[i][j], float64(v[j])/n, 1e-6)
		}
	}
	var prompted []string
	for _, text := range clientTexts {
		prompted = append(prompted, "query: "+text)
	}
	want, _ = c.embed(gpu.Request{Texts: prompted})
	requireVectors(t, want, got.Prompted, "prompted")
	want, _ = c.embed(gpu.Request{Texts: []string{words(limit - 2)}})
	requireVectors(t, want, got.Cut, "cut")
	require.Len(t, got.Similarity, len(clientTexts))
	require.InDelta(t, 1, got.Similarity[0], 1e-6)
	require.Equal(t, 413, got.TooLong.Status)
	require.Equal(t, "Validation", got.TooLong.Body["error_type"])
}

func TestCoherePython(t *testing.T) {
	c := startClientTest(t)
	var got struct {
		All, Top, Cut [][2]float64
		NoModel       struct {
			Class, Message string
			Status         int
		} `json:"no_model"`
	}
	c.ask("ask_cohere.py", &got)
	scores, err := c.fake.reranker.Score(t.Context(), gpu.ScoreRequest{Pairs: gpu.Pairs(c.query, c.passages)})
	require.NoError(t, err)
	require.Len(t, got.All, len(c.passages))
	for rank, i := range gpu.Order(scores) {
		require.Equal(t, float64(i), got.All[rank][0])
		require.InDelta(t, scores[i].Probability(), got.All[rank][1], 1e-6)
	}
	require.Equal(t, got.All[:1], got.Top)
	require.NotEqual(t, got.All, got.Cut)
	require.Equal(t, "NotFoundError", got.NoModel.Class)
	require.Contains(t, got.NoModel.Message, rerankingModel)
}

func TestLangChain(t *testing.T) {
	c := startClientTest(t)
	var got struct {
		HuggingFace      [][]float32 `json:"huggingface"`
		HuggingFaceQuery []float32   `json:"huggingface_query"`
		OpenAI           [][]float32 `json:"openai"`
		OpenAIQuery      []float32   `json:"openai_query"`
	}
	c.ask("ask_langchain.py", &got)
	want, _ := c.embed(gpu.Request{Texts: clientTexts})
	requireVectors(t, want, got.HuggingFace, "langchain-huggingface")
	requireVectors(t, want, got.OpenAI, "langchain-openai")
	requireVectors(t, want[:1], [][]float32{got.HuggingFaceQuery}, "langchain-huggingface query")
	requireVectors(t, want[:1], [][]float32{got.OpenAIQuery}, "langchain-openai query")
}
