package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"sluice/needs"
)

// The Python client is checked with its own tools, and against daemons of this
// tree, which its tests start. `make test` installs what they need.
func TestPythonClient(t *testing.T) {
	t.Parallel()
	needs.Model(t)
	tools := needs.Installed(t, "python-client", "clients")
	self, err := os.Executable()
	require.NoError(t, err)
	for name, command := range map[string][]string{
		"types": {"mypy"}, "lint": {"ruff", "check"}, "format": {"ruff", "format", "--check"}, "tests": {"pytest", "--quiet"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tool := exec.CommandContext(t.Context(), filepath.Join(tools, "bin", command[0]), command[1:]...)
			tool.Dir = filepath.Join("..", "..", "clients", "python")
			tool.Env = append(os.Environ(), beSluice+"=1", "SLUICE_BIN="+self, "MYPY_CACHE_DIR="+filepath.Join(tools, "mypy"), "LANGSMITH_TRACING=false", "NO_PROXY=127.0.0.1", "no_proxy=127.0.0.1")
			printed, err := tool.CombinedOutput()
			require.NoError(t, err, "%s", printed)
		})
	}
}
