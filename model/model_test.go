package model

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"sluice/model/safetensors"
)

// copied is a copy of a tiny model, to be damaged.
func copied(t *testing.T, name string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), name)
	require.NoError(t, os.CopyFS(dir, os.DirFS(filepath.Join("testdata", name))))
	return dir
}

func put(t *testing.T, dir, name, content string) {
	t.Helper()
	path := filepath.Join(dir, name)
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
	require.NoError(t, os.WriteFile(path, []byte(content), 0o644))
}

// edit changes keys of config.json; nil removes one.
func edit(t *testing.T, dir string, changes map[string]any) {
	t.Helper()
	path := filepath.Join(dir, "config.json")
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	config := map[string]any{}
	require.NoError(t, json.Unmarshal(data, &config))
	for key, value := range changes {
		config[key] = value
		if value == nil {
			delete(config, key)
		}
	}
	data, err = json.Marshal(config)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(path, data, 0o644))
}

func TestLoad(t *testing.T) {
	m, err := Load("testdata/bert_gelu_tanh_h48")
	require.NoError(t, err)
	require.Equal(t, "bert_gelu_tanh_h48", m.Name)
	require.Equal(t, Config{Architecture: "BertModel", Hidden: 48, Layers: 3, Heads: 4, Intermediate: 64,
		Vocabulary: 500, Positions: 64, Types: 2, Activation: GELUTanh, Epsilon: 1e-5, Attention: make([]Attention, 3)}, m.Config)
	require.Equal(t, 12, m.Config.HeadSize())
	require.Equal(t, MeanPooling, m.Pooling)
	require.Equal(t, 64, m.MaxTokens)
	require.Len(t, m.Encoder.Layers, 3)
	require.Len(t, m.Encoder.Word, 500*48)
}

// The same weights, whichever way they are stored.
func TestLoadVariants(t *testing.T) {
	want, err := Load("testdata/bert")
	require.NoError(t, err)
	for _, name := range []string{"bert_sharded", "bert_legacy_names"} {
		got, err := Load(filepath.Join("testdata", name))
		require.NoError(t, err)
		require.Equal(t, want.Encoder, got.Encoder, name)
	}
}

func TestModules(t *testing.T) {
	dir := copied(t, "bert")
	put(t, dir, "modules.json", `[
		{"path": "", "type": "sentence_transformers.models.Transformer"},
		{"path": "1_Pooling", "type": "sentence_transformers.models.Pooling"},
		{"path": "2_Normalize", "type": "sentence_transformers.models.Normalize"}]`)
	put(t, dir, "sentence_bert_config.json", `{"max_seq_length": 40}`)
	put(t, dir, "1_Pooling/config.json", `{"word_embedding_dimension": 32, "pooling_mode_cls_token": true, "pooling_mode_mean_tokens": false}`)
	m, err := Load(dir)
	require.NoError(t, err)
	require.Equal(t, CLSPooling, m.Pooling)
	require.Equal(t, 40, m.MaxTokens)
	put(t, dir, "sentence_bert_config.json", `{"max_seq_length": 4000}`)
	m, err = Load(dir)
	require.NoError(t, err)
	require.Equal(t, 64, m.MaxTokens, "positions end there")
}

func TestModulesRefused(t *testing.T) {
	const pooling = `[{"path": "1_Pooling", "type": "sentence_transformers.models.Pooling"}]`
	for name, c := range map[string]struct{ modules, pooling, transformer, want string }{
		"module":          {`[{"path": "2_CNN", "type": "sentence_transformers.models.CNN"}]`, `{}`, `{}`, `"sentence_transformers.models.CNN"`},
		"prompt left out": {pooling, `{"pooling_mode_mean_tokens": true, "include_prompt": false}`, `{}`, "include_prompt"},
		"pooling last":    {`[{"path": "n", "type": "Normalize"}, {"path": "1_Pooling", "type": "Pooling"}]`, `{"pooling_mode": "cls"}`, `{}`, "Pooling after Pooling or Normalize"},
		"max pooling":     {pooling, `{"pooling_mode_max_tokens": true}`, `{}`, `pooling "max_tokens"`},
		"no pooling":      {pooling, `{}`, `{}`, `pooling ""`},
		"leaves folder":   {`[{"path": "../x", "type": "Pooling"}]`, `{}`, `{}`, `"../x"`},
		"not JSON":        {`[`, `{}`, `{}`, "modules.json"},
		"negative limit":  {`[{"path": "", "type": "Transformer"}]`, `{}`, `{"max_seq_length": -1}`, "max_seq_length is -1"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := copied(t, "bert")
			put(t, dir, "modules.json", c.modules)
			put(t, dir, "1_Pooling/config.json", c.pooling)
			put(t, dir, "sentence_bert_config.json", c.transformer)
			_, err := Load(dir)
			require.ErrorContains(t, err, c.want)
		})
	}
}

