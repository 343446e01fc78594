package model

import (
	"encoding/binary"
	"encoding/json"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"sluice/model/safetensors"
)

func TestFamiliesShapes(t *testing.T) {
	local, global := Attention{Window: 8, Theta: 10000}, Attention{Theta: 160000}
	for name, want := range map[string]Config{
		"distilbert": {Architecture: "DistilBertModel", Positions: 64},
		"roberta":    {Architecture: "RobertaModel", Positions: 64, Offset: 2, Types: 1},
		"mpnet":      {Architecture: "MPNetModel", Positions: 200, Offset: 2, Buckets: 32},
		"modernbert": {Architecture: "ModernBertModel", Positions: 256, Gated: true, PreNorm: true,
			Attention: []Attention{global, local, local, global}},
		"modernbert_hub_config": {Architecture: "ModernBertModel", Positions: 256, Gated: true, PreNorm: true,
			Attention: []Attention{global, local, local, global}},
		"nomic_bert": {Architecture: "NomicBertModel", Positions: 128, Types: 2, Gated: true, Activation: SiLU,
			Attention: []Attention{{Theta: 1000}, {Theta: 1000}, {Theta: 1000}}},
		"gte": {Architecture: "GteModel", Positions: 128, Types: 1, Gated: true,
			Attention: []Attention{{Theta: 160000}, {Theta: 160000}, {Theta: 160000}}},
	} {
		m, err := Load(filepath.Join("testdata", name))
		require.NoError(t, err, name)
		got := m.Config
		if want.Activation == "" {
			want.Activation = GELU
		}
		if want.Attention == nil {
			want.Attention = make([]Attention, 3)
		}
		want.Hidden, want.Layers, want.Heads = 32, len(want.Attention), 4
		want.Intermediate, want.Vocabulary, want.Epsilon = got.Intermediate, 600, got.Epsilon
		require.Equal(t, want, got, name)
		require.Equal(t, want.Positions, m.MaxTokens, name)
	}
}

// Keys as Nomic and Alibaba publish them.
func TestHubConfigs(t *testing.T) {
	c, err := ParseConfig([]byte(`{"architectures": ["NomicBertModel"], "model_type": "nomic_bert", "activation_function": "swiglu",
		"n_embd": 768, "n_head": 12, "n_inner": 3072, "n_layer": 2, "n_positions": 8192, "vocab_size": 30528, "type_vocab_size": 2,
		"layer_norm_epsilon": 1e-12, "rotary_emb_base": 1000, "rotary_emb_fraction": 1.0, "rotary_emb_interleaved": false,
		"rotary_emb_scale_base": null, "rotary_scaling_factor": 2, "max_trained_positions": 2048, "prenorm": false, "qkv_proj_bias": false}`))
	require.NoError(t, err)
	require.Equal(t, Config{Architecture: "NomicBertModel", Hidden: 768, Layers: 2, Heads: 12, Intermediate: 3072, Vocabulary: 30528,
		Positions: 2048, Types: 2, Activation: SiLU, Gated: true, Epsilon: 1e-12, Attention: []Attention{{Theta: 1000}, {Theta: 1000}}}, c)
	c, err = ParseConfig([]byte(`{"architectures": ["NewModel"], "model_type": "new", "hidden_act": "gelu", "hidden_size": 768,
		"intermediate_size": 3072, "num_attention_heads": 12, "num_hidden_layers": 1, "max_position_embeddings": 8192, "vocab_size": 30528,
		"type_vocab_size": 0, "position_embedding_type": "rope", "rope_theta": 500000, "rope_scaling": {"factor": 2.0, "type": "ntk"}}`))
	require.NoError(t, err)
	require.Equal(t, []Attention{{Theta: 1e6, Stretch: math.Pow(2, 1./32)}}, c.Attention)
	require.Zero(t, c.Types)
}

