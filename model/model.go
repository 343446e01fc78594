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

// Model is an embedding model in memory. It is not changed after Load.
type Model struct {
	Name      string // the folder's
	Config    Config
	Encoder   Encoder
	Pooling   Pooling
	MaxTokens int    // special tokens included
	Digest    string // SHA-256 over all that decides a vector, except the device's precision
	Tokenizer string // path of tokenizer.json
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
	config, err := readConfig(filepath.Join(dir, "config.json"))
	if err != nil {
		return err
	}
	around, err := readModules(dir)
	if err != nil {
		return err
	}
	archive, err := safetensors.Open(dir)
	if err != nil {
		return err
	}
	defer archive.Close()
	m.Config, m.Pooling = config, around.pooling
	m.MaxTokens = config.Positions
	if around.maxTokens > 0 {
		m.MaxTokens = min(around.maxTokens, config.Positions)
	}
	if m.Encoder, err = readBERT(archive, config); err != nil {
		return err
	}
	return m.digest(dir, archive.Paths())
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
	for _, path := range append(weights, m.Tokenizer) {
		sum, err := hashFile(path)
		if path == m.Tokenizer && errors.Is(err, fs.ErrNotExist) {
			continue // a model may be fed token ids
		}
		if err != nil {
			return err
		}
		if want, ok := pinned[filepath.Base(path)]; ok && want != sum {
			return fmt.Errorf("%w: %s has SHA-256 %s, but %s says %s: pull the model again", ErrInvalid, path, sum, sumsFile, want)
		}
		fmt.Fprintf(h, "%s\n", sum)
	}
	m.Digest = hex.EncodeToString(h.Sum(nil))
	return nil
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