func TestConfigRefused(t *testing.T) {
	for name, c := range map[string]struct {
		changes map[string]any
		kind    error
		want    string
	}{
		"architecture":   {map[string]any{"architectures": []string{"ElectraModel"}, "model_type": "electra"}, ErrUnsupported, `"ElectraModel" of type "electra"; supported: BertModel`},
		"another head":   {map[string]any{"architectures": []string{"BertForTokenClassification"}}, ErrUnsupported, `"BertForTokenClassification"`},
		"another family": {map[string]any{"model_type": "roberta"}, ErrUnsupported, `"BertModel" of type "roberta"`},
		"head size":      {map[string]any{"head_dim": 9}, ErrUnsupported, "head_dim 9"},
		"activation":     {map[string]any{"hidden_act": "relu"}, ErrUnsupported, `hidden_act "relu"`},
		"positions":      {map[string]any{"position_embedding_type": "relative_key"}, ErrUnsupported, "relative_key"},
		"decoder":        {map[string]any{"is_decoder": true}, ErrUnsupported, "is_decoder"},
		"no hidden size": {map[string]any{"hidden_size": nil}, ErrInvalid, "hidden_size is 0"},
		"huge":           {map[string]any{"vocab_size": 1 << 40}, ErrInvalid, "vocab_size is 1099511627776"},
		"heads":          {map[string]any{"num_attention_heads": 5}, ErrInvalid, "not a multiple of num_attention_heads 5"},
		"epsilon":        {map[string]any{"layer_norm_eps": 0}, ErrInvalid, "layer_norm_eps is 0"},
		"type":           {map[string]any{"hidden_size": "wide"}, ErrInvalid, "config.json"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := copied(t, "bert")
			edit(t, dir, c.changes)
			_, err := Load(dir)
			require.ErrorIs(t, err, c.kind)
			require.ErrorContains(t, err, c.want)
			require.ErrorContains(t, err, "loading model bert")
		})
	}
}

func TestConfigDefaults(t *testing.T) {
	dir := copied(t, "bert")
	edit(t, dir, map[string]any{"architectures": nil, "hidden_act": nil, "layer_norm_eps": nil, "type_vocab_size": nil})
	m, err := Load(dir)
	require.NoError(t, err)
	want, err := Load("testdata/bert")
	require.NoError(t, err)
	require.Equal(t, want.Config, m.Config)
}

// The shapes of the tensors must be those that config.json announces.
func TestWrongShape(t *testing.T) {
	for key, tensor := range map[string]string{
		"vocab_size": "embeddings.word_embeddings.weight", "max_position_embeddings": "embeddings.position_embeddings.weight",
		"type_vocab_size": "embeddings.token_type_embeddings.weight", "intermediate_size": "encoder.layer.0.intermediate.dense.weight",
	} {
		dir := copied(t, "bert")
		edit(t, dir, map[string]any{key: 17})
		_, err := Load(dir)
		require.ErrorIs(t, err, safetensors.ErrFormat)
		require.ErrorContains(t, err, `tensor "`+tensor+`" has shape`)
		require.ErrorContains(t, err, "model.safetensors")
	}
	dir := copied(t, "bert")
	edit(t, dir, map[string]any{"num_hidden_layers": 4})
	_, err := Load(dir)
	require.ErrorContains(t, err, `no tensor "encoder.layer.3.attention.self.query.weight"`)
}