func TestFamiliesRefuse(t *testing.T) {
	for name, c := range map[string]struct {
		model   string
		changes map[string]any
		want    string
	}{
		"buckets":     {"mpnet", map[string]any{"relative_attention_num_buckets": 16}, "relative_attention_num_buckets 16"},
		"norm bias":   {"modernbert", map[string]any{"norm_bias": true}, "norm_bias"},
		"layer type":  {"modernbert", map[string]any{"layer_types": []string{"full_attention", "chunked", "full_attention", "full_attention"}}, `"chunked"`},
		"layer types": {"modernbert", map[string]any{"layer_types": []string{"full_attention"}}, "1 layer_types for 4 layers"},
		"yarn":        {"gte", map[string]any{"rope_parameters": map[string]any{"rope_type": "yarn", "rope_theta": 1e4, "factor": 4}}, `"yarn"`},
		"no theta":    {"gte", map[string]any{"rope_parameters": map[string]any{"rope_theta": 0}}, "rope_theta 0"},
		"positions":   {"gte", map[string]any{"position_embedding_type": "absolute"}, `"absolute"`},
		"log scale":   {"gte", map[string]any{"logn_attention_scale": true}, "logn_attention_scale true"},
		"experts":     {"nomic_bert", map[string]any{"moe_every_n_layers": 2}, "moe_every_n_layers"},
		"interleaved": {"nomic_bert", map[string]any{"rotary_emb_interleaved": true}, "rotary_emb_interleaved"},
		"odd heads":   {"nomic_bert", map[string]any{"head_dim": nil, "num_attention_heads": 32}, "even head size"},
		"no room":     {"roberta", map[string]any{"max_position_embeddings": 2}, "room for 0 tokens"},
		"labels":      {"bert_seqcls_3", map[string]any{"id2label": map[string]string{"0": "a", "2": "c"}}, "none with id 1"},
		"one label":   {"bert_seqcls_3", map[string]any{"id2label": map[string]string{"0": "a"}}, `tensor "classifier.weight" has shape`},
		"score":       {"bert_seqcls", map[string]any{"sentence_transformers": map[string]any{"activation_fn": "torch.nn.modules.activation.Tanh"}}, "activation.Tanh"},
		"head":        {"modernbert_seqcls_mean", map[string]any{"classifier_pooling": "max"}, `classifier_pooling "max"`},
		"no head":     {"nomic_bert", map[string]any{"architectures": []string{"NomicBertForSequenceClassification"}}, `"NomicBertForSequenceClassification"`},
		"head absent": {"bert", map[string]any{"architectures": []string{"BertForSequenceClassification"}}, `no tensor "classifier.weight"`},
	} {
		t.Run(name, func(t *testing.T) {
			dir := copied(t, c.model)
			edit(t, dir, c.changes)
			_, err := Load(dir)
			require.ErrorContains(t, err, c.want)
		})
	}
}

// rename changes a tensor's name in the weights to one of equal length.
func rename(t *testing.T, dir, from, to string) {
	t.Helper()
	require.Len(t, to, len(from))
	data, err := os.ReadFile(filepath.Join(dir, "model.safetensors"))
	require.NoError(t, err)
	header := 8 + binary.LittleEndian.Uint64(data)
	require.Contains(t, string(data[:header]), from)
	put(t, dir, "model.safetensors", strings.Replace(string(data[:header]), from, to, 1)+string(data[header:]))
}

// A layer with more in it than its architecture has is another architecture.
func TestStrangeTensors(t *testing.T) {
	dir := copied(t, "bert")
	rename(t, dir, `"pooler.dense.bias"`, `"encoder.layer.0.q"`)
	_, err := Load(dir)
	require.ErrorIs(t, err, ErrUnsupported)
	require.ErrorContains(t, err, `"encoder.layer.0.q"`)
	dir = copied(t, "mpnet")
	rename(t, dir, `"embeddings.LayerNorm.bias"`, `"embeddings.LayerNorm.bIas"`)
	_, err = Load(dir)
	require.ErrorIs(t, err, safetensors.ErrFormat)
	require.ErrorContains(t, err, `no tensor "embeddings.LayerNorm.bias"`)
}

func TestClassifierScores(t *testing.T) {
	const identity = "torch.nn.modules.linear.Identity"
	for name, c := range map[string]struct {
		model   string
		changes map[string]any
		sigmoid bool
	}{
		"one label":    {"bert_seqcls", nil, true},
		"three labels": {"bert_seqcls_3", nil, false},
		"raw":          {"bert_seqcls", map[string]any{"sentence_transformers": map[string]any{"activation_fn": identity, "version": "5.0"}}, false},
		"raw, old key": {"bert_seqcls", map[string]any{"sbert_ce_default_activation_function": identity}, false},
		"sigmoid":      {"bert_seqcls_3", map[string]any{"sentence_transformers": map[string]any{"activation_fn": "torch.nn.modules.activation.Sigmoid"}}, true},
	} {
		t.Run(name, func(t *testing.T) {
			dir := copied(t, c.model)
			edit(t, dir, c.changes)
			m, err := Load(dir)
			require.NoError(t, err)
			require.Equal(t, c.sigmoid, m.Classifier.Sigmoid)
			score := m.Classifier.Score(-2.5)
			if want := float32(-2.5); c.sigmoid {
				require.InDelta(t, 0.0758581800, score, 1e-8)
			} else {
				require.Equal(t, want, score)
			}
		})
	}
	m, err := Load("testdata/bert_seqcls_3")
	require.NoError(t, err)
	require.Equal(t, []string{"LABEL_0", "LABEL_1", "LABEL_2"}, m.Classifier.Labels)
	m, err = Load("testdata/bert")
	require.NoError(t, err)
	require.Nil(t, m.Classifier)
}

