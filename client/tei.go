package client

import (
	"encoding/json"
	"errors"
)

// The wire of text-embeddings-inference. Truncate: a text that is longer than
// the model takes is cut, at its end or (TruncationDirection "left") at its
// start, and the header Sluice-Truncated counts those; otherwise it is refused.
// PromptName: which of the model's prompts is put before each text.

// EmbedRequest is the body of POST /embed. The answer is a vector per input.
type EmbedRequest struct {
	Inputs              Inputs `json:"inputs"` // 1 to 2,048
	Truncate            bool   `json:"truncate,omitempty"`
	TruncationDirection string `json:"truncation_direction,omitempty"` // "right" (default), "left"
	PromptName          string `json:"prompt_name,omitempty"`
	Normalize           *bool  `json:"normalize,omitempty"`  // to unit length; default true
	Dimensions          int    `json:"dimensions,omitempty"` // the first so many; none: all
}

// EmbedAllRequest is the body of POST /embed_all. The answer is a vector per
// token of each input: the last hidden state, special tokens included.
type EmbedAllRequest struct {
	Inputs              Inputs `json:"inputs"` // 1 to 2,048
	Truncate            bool   `json:"truncate,omitempty"`
	TruncationDirection string `json:"truncation_direction,omitempty"`
	PromptName          string `json:"prompt_name,omitempty"`
}

// SimilarityRequest is the body of POST /similarity. The answer is each
// sentence's cosine to the source.
type SimilarityRequest struct {
	Inputs     SimilarityInputs     `json:"inputs"`
	Parameters SimilarityParameters `json:"parameters,omitzero"`
}

// SimilarityInputs is what is compared with what.
type SimilarityInputs struct {
	SourceSentence string   `json:"source_sentence"`
	Sentences      []string `json:"sentences"` // 1 to 2,047
}

// SimilarityParameters are those of an EmbedRequest.
type SimilarityParameters struct {
	Truncate            bool   `json:"truncate,omitempty"`
	TruncationDirection string `json:"truncation_direction,omitempty"`
	PromptName          string `json:"prompt_name,omitempty"`
}

// RankRequest is the body of POST /rerank. The answer is Ranks, best first.
type RankRequest struct {
	Query               string   `json:"query"` // 64 KiB at most
	Texts               []string `json:"texts"` // 1 to 2,048
	Truncate            bool     `json:"truncate,omitempty"`
	TruncationDirection string   `json:"truncation_direction,omitempty"`
	TruncationStrategy  string   `json:"truncation_strategy,omitempty"` // "only_second" (default) cuts the text, not the query; "longest_first"
	RawScores           bool     `json:"raw_scores,omitempty"`          // logits, not their sigmoids
	ReturnText          bool     `json:"return_text,omitempty"`
}

// Rank is one text's score.
type Rank struct {
	Index int     `json:"index"`
	Score float32 `json:"score"`
	Text  *string `json:"text,omitempty"`
}

// PredictRequest is the body of POST /predict. The answer is Predictions, or,
// of a batch, a list of them per input.
type PredictRequest struct {
	Inputs              PredictInputs `json:"inputs"`
	Truncate            bool          `json:"truncate,omitempty"`
	TruncationDirection string        `json:"truncation_direction,omitempty"`
	TruncationStrategy  string        `json:"truncation_strategy,omitempty"`
	RawScores           bool          `json:"raw_scores,omitempty"`
}

// PredictInputs is sequences of one or two texts. On the wire: "a", or
// ["a", "b"] for a pair; in a batch [["a"], ["a", "b"], …].
type PredictInputs struct {
	Sequences [][]string
	Batch     bool // the answer is a list per sequence
}

// MarshalJSON writes a batch as such.
func (in PredictInputs) MarshalJSON() ([]byte, error) {
	if in.Batch || len(in.Sequences) != 1 {
		return json.Marshal(in.Sequences)
	}
	return json.Marshal(in.Sequences[0])
}

