// Package model reads Hugging Face encoder models from a folder: config.json,
// safetensors weights, and the sentence-transformers modules around them.
package model

import (
	"bufio"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"sluice/model/safetensors"
)

const (
	tokenizerFile = "tokenizer.json"
	sumsFile      = "SHA256SUMS" // as sha256sum writes it; checked where present
)

// Model is an embedding model or a classifier in memory. It is not changed
// after Load.
type Model struct {
	Name        string // the folder's
	Config      Config
	Encoder     Encoder
	Pooling     Pooling
	Projections []Projection // after pooling; vectors are normalised last
	Classifier  *Classifier  // nil: the model embeds, and does nothing else
	Prompts     Prompts
	MaxTokens   int    // special tokens included
	Digest      string // SHA-256 over all that decides a vector, except the device's precision
	Tokenizer   string // path of tokenizer.json
}

// Dimensions is the length of a pooled vector.
func (m *Model) Dimensions() int {
	if n := len(m.Projections); n > 0 {
		return m.Projections[n-1].Out
	}
	return m.Config.Hidden
}

// Load reads the model in dir. Every tensor's shape is checked against the
// config, weights and tokenizer against SHA256SUMS where the folder has one.
func Load(dir string) (*Model, error) {
	m := &Model{Name: filepath.Base(dir), Tokenizer: filepath.Join(dir, tokenizerFile)}
	if err := m.load(dir); err != nil {
		return nil, fmt.Errorf("loading model %s: %w", m.Name, err)
	}
	return m, nil
}

func (m *Model) load(dir string) error {
	config, file, err := readConfig(filepath.Join(dir, "config.json"))
	if err != nil {
		return err
	}
	m.Config = config
	around, err := m.readAround(dir)
	if err != nil {
		return err
	}
	archive, err := safetensors.Open(dir)
	if err != nil {
		return err
	}
	defer archive.Close()
	if err := m.readWeights(archive, file); err != nil {
		return err
	}
	return m.digest(dir, append(archive.Paths(), around.weights...))
}

// readAround reads what stands beside the encoder.
func (m *Model) readAround(dir string) (modules, error) {
	around, err := readModules(dir)
	if err != nil {
		return around, err
	}
	if m.MaxTokens, err = m.limit(dir, around.maxTokens); err != nil {
		return around, err
	}
	m.Pooling, m.Projections = around.pooling, around.projections
	if m.Prompts, err = readPrompts(dir); err != nil {
		return around, err
	}
	return around, around.checkWidths(m.Config.Hidden)
}

// limit is the longest sequence: what the modules say, or else the tokenizer's
// config, and never more than there are positions.
func (m *Model) limit(dir string, tokens int) (int, error) {
	var file struct {
		Length float64 `json:"model_max_length"` // 1e30 where there is no limit
	}
	if tokens == 0 {
		if _, err := readJSON(filepath.Join(dir, "tokenizer_config.json"), &file); err != nil {
			return 0, err
		}
		tokens = int(min(file.Length, float64(m.Config.Positions)))
	}
	if tokens <= 0 {
		return m.Config.Positions, nil
	}
	return min(tokens, m.Config.Positions), nil
}

func (m *Model) readWeights(archive *safetensors.Archive, file *configFile) (err error) {
	r := newReader(archive, file.family)
	m.Encoder = file.family.encoder(r, m.Config)
	if r.err != nil {
		return r.err
	}
	if err := r.strange(file.family.layers); err != nil {
		return err
	}
	m.Classifier, err = file.classifier(r, m.Config)
	return err
}

// digest hashes the weight files and the tokenizer together with the facts
// that were read, each on a line of its own.
func (m *Model) digest(dir string, weights []string) error {
	pinned, err := readSums(filepath.Join(dir, sumsFile))
	if err != nil {
		return err
	}
	h := sha256.New()
	fmt.Fprintf(h, "config %+v\npooling %s\nnormalised\nmax_tokens %d\n", m.Config, m.Pooling, m.MaxTokens)
	for _, p := range m.Projections {
		fmt.Fprintf(h, "projection %d %d %s\n", p.In, p.Out, p.Activation)
	}
	if c := m.Classifier; c != nil {
		fmt.Fprintf(h, "classifier %s %s %q sigmoid %t\n", c.Pooling, c.Activation, c.Labels, c.Sigmoid)
	}
	if q, d := m.Prompts.Query(), m.Prompts.Document(); q != "" || d != "" {
		fmt.Fprintf(h, "prompts %q %q\n", q, d)
	}
	for _, path := range append(weights, m.Tokenizer) {
		sum, err := hashFile(path)
		if path == m.Tokenizer && errors.Is(err, fs.ErrNotExist) {
			continue // a model may be fed token ids
		}
		if err != nil {
			return err
		}
		if want, ok := pinned[nameIn(dir, path)]; ok && want != sum {
			return fmt.Errorf("%w: %s has SHA-256 %s, but %s says %s: remove the folder and pull the model again", ErrInvalid, path, sum, sumsFile, want)
		}
		fmt.Fprintf(h, "%s\n", sum)
	}
	m.Digest = hex.EncodeToString(h.Sum(nil))
	return nil
}

// nameIn is path as sums list it: relative to dir, with slashes.
func nameIn(dir, path string) string {
	name, err := filepath.Rel(dir, path)
	if err != nil {
		return path
	}
	return filepath.ToSlash(name)
}

func hashFile(path string) (string, error) {
	file, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer file.Close()
	h := sha256.New()
	if _, err := io.Copy(h, file); err != nil {
		return "", fmt.Errorf("hashing %s: %w", path, err)
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// readSums maps file names to their sums; no file, no sums.
func readSums(path string) (map[string]string, error) {
	file, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer file.Close()
	sums := map[string]string{}
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		if sum, name, ok := strings.Cut(lines.Text(), "  "); ok {
			sums[name] = sum
		}
	}
	return sums, lines.Err()
}