// A checkpoint of masked language modelling is an encoder with a head that
// nobody asks.
func TestMaskedLanguageModel(t *testing.T) {
	dir := copied(t, "mpnet")
	edit(t, dir, map[string]any{"architectures": []string{"MPNetForMaskedLM"}})
	m, err := Load(dir)
	require.NoError(t, err)
	require.Nil(t, m.Classifier)
}

// safetensor writes a file with one matrix and, if there is one, a bias.
func safetensor(t *testing.T, path string, rows, columns int, weight, bias []float32) {
	t.Helper()
	header := map[string]any{"linear.weight": map[string]any{"dtype": "F32", "shape": []int{rows, columns}, "data_offsets": []int{0, 4 * len(weight)}}}
	if bias != nil {
		header["linear.bias"] = map[string]any{"dtype": "F32", "shape": []int{rows}, "data_offsets": []int{4 * len(weight), 4 * (len(weight) + len(bias))}}
	}
	text, err := json.Marshal(header)
	require.NoError(t, err)
	data := append(binary.LittleEndian.AppendUint64(nil, uint64(len(text))), text...)
	for _, x := range append(weight[:len(weight):len(weight)], bias...) {
		data = binary.LittleEndian.AppendUint32(data, math.Float32bits(x))
	}
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
	require.NoError(t, os.WriteFile(path, data, 0o644))
}

// withDense is a model with a Dense module that swaps two dimensions and drops
// the others.
func withDense(t *testing.T, activation string, bias []float32) string {
	dir := copied(t, "bert")
	put(t, dir, "modules.json", `[{"path": "", "type": "Transformer"}, {"path": "1_Pooling", "type": "Pooling"},
		{"path": "2_Dense", "type": "sentence_transformers.models.Dense"}, {"path": "3_Normalize", "type": "Normalize"}]`)
	put(t, dir, "1_Pooling/config.json", `{"pooling_mode_lasttoken": true}`)
	config, err := json.Marshal(map[string]any{"in_features": 32, "out_features": 2, "bias": bias != nil, "activation_function": activation})
	require.NoError(t, err)
	put(t, dir, "2_Dense/config.json", string(config))
	weight := make([]float32, 64)
	weight[1], weight[32] = 1, 1
	safetensor(t, filepath.Join(dir, "2_Dense", "model.safetensors"), 2, 32, weight, bias)
	return dir
}

func TestDenseModule(t *testing.T) {
	m, err := Load(withDense(t, "torch.nn.modules.activation.Tanh", []float32{0.25, -1}))
	require.NoError(t, err)
	require.Equal(t, LastPooling, m.Pooling)
	require.Equal(t, 2, m.Dimensions())
	last := matrix{make([]float64, 32), make([]float64, 32)}
	last[1][0], last[1][1] = 0.5, 3
	require.InDeltaSlice(t, []float64{math.Tanh(3.25), math.Tanh(-0.5)}, newOracle(m).embedding(last), 1e-12)
	m, err = Load(withDense(t, "torch.nn.modules.linear.Identity", nil))
	require.NoError(t, err)
	require.InDeltaSlice(t, []float64{3, 0.5}, newOracle(m).embedding(last), 1e-12)
}