func TestTruncatedWeights(t *testing.T) {
	for _, size := range []int64{0, 7, 100, 200000} {
		dir := copied(t, "bert")
		require.NoError(t, os.Truncate(filepath.Join(dir, "model.safetensors"), size))
		_, err := Load(dir)
		require.ErrorIs(t, err, safetensors.ErrFormat)
		require.ErrorContains(t, err, "model.safetensors")
	}
}

func TestWrongChecksum(t *testing.T) {
	dir := copied(t, "bert")
	weights := filepath.Join(dir, "model.safetensors")
	sum, err := hashFile(weights)
	require.NoError(t, err)
	put(t, dir, sumsFile, sum+"  model.safetensors\n")
	_, err = Load(dir)
	require.NoError(t, err)
	data, err := os.ReadFile(weights)
	require.NoError(t, err)
	data[len(data)-1] ^= 1
	put(t, dir, "model.safetensors", string(data))
	_, err = Load(dir)
	require.ErrorIs(t, err, ErrInvalid)
	require.ErrorContains(t, err, "pull the model again")
}

// The digest changes with each thing that can change a vector, and with
// nothing else.
func TestDigest(t *testing.T) {
	digest := func(name string, change func(dir string)) string {
		dir := copied(t, name)
		change(dir)
		m, err := Load(dir)
		require.NoError(t, err)
		require.Len(t, m.Digest, 64)
		return m.Digest
	}
	const name = "bert_e2e_wordpiece_cased"
	same := digest(name, func(string) {})
	require.Equal(t, same, digest(name, func(dir string) { edit(t, dir, map[string]any{"transformers_version": "0"}) }))
	seen := map[string]string{same: "unchanged"}
	modules := `[{"path": "1_Pooling", "type": "Pooling"}, {"path": "", "type": "Transformer"}]`
	for what, change := range map[string]func(dir string){
		"activation": func(dir string) { edit(t, dir, map[string]any{"hidden_act": "gelu_new"}) },
		"epsilon":    func(dir string) { edit(t, dir, map[string]any{"layer_norm_eps": 1e-5}) },
		"pooling": func(dir string) {
			put(t, dir, "modules.json", modules)
			put(t, dir, "1_Pooling/config.json", `{"pooling_mode_cls_token": true}`)
		},
		"max tokens": func(dir string) {
			put(t, dir, "modules.json", modules)
			put(t, dir, "1_Pooling/config.json", `{"pooling_mode_mean_tokens": true}`)
			put(t, dir, "sentence_bert_config.json", `{"max_seq_length": 8}`)
		},
		"tokenizer": func(dir string) {
			data, err := os.ReadFile(filepath.Join(dir, tokenizerFile))
			require.NoError(t, err)
			put(t, dir, tokenizerFile, string(data)+"\n")
		},
		"weights": func(dir string) {
			data, err := os.ReadFile(filepath.Join(dir, "model.safetensors"))
			require.NoError(t, err)
			data = bytes.Clone(data)
			data[len(data)-1] ^= 1
			put(t, dir, "model.safetensors", string(data))
		},
	} {
		d := digest(name, change)
		require.NotContains(t, seen, d, what)
		seen[d] = what
	}
}

func TestNoSuchModel(t *testing.T) {
	_, err := Load(filepath.Join(t.TempDir(), "nothing"))
	require.ErrorIs(t, err, os.ErrNotExist)
	require.ErrorContains(t, err, "loading model nothing")
}

// FuzzParseConfig: what is accepted can size buffers and divide into heads.
func FuzzParseConfig(f *testing.F) {
	for _, name := range []string{"bert", "distilbert", "roberta", "mpnet", "modernbert", "modernbert_hub_config", "nomic_bert", "gte"} {
		data, err := os.ReadFile(filepath.Join("testdata", name, "config.json"))
		require.NoError(f, err)
		f.Add(data)
	}
	f.Add([]byte(`{"model_type":"bert","hidden_size":-1,"num_attention_heads":0}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := ParseConfig(data)
		if err != nil {
			return
		}
		require.Positive(t, c.HeadSize())
		require.Equal(t, c.Hidden, c.HeadSize()*c.Heads)
		require.NotEmpty(t, c.Activation)
		for _, size := range []int{c.Layers, c.Intermediate, c.Vocabulary, c.Positions, len(c.Attention)} {
			require.Positive(t, size)
		}
	})
}
