package hub

import (
	"bytes"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

const (
	firstCommit  = "1111111111111111111111111111111111111111"
	secondCommit = "2222222222222222222222222222222222222222"
)

// hubServer is a hub with one repository, whose branch main is commit.
type hubServer struct {
	commit  string
	commits map[string]map[string][]byte
	listing func(*listing) // spoils the answer
	asked   []string
}

func (h *hubServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h.asked = append(h.asked, r.URL.Path)
	if revision, ok := strings.CutPrefix(r.URL.Path, "/api/models/owner/test/revision/"); ok {
		h.list(w, r, revision)
		return
	}
	commit, path, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/owner/test/resolve/"), "/")
	data, ok := h.commits[commit][path]
	if !ok {
		http.NotFound(w, r)
		return
	}
	http.ServeContent(w, r, path, time.Time{}, bytes.NewReader(data))
}

// list answers as the hub does: SHA-256 for large files, git's SHA-1 for others.
func (h *hubServer) list(w http.ResponseWriter, r *http.Request, revision string) {
	if revision == "main" {
		revision = h.commit
	}
	files, ok := h.commits[revision]
	if !ok || r.URL.Query().Get("blobs") != "true" {
		http.NotFound(w, r)
		return
	}
	siblings := []map[string]any{}
	for _, path := range slices.Sorted(maps.Keys(files)) {
		data := files[path]
		blob := sha1.Sum(fmt.Appendf(nil, "blob %d\x00%s", len(data), data))
		f := map[string]any{"rfilename": path, "size": len(data), "blobId": hex.EncodeToString(blob[:])}
		if strings.HasSuffix(path, ".safetensors") {
			sum := sha256.Sum256(data)
			f["blobId"], f["lfs"] = "a pointer's", map[string]any{"sha256": hex.EncodeToString(sum[:]), "size": len(data), "pointerSize": 130}
		}
		siblings = append(siblings, f)
	}
	answer, _ := json.Marshal(map[string]any{"sha": revision, "siblings": siblings})
	if h.listing != nil {
		var l listing
		_ = json.Unmarshal(answer, &l)
		h.listing(&l)
		answer, _ = json.Marshal(l)
	}
	_, _ = w.Write(answer)
}

func newHub(t *testing.T) (*hubServer, Options) {
	first := maps.Clone(content)
	for _, other := range []string{"pytorch_model.bin", "onnx/model.onnx", "README.md", "openvino/config.json"} {
		first[other] = []byte("not for us")
	}
	second := maps.Clone(first)
	second["config.json"] = []byte(`{"model_type":"roberta"}`)
	h := &hubServer{commit: firstCommit, commits: map[string]map[string][]byte{firstCommit: first, secondCommit: second}}
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	return h, Options{Cache: t.TempDir(), URL: server.URL, Python: "/does/not/exist"}
}

func TestPullRepository(t *testing.T) {
	hub, opts := newHub(t)
	dir, err := Pull(t.Context(), "owner/test", opts)
	require.NoError(t, err)
	require.Equal(t, filepath.Join(opts.Cache, "models", "owner", "test"), dir)
	requireRecorded(t, dir)
	for _, other := range []string{"pytorch_model.bin", "onnx", "README.md", "openvino"} {
		require.NoFileExists(t, filepath.Join(dir, other))
		require.NoDirExists(t, filepath.Join(dir, other))
	}
	left, err := os.ReadDir(filepath.Dir(dir))
	require.NoError(t, err)
	require.Len(t, left, 2, "the model and the lock: %v", left)

	asked := len(hub.asked)
	hub.commit = secondCommit
	again, err := Pull(t.Context(), "owner/test", opts)
	require.NoError(t, err)
	require.Equal(t, dir, again)
	require.Len(t, hub.asked, asked, "the hub is not asked again")
	requireRecorded(t, dir)
}

// requireRecorded wants the files, and every SHA-256 in the record.
func requireRecorded(t *testing.T, dir string) {
	t.Helper()
	var files []File
	for _, path := range []string{"1_Pooling/config.json", "config.json", "model.safetensors"} {
		got, err := os.ReadFile(filepath.Join(dir, path))
		require.NoError(t, err)
		require.True(t, bytes.Equal(content[path], got), path)
		sum := sha256.Sum256(got)
		files = append(files, File{Path: path, Size: int64(len(got)), SHA256: hex.EncodeToString(sum[:])})
	}
	require.NoError(t, verified(dir, files))
}

func TestPullRevision(t *testing.T) {
	_, opts := newHub(t)
	dir, err := Pull(t.Context(), "owner/test@"+secondCommit, opts)
	require.NoError(t, err)
	require.Equal(t, "test@"+secondCommit, filepath.Base(dir))
	got, err := os.ReadFile(filepath.Join(dir, "config.json"))
	require.NoError(t, err)
	require.Equal(t, `{"model_type":"roberta"}`, string(got))
	_, err = Pull(t.Context(), "owner/test@v9", opts)
	require.ErrorContains(t, err, "404")
	require.ErrorContains(t, err, "owner/test@v9")
}

// The hub says what the files are; other bytes are refused, also where only
// git's checksum is known.
func TestPullRepositoryRefusesOtherContent(t *testing.T) {
	for _, path := range []string{"config.json", "model.safetensors"} {
		hub, opts := newHub(t)
		hub.listing = func(l *listing) { // the file changed after the list was made
			data := bytes.Clone(content[path])
			data[0] ^= 1
			hub.commits[firstCommit][path] = data
		}
		_, err := Pull(t.Context(), "owner/test", opts)
		require.ErrorIs(t, err, ErrChecksum)
		require.ErrorContains(t, err, path)
		require.NoDirExists(t, filepath.Join(opts.Cache, "models", "owner", "test"))
	}
}

// What was left of one commit does not mix with another.
func TestPullRepositoryAfterTheBranchMoved(t *testing.T) {
	hub, opts := newHub(t)
	whole := hub.commits[firstCommit]["model.safetensors"]
	delete(hub.commits[firstCommit], "model.safetensors")
	hub.commits[firstCommit]["0_Old/config.json"] = []byte("{}")
	hub.listing = func(l *listing) {
		l.Files = append(l.Files, l.Files[0])
		l.Files[len(l.Files)-1].Path = "model.safetensors"
	}
	_, err := Pull(t.Context(), "owner/test", opts)
	require.ErrorContains(t, err, "404")
	hub.commits[firstCommit]["model.safetensors"], hub.listing, hub.commit = whole, nil, secondCommit
	dir, err := Pull(t.Context(), "owner/test", opts)
	require.NoError(t, err)
	got, err := os.ReadFile(filepath.Join(dir, "config.json"))
	require.NoError(t, err)
	require.Equal(t, `{"model_type":"roberta"}`, string(got))
	require.NoFileExists(t, filepath.Join(dir, "0_Old", "config.json"))
}

func TestPullRepositoryRefusesBadLists(t *testing.T) {
	for name, c := range map[string]struct {
		spoil func(*listing)
		want  string
	}{
		"no commit":   {func(l *listing) { l.Commit = "../../x" }, "names no commit"},
		"no weights":  {func(l *listing) { l.Files = l.Files[:2] }, "no config.json with model.safetensors"},
		"no checksum": {func(l *listing) { l.Files[0].Blob = "" }, "1_Pooling/config.json is missing"},
		"huge":        {func(l *listing) { l.Files[0].Size = 1 << 62 }, "1_Pooling/config.json is missing"},
	} {
		t.Run(name, func(t *testing.T) {
			hub, opts := newHub(t)
			hub.listing = c.spoil
			_, err := Pull(t.Context(), "owner/test", opts)
			require.ErrorContains(t, err, c.want)
		})
	}
}

func TestRepositoryNames(t *testing.T) {
	for _, name := range []string{"a/", "/a", "a/b/c", "../b", "a/..", "a/b@", "a/b@../c", "a/b@x/y", "a b/c", "a/b?c"} {
		_, err := Pull(t.Context(), name, Options{Cache: t.TempDir()})
		require.ErrorIs(t, err, ErrUnknownModel, name)
	}
}

// Files outside the model's own set are never taken, wherever they point.
func TestWantedFiles(t *testing.T) {
	for _, path := range []string{"config.json", "model.safetensors", "model-00001-of-00002.safetensors",
		"model.safetensors.index.json", "1_Pooling/config.json", "2_Dense/model.safetensors", "tokenizer.json"} {
		require.True(t, wanted.MatchString(path), path)
	}
	for _, path := range []string{"../config.json", "/config.json", "x/config.json", "1_Pooling/../config.json", "onnx/model.onnx",
		"pytorch_model.bin", "model.safetensors\n", "model.safetensors.part", "SHA256SUMS", "1_/../x/config.json"} {
		require.False(t, wanted.MatchString(path), path)
	}
}

func TestCatalogNames(t *testing.T) {
	for _, name := range Names() {
		m, err := lookup(name)
		require.NoError(t, err)
		require.True(t, repositoryName.MatchString(m.Repo), m.Repo)
	}
}
