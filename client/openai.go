package client

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"math"
)

// EmbeddingRequest is the body of POST /v1/embeddings, as OpenAI defines it.
type EmbeddingRequest struct {
	Input          Inputs `json:"input"` // 1 to 2,048
	Model          string `json:"model"`
	EncodingFormat string `json:"encoding_format,omitempty"` // "float" (default), "base64"
	Dimensions     int    `json:"dimensions,omitempty"`      // the first so many, of unit length again; none: all
	User           string `json:"user,omitempty"`            // ignored
}

// EmbeddingResponse answers it.
type EmbeddingResponse struct {
	Object string      `json:"object"` // "list"
	Data   []Embedding `json:"data"`
	Model  string      `json:"model"`
	Usage  Usage       `json:"usage"`
}

// Embedding is one text's vector. Truncated, which OpenAI does not have, says
// that the model did not see the text's end.
type Embedding struct {
	Object    string `json:"object"` // "embedding"
	Index     int    `json:"index"`
	Embedding Vector `json:"embedding"`
	Truncated bool   `json:"truncated,omitempty"`
}

// Usage counts tokens.
type Usage struct {
	PromptTokens int `json:"prompt_tokens"`
	TotalTokens  int `json:"total_tokens"`
}

// EmbeddingError is the error body of POST /v1/embeddings.
type EmbeddingError struct {
	Error EmbeddingErrorDetail `json:"error"`
}

// EmbeddingErrorDetail is what OpenAI's clients read.
type EmbeddingErrorDetail struct {
	Message string  `json:"message"`
	Type    string  `json:"type"`
	Param   *string `json:"param"`
	Code    *string `json:"code"`
}

// Vector is a list of numbers, or (Base64) its little-endian float32 bytes.
type Vector struct {
	Values []float32
	Base64 bool
}

// IsZero is true of what is left out.
func (v Vector) IsZero() bool { return v.Values == nil }

// MarshalJSON writes the form that Base64 names.
func (v Vector) MarshalJSON() ([]byte, error) {
	if !v.Base64 {
		return json.Marshal(v.Values)
	}
	raw := make([]byte, 0, 4*len(v.Values))
	for _, f := range v.Values {
		raw = binary.LittleEndian.AppendUint32(raw, math.Float32bits(f))
	}
	return json.Marshal(base64.StdEncoding.EncodeToString(raw))
}

// UnmarshalJSON reads either form.
func (v *Vector) UnmarshalJSON(data []byte) error {
	if len(data) == 0 || data[0] != '"' {
		v.Base64 = false
		if len(data) > len("null") && bytes.Contains(data, []byte("null")) { // encoding/json takes it for 0
			return errors.New("null is no number")
		}
		return json.Unmarshal(data, &v.Values)
	}
	var raw []byte // encoding/json reads base64
	if err := json.Unmarshal(data, &raw); err != nil {
		return err
	}
	if len(raw)%4 != 0 {
		return errors.New("the base64 form is not a whole number of float32 values")
	}
	v.Base64, v.Values = true, make([]float32, len(raw)/4)
	for i := range v.Values {
		v.Values[i] = math.Float32frombits(binary.LittleEndian.Uint32(raw[4*i:]))
	}
	return nil
}