func TestDenseModuleRefused(t *testing.T) {
	load := func(change func(dir string)) error {
		dir := withDense(t, "torch.nn.modules.linear.Identity", nil)
		change(dir)
		_, err := Load(dir)
		return err
	}
	require.ErrorContains(t, load(func(dir string) {
		put(t, dir, "2_Dense/config.json", `{"in_features": 31, "out_features": 2, "bias": false}`)
	}), `tensor "linear.weight" has shape`)
	require.ErrorContains(t, load(func(dir string) {
		safetensor(t, filepath.Join(dir, "2_Dense", "model.safetensors"), 2, 31, make([]float32, 62), nil)
		put(t, dir, "2_Dense/config.json", `{"in_features": 31, "out_features": 2, "bias": false}`)
	}), "takes 31 dimensions where there are 32")
	require.ErrorContains(t, load(func(dir string) {
		put(t, dir, "2_Dense/config.json", `{"in_features": 32, "out_features": 2, "activation_function": "my.Own"}`)
	}), `"my.Own"`)
	require.ErrorContains(t, load(func(dir string) {
		put(t, dir, "modules.json", `[{"path": "1_Pooling", "type": "Pooling"}, {"path": "n", "type": "Normalize"}, {"path": "2_Dense", "type": "Dense"}]`)
	}), "after Normalize")
	require.ErrorContains(t, load(func(dir string) {
		put(t, dir, "modules.json", `[{"path": "", "type": "Transformer"}, {"path": "2_Dense", "type": "pylate.models.Dense.Dense"}]`)
	}), "Dense before Pooling")
	require.ErrorContains(t, load(func(dir string) {
		put(t, dir, "2_Dense/config.json", `{"in_features": 32, "out_features": 2, "module_input_name": "token_embeddings"}`)
	}), `"token_embeddings"`)
	require.ErrorIs(t, load(func(dir string) {
		require.NoError(t, os.Remove(filepath.Join(dir, "2_Dense", "model.safetensors")))
	}), os.ErrNotExist)
}

// Sums of files of the same name in different folders are kept apart.
func TestSumsOfModules(t *testing.T) {
	dir := withDense(t, "Tanh", nil)
	sum, err := hashFile(filepath.Join(dir, "2_Dense", "model.safetensors"))
	require.NoError(t, err)
	put(t, dir, sumsFile, sum+"  2_Dense/model.safetensors\n")
	_, err = Load(dir)
	require.NoError(t, err)
	put(t, dir, sumsFile, strings.Repeat("0", 64)+"  2_Dense/model.safetensors\n")
	_, err = Load(dir)
	require.ErrorContains(t, err, "pull the model again")
}