// UnmarshalJSON reads any of the forms.
func (in *PredictInputs) UnmarshalJSON(data []byte) error {
	*in = PredictInputs{}
	if one, err := texts(data); err == nil {
		in.Sequences = [][]string{one}
		return in.check()
	}
	several, err := list[json.RawMessage](data)
	if err != nil {
		return errSequences
	}
	in.Batch, in.Sequences = true, make([][]string, len(several))
	for i, one := range several {
		if in.Sequences[i], err = list[string](one); err != nil {
			return errSequences
		}
	}
	return in.check()
}

var errSequences = errors.New("expected a string, a pair of strings, or a list of lists of one or two strings")

func (in *PredictInputs) check() error {
	for _, s := range in.Sequences {
		if len(s) < 1 || len(s) > 2 {
			return errSequences
		}
	}
	return nil
}

// Prediction is one label's score.
type Prediction struct {
	Score float32 `json:"score"`
	Label string  `json:"label"`
}

// TokenizeRequest is the body of POST /tokenize, 1 MiB at most. The answer is
// Tokens per input.
type TokenizeRequest struct {
	Inputs           Texts  `json:"inputs"`                       // 1 to 2,048
	AddSpecialTokens *bool  `json:"add_special_tokens,omitempty"` // default true
	PromptName       string `json:"prompt_name,omitempty"`
}

// Token is one token and its place in the text, in characters; special ones
// have none.
type Token struct {
	ID      int32  `json:"id"`
	Text    string `json:"text"`
	Special bool   `json:"special"`
	Start   *int   `json:"start"`
	Stop    *int   `json:"stop"`
}

// DecodeRequest is the body of POST /decode. The answer is a text per input.
type DecodeRequest struct {
	IDs               TokenIDs `json:"ids"`                           // of 1 to 2,048 texts
	SkipSpecialTokens *bool    `json:"skip_special_tokens,omitempty"` // default true
}

// ModelInfo answers GET /info: the embedding model, and the reranker beside it.
type ModelInfo struct {
	ModelID               string        `json:"model_id"`
	ModelSHA              string        `json:"model_sha"`   // digest of all that decides a vector
	ModelDtype            string        `json:"model_dtype"` // the precision: "f32", "bf16", "int8"
	ModelType             ModelType     `json:"model_type"`
	Reranker              *RerankerInfo `json:"reranker,omitempty"`
	MaxConcurrentRequests int           `json:"max_concurrent_requests"`
	MaxInputLength        int           `json:"max_input_length"` // tokens, special ones included
	MaxBatchTokens        int           `json:"max_batch_tokens"`
	MaxClientBatchSize    int           `json:"max_client_batch_size"`
	AutoTruncate          bool          `json:"auto_truncate"`
	TokenizationWorkers   int           `json:"tokenization_workers"`
	Version               string        `json:"version"`
}

// ModelType says what a model does.
type ModelType struct {
	Embedding EmbeddingModel `json:"embedding"`
}

// EmbeddingModel is how a vector is made of tokens' vectors.
type EmbeddingModel struct {
	Pooling string `json:"pooling"` // "mean", "cls", "last"
}

// RerankerInfo describes the reranker.
type RerankerInfo struct {
	ModelID        string   `json:"model_id"`
	ModelSHA       string   `json:"model_sha"`
	ModelDtype     string   `json:"model_dtype"`
	MaxInputLength int      `json:"max_input_length"`
	Labels         []string `json:"labels"`
}

// InferenceError is the error body of these calls.
type InferenceError struct {
	Error     string `json:"error"`
	ErrorType string `json:"error_type"` // "Validation", "Tokenizer", "Overloaded", "Backend", "Unhealthy"
}

// Texts is a list of texts; a lone string reads as a list of one.
type Texts []string

// UnmarshalJSON reads a string or a list of strings.
func (t *Texts) UnmarshalJSON(data []byte) (err error) {
	if *t, err = texts(data); err != nil {
		return errors.New("expected a string or a list of strings")
	}
	return nil
}
