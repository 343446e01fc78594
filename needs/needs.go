// Package needs is what tests need beside the sources: a test that lacks it says so
// and is skipped, and fails where SLUICE_REQUIRE_ALL=1 lets nothing be lacking.
package needs

import (
	"context"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"sluice/model/hub"
)

// Missing ends a test that lacks what.
func Missing(t testing.TB, what string, err error) {
	t.Helper()
	if os.Getenv("SLUICE_REQUIRE_ALL") == "1" {
		t.Fatalf("SLUICE_REQUIRE_ALL=1, but %s is missing: %v", what, err)
	}
	t.Skipf("SKIPPED: %s is missing: %v", what, err)
}

// Data returns a file or folder of the public data that is too large for the
// repository: in $SLUICE_DATA, or else in shared/data beside the repository.
func Data(t testing.TB, name string) string {
	t.Helper()
	root := os.Getenv("SLUICE_DATA")
	if root == "" {
		root = filepath.Join(filepath.Dir(repository(t)), "shared", "data")
	}
	path := filepath.Join(root, filepath.FromSlash(name))
	if _, err := os.Stat(path); err != nil {
		Missing(t, path, err)
	}
	return path
}

// repository is the folder above the package under test that has go.mod.
func repository(t testing.TB) string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for ; dir != filepath.Dir(dir); dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir
		}
	}
	t.Fatal("no go.mod above the package under test")
	return ""
}

// Installed returns the folder of the cache in which a program of that name is
// installed, which 'make target' does.
func Installed(t testing.TB, name, target string) string {
	t.Helper()
	dir, err := Find(name)
	if err != nil {
		Missing(t, "what 'make "+target+"' installs", err)
	}
	return dir
}

// Find is Installed for what is no test.
func Find(name string) (string, error) {
	cache, err := hub.CacheDir()
	if err != nil {
		return "", err
	}
	dir := filepath.Join(cache, name)
	_, err = os.Stat(filepath.Join(dir, "installed"))
	return dir, err
}

// ModelName is that of the model of Model.
const ModelName = "all-minilm-l6-v2"

var pulled = sync.OnceValues(func() (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	defer cancel()
	return hub.Pull(ctx, ModelName, hub.Options{})
})

// Model returns the folder of all-MiniLM-L6-v2, which is pulled once.
func Model(t testing.TB) string {
	t.Helper()
	dir, err := pulled()
	if err != nil {
		Missing(t, "the model "+ModelName, err)
	}
	return dir
}