func TestPrompts(t *testing.T) {
	dir := copied(t, "bert")
	load := func(config string) (Prompts, error) {
		put(t, dir, "config_sentence_transformers.json", config)
		m, err := Load(dir)
		if err != nil {
			return Prompts{}, err
		}
		return m.Prompts, nil
	}
	p, err := load(`{"prompts": {"query": "query: ", "document": "passage: "}, "default_prompt_name": "document", "similarity_fn_name": "cosine"}`)
	require.NoError(t, err)
	for name, want := range map[string]string{"query": "query: ", "document": "passage: ", "": "passage: "} {
		got, err := p.Prompt(name)
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
	_, err = p.Prompt("title")
	require.ErrorIs(t, err, ErrUnknownPrompt)
	require.Equal(t, []string{"query: ", "passage: "}, []string{p.Query(), p.Document()})
	p, err = load(`{"prompts": {"passage": "p: ", "other": "o: "}, "default_prompt_name": "other"}`)
	require.NoError(t, err)
	require.Equal(t, []string{"o: ", "p: "}, []string{p.Query(), p.Document()})
	p, err = load(`{"prompts": {}, "default_prompt_name": null}`)
	require.NoError(t, err)
	require.Empty(t, p.Query()+p.Document())
	none, err := p.Prompt("")
	require.NoError(t, err)
	require.Empty(t, none)
	_, err = load(`{"prompts": {"query": "q"}, "default_prompt_name": "document"}`)
	require.ErrorIs(t, err, ErrInvalid)
	require.ErrorContains(t, err, `"document"`)
}

func TestTokenizersLimit(t *testing.T) {
	dir := copied(t, "roberta")
	for config, want := range map[string]int{
		`{"model_max_length": 40}`: 40, `{"model_max_length": 512}`: 64, `{}`: 64,
		`{"model_max_length": 1000000000000000019884624838656}`: 64,
	} {
		put(t, dir, "tokenizer_config.json", config)
		m, err := Load(dir)
		require.NoError(t, err)
		require.Equal(t, want, m.MaxTokens, config)
	}
}

func TestShorten(t *testing.T) {
	require.Equal(t, []float32{0.6, 0.8}, Shorten([]float32{0.3, 0.4, 0.5}, 2))
	require.Equal(t, []float32{0, 0}, Shorten([]float32{0, 0, 1}, 2))
}

// What only some models have is in the digest as well.
func TestDigestOfParts(t *testing.T) {
	digest := func(dir string) string {
		m, err := Load(dir)
		require.NoError(t, err)
		return m.Digest
	}
	changed := func(name string, changes map[string]any) string {
		dir := copied(t, name)
		edit(t, dir, changes)
		return digest(dir)
	}
	for name, changes := range map[string]map[string]any{
		"bert_seqcls":            {"sbert_ce_default_activation_function": "torch.nn.Identity"},
		"bert_seqcls_3":          {"id2label": map[string]string{"0": "a", "1": "b", "2": "c"}},
		"modernbert_seqcls_mean": {"classifier_pooling": "cls"},
		"modernbert_hub_config":  {"local_attention": 18},
		"roberta":                {"pad_token_id": 0, "max_position_embeddings": 66},
	} {
		require.Equal(t, changed(name, map[string]any{"x": 1}), changed(name, map[string]any{"x": 2}), name)
		require.NotEqual(t, changed(name, nil), changed(name, changes), name)
	}
	tanh := withDense(t, "Tanh", nil)
	plain := digest(tanh)
	require.NotEqual(t, plain, digest(withDense(t, "Identity", nil)))
	weight := make([]float32, 64)
	safetensor(t, filepath.Join(tanh, "2_Dense", "model.safetensors"), 2, 32, weight, nil)
	require.NotEqual(t, plain, digest(tanh))
}

// withHead rewrites a model's weights: its tensors get a prefix, and those of
// a head, of these shapes, are added. Each is filled with its number, from 1 on.
func withHead(t *testing.T, name, class, prefix string, head map[string][]int) string {
	dir := copied(t, name)
	edit(t, dir, map[string]any{"architectures": []string{class}, "id2label": map[string]string{"0": "no", "1": "yes"}})
	data, err := os.ReadFile(filepath.Join(dir, "model.safetensors"))
	require.NoError(t, err)
	n := 8 + binary.LittleEndian.Uint64(data)
	tensors, renamed := map[string]json.RawMessage{}, map[string]any{}
	require.NoError(t, json.Unmarshal(data[8:n], &tensors))
	for name, info := range tensors {
		if name != "__metadata__" {
			renamed[prefix+name] = info
		}
	}
	data = data[n:]
	for i, name := range slices.Sorted(maps.Keys(head)) {
		size, from := 1, len(data)
		for _, d := range head[name] {
			size *= d
		}
		for range size {
			data = binary.LittleEndian.AppendUint32(data, math.Float32bits(float32(i+1)))
		}
		renamed[name] = map[string]any{"dtype": "F32", "shape": head[name], "data_offsets": []int{from, len(data)}}
	}
	header, err := json.Marshal(renamed)
	require.NoError(t, err)
	file := append(binary.LittleEndian.AppendUint64(nil, uint64(len(header))), header...)
	put(t, dir, "model.safetensors", string(append(file, data...)))
	return dir
}

// Heads of which there are no goldens, by the names and functions that
// transformers gives them.
func TestHeads(t *testing.T) {
	for class, c := range map[string]struct {
		model, prefix, dense, out string
		activation                Activation
	}{
		"DistilBertForSequenceClassification": {"distilbert", "distilbert.", "pre_classifier", "classifier", ReLU},
		"MPNetForSequenceClassification":      {"mpnet", "mpnet.", "classifier.dense", "classifier.out_proj", Tanh},
		"GteForSequenceClassification":        {"gte", "gte.", "gte.pooler.dense", "classifier", Tanh},
	} {
		m, err := Load(withHead(t, c.model, class, c.prefix, map[string][]int{
			c.out + ".bias": {2}, c.out + ".weight": {2, 32}, c.dense + ".bias": {32}, c.dense + ".weight": {32, 32},
		}))
		require.NoError(t, err, class)
		h := m.Classifier
		require.Equal(t, []string{"no", "yes"}, h.Labels, class)
		require.Equal(t, c.activation, h.Activation, class)
		require.Equal(t, CLSPooling, h.Pooling, class)
		require.False(t, h.Sigmoid, class)
		require.Nil(t, h.Norm.Gain, class)
		numbers := []float32{h.Out.Bias[0], h.Out.Weight[0], h.Dense.Bias[0], h.Dense.Weight[0]}
		require.ElementsMatch(t, []float32{1, 2, 3, 4}, numbers, class)
		require.Equal(t, h.Out.Bias[0]+1, h.Out.Weight[0], class)
		base, err := Load(filepath.Join("testdata", c.model))
		require.NoError(t, err)
		require.Equal(t, base.Encoder, m.Encoder, class)
	}
}
