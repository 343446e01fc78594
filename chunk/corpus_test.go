package chunk

import (
	"archive/tar"
	"bufio"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"sluice/document"
	"sluice/needs"
)

// source is a document as it lies on disk.
type source struct {
	name, format string
	raw          []byte
}

// globbed reads the files that match a pattern.
func globbed(t testing.TB, format, pattern string) []source {
	t.Helper()
	paths, err := filepath.Glob(pattern)
	require.NoError(t, err)
	require.NotEmpty(t, paths, "no file matches %s", pattern)
	sources := make([]source, len(paths))
	for i, path := range paths {
		raw, err := os.ReadFile(path)
		require.NoError(t, err)
		sources[i] = source{filepath.Base(path), format, raw}
	}
	return sources
}

func groundedAccess(t testing.TB) []source {
	return globbed(t, "markdown", filepath.Join("..", "eval", "testdata", "grounded-access", "corpus", "*", "*.md"))
}

func multiCorpus(t testing.TB, format, folder string) []source {
	return globbed(t, format, filepath.Join(needs.Data(t, "rag-multi-corpus/docs"), "*", folder, "*"))
}

// keps reads the newest snapshot of the Kubernetes enhancement proposals.
func keps(t testing.TB) []source {
	t.Helper()
	path := needs.Data(t, "kubernetes-keps/keps-2026-07-25.tar.xz")
	xz, err := exec.LookPath("xz")
	if err != nil {
		needs.Missing(t, "xz", err)
	}
	cmd := exec.CommandContext(t.Context(), xz, "-dc", path)
	stdout, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	var sources []source
	for archive := tar.NewReader(stdout); ; {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		require.NoError(t, err)
		if raw, err := io.ReadAll(archive); strings.HasSuffix(header.Name, ".md") {
			require.NoError(t, err)
			sources = append(sources, source{header.Name, "markdown", raw})
		}
	}
	_, err = io.Copy(io.Discard, stdout)
	require.NoError(t, err)
	require.NoError(t, cmd.Wait())
	return sources
}

func TestCorporaKeepInvariants(t *testing.T) {
	corpora := []struct {
		name  string
		files int
		load  func(testing.TB) []source
	}{
		{"grounded-access", 36, groundedAccess},
		{"multi-corpus Markdown", 236, func(t testing.TB) []source { return multiCorpus(t, "markdown", "md") }},
		{"multi-corpus HTML", 236, func(t testing.TB) []source { return multiCorpus(t, "html", "html") }},
		{"KEPs", 667, keps},
	}
	for _, c := range corpora {
		t.Run(c.name, func(t *testing.T) {
			sources := c.load(t)
			require.Len(t, sources, c.files)
			chunks := 0
			for _, s := range sources {
				doc, found := parseAndChunk(t, s.format, string(s.raw))
				require.NoError(t, document.Check(doc), s.name)
				require.NoError(t, check(doc, found), s.name)
				chunks += len(found)
			}
			t.Logf("%d files, %d chunks", len(sources), chunks)
		})
	}
}

// TestEvidenceLiesInOneChunk: what people marked as evidence is not cut.
func TestEvidenceLiesInOneChunk(t *testing.T) {
	file, err := os.Open(filepath.Join("..", "eval", "testdata", "grounded-access", "eval", "cases.jsonl"))
	require.NoError(t, err)
	defer file.Close()
	documents := map[string]source{}
	for _, s := range groundedAccess(t) {
		documents[strings.TrimSuffix(s.name, ".md")] = s
	}
	quotes := 0
	for lines := bufio.NewScanner(file); lines.Scan(); {
		var c struct {
			ID       string
			Evidence []struct{ Document, Quote string }
		}
		require.NoError(t, json.Unmarshal(lines.Bytes(), &c))
		for _, e := range c.Evidence {
			quotes++
			doc, chunks := parseAndChunk(t, "markdown", string(documents[e.Document].raw))
			require.True(t, inOneChunk(doc.Text, chunks, e.Quote), "case %s: %q of %s", c.ID, e.Quote, e.Document)
		}
	}
	require.Positive(t, quotes)
	t.Logf("%d quotes", quotes)
}

func inOneChunk(text string, chunks []Chunk, quote string) bool {
	for _, c := range chunks {
		if strings.Contains(text[c.Start:c.End], quote) {
			return true
		}
	}
	return false
}
