package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// Neither a link nor a file that becomes one leads out of the folder.
func TestFolderIsNotLeft(t *testing.T) {
	secret := filepath.Join(t.TempDir(), "secret.txt")
	require.NoError(t, os.WriteFile(secret, []byte("secret"), 0o600))
	root := t.TempDir()
	for _, name := range []string{"a.txt", "b.txt"} {
		require.NoError(t, os.WriteFile(filepath.Join(root, name), []byte(name), 0o600))
	}
	require.NoError(t, os.Symlink(secret, filepath.Join(root, "link.txt")))
	require.NoError(t, os.Symlink(filepath.Dir(secret), filepath.Join(root, "dir")))

	f, err := readFolder(root)
	require.NoError(t, err)
	require.Equal(t, []string{"a.txt", "b.txt"}, f.files)

	require.NoError(t, os.Remove(filepath.Join(root, "b.txt")))
	require.NoError(t, os.Symlink(secret, filepath.Join(root, "b.txt")))
	_, err = f.document("b.txt")
	require.Error(t, err)
	d, err := f.document("a.txt")
	require.NoError(t, err)
	require.Equal(t, "a.txt", d.Text)

	f, err = readFolder(filepath.Join(root, "a.txt"))
	require.NoError(t, err)
	d, err = f.document(f.files[0])
	require.NoError(t, err)
	require.Equal(t, "a.txt", d.Text)
}
