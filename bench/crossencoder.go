package bench

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
)

const headSeed = 17

// withHead writes a cross-encoder of one label into dir: the encoder of another
// folder, whose safetensors file has a pooler, under a random linear head. It
// is as fast as one that was trained, and its scores mean nothing.
func withHead(encoder, dir string) error {
	if err := copyFile(filepath.Join(encoder, "tokenizer.json"), filepath.Join(dir, "tokenizer.json")); err != nil {
		return fmt.Errorf("making a cross-encoder: %w", err)
	}
	hidden, err := classifierConfig(encoder, dir)
	if err != nil {
		return fmt.Errorf("making a cross-encoder: %w", err)
	}
	if err := addHead(filepath.Join(encoder, "model.safetensors"), filepath.Join(dir, "model.safetensors"), hidden); err != nil {
		return fmt.Errorf("making a cross-encoder: %w", err)
	}
	return nil
}

func copyFile(from, to string) error {
	data, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return os.WriteFile(to, data, 0o644)
}

// classifierConfig says in config.json that there is a head.
func classifierConfig(encoder, dir string) (hidden int, err error) {
	data, err := os.ReadFile(filepath.Join(encoder, "config.json"))
	if err != nil {
		return 0, err
	}
	config := map[string]any{}
	if err := json.Unmarshal(data, &config); err != nil {
		return 0, err
	}
	size, ok := config["hidden_size"].(float64)
	if !ok || config["model_type"] != "bert" {
		return 0, fmt.Errorf("%s is not a BERT encoder", encoder)
	}
	config["architectures"], config["id2label"] = []string{"BertForSequenceClassification"}, map[string]string{"0": "LABEL_0"}
	if data, err = json.Marshal(config); err != nil {
		return 0, err
	}
	return int(size), os.WriteFile(filepath.Join(dir, "config.json"), data, 0o644)
}

// tensor is an entry of a safetensors header.
type tensor struct {
	Type    string `json:"dtype"`
	Shape   []int  `json:"shape"`
	Offsets [2]int `json:"data_offsets"`
}

// addHead copies a safetensors file with classifier.weight and .bias after the
// other tensors.
func addHead(from, to string, hidden int) error {
	data, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	const length = 8 // of the header's own length
	if len(data) < length || binary.LittleEndian.Uint64(data) > uint64(len(data)-length) {
		return fmt.Errorf("%s is cut short", from)
	}
	end := length + int(binary.LittleEndian.Uint64(data))
	header := map[string]json.RawMessage{}
	if err := json.Unmarshal(data[length:end], &header); err != nil {
		return fmt.Errorf("the header of %s: %w", from, err)
	}
	at := len(data) - end
	for name, t := range map[string]tensor{
		"classifier.weight": {"F32", []int{1, hidden}, [2]int{at, at + 4*hidden}},
		"classifier.bias":   {"F32", []int{1}, [2]int{at + 4*hidden, at + 4*hidden + 4}},
	} {
		if header[name], err = json.Marshal(t); err != nil {
			return err
		}
	}
	text, err := json.Marshal(header)
	if err != nil {
		return err
	}
	out := binary.LittleEndian.AppendUint64(nil, uint64(len(text)))
	out = append(append(out, text...), data[end:]...)
	return os.WriteFile(to, append(out, randomFloats(hidden+1)...), 0o644)
}

func randomFloats(n int) (data []byte) {
	r := rand.New(rand.NewPCG(headSeed, 0))
	for range n {
		data = binary.LittleEndian.AppendUint32(data, math.Float32bits(float32(r.NormFloat64()/math.Sqrt(float64(n)))))
	}
	return data
}
