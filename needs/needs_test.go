package needs

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestData(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "there"), nil, 0o600))
	t.Setenv("SLUICE_DATA", dir)
	require.Equal(t, filepath.Join(dir, "there"), Data(t, "there"))
	require.FileExists(t, filepath.Join(repository(t), "needs", "needs.go"))

	t.Setenv("SLUICE_REQUIRE_ALL", "")
	t.Run("skipped", func(t *testing.T) {
		t.Cleanup(func() { require.True(t, t.Skipped()) })
		Data(t, "missing")
		t.Error("it went on")
	})
}
