package pebble

import (
	"bufio"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"

	"sluice/store"
)

// files returns what a directory holds, by name.
func files(t *testing.T, dir string) map[string]string {
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	all := map[string]string{}
	for _, e := range entries {
		content, err := os.ReadFile(filepath.Join(dir, e.Name()))
		require.NoError(t, err)
		all[e.Name()] = string(content)
	}
	return all
}

// filled makes a store with a few documents in a directory of the disk and closes it.
func filled(t *testing.T) (dir string) {
	dir = filepath.Join(t.TempDir(), "deep", "data")
	s, err := Open(dir, Options{})
	require.NoError(t, err)
	_, err = fillDisk(t.Context(), s, 3)
	require.NoError(t, err)
	require.NoError(t, s.Close())
	return dir
}

func TestNewerFormatIsLeftAlone(t *testing.T) {
	for content, want := range map[string]error{
		"sluice store 3\n": store.ErrNewerFormat,
		"sluice store x\n": store.ErrCorrupt,
		"sluice store 0\n": store.ErrCorrupt,
		"1\n":              store.ErrCorrupt,
		"":                 store.ErrCorrupt,
	} {
		dir := filled(t)
		require.NoError(t, os.WriteFile(filepath.Join(dir, formatFile), []byte(content), 0o600))
		before := files(t, dir)
		for _, readOnly := range []bool{false, true} {
			_, err := Open(dir, Options{ReadOnly: readOnly})
			require.ErrorIs(t, err, want, "%q", content)
			require.Equal(t, before, files(t, dir), "%q", content)
		}
	}
}

// A directory of format 1 is one of format 2 that has none of what 2 adds. Only
// opening it for writing makes it one of format 2.
func TestFormatOneIsUpgraded(t *testing.T) {
	dir := filled(t)
	path := filepath.Join(dir, formatFile)
	require.NoError(t, os.WriteFile(path, []byte("sluice store 1\n"), 0o600))
	for _, c := range []struct {
		readOnly bool
		then     string
	}{{true, "sluice store 1\n"}, {false, "sluice store 2\n"}} {
		s, err := Open(dir, Options{ReadOnly: c.readOnly})
		require.NoError(t, err)
		requireSound(t, s)
		require.Equal(t, "1 text ", readVersion(t, s, 1, "1").Text[:7])
		require.NoError(t, s.Close())
		format, err := os.ReadFile(path)
		require.NoError(t, err)
		require.Equal(t, c.then, string(format))
	}
}

func TestReadOnly(t *testing.T) {
	dir := filled(t)
	before := files(t, dir)
	s, err := Open(dir, Options{ReadOnly: true})
	require.NoError(t, err)
	requireSound(t, s)
	require.Equal(t, "1 text ", readVersion(t, s, 1, "1").Text[:7])
	_, err = s.Delete(t.Context(), 1, "1")
	require.ErrorIs(t, err, store.ErrReadOnly)
	_, err = Open(dir, Options{})
	require.ErrorIs(t, err, store.ErrLocked)
	require.NoError(t, s.Close())
	require.Equal(t, before, files(t, dir))
}

func TestReadOnlyNeedsAStore(t *testing.T) {
	dir := t.TempDir()
	_, err := Open(dir, Options{ReadOnly: true})
	require.ErrorIs(t, err, store.ErrNotFound)
	require.Empty(t, files(t, dir))
	_, err = Open(filepath.Join(dir, "none"), Options{ReadOnly: true})
	require.ErrorIs(t, err, store.ErrNotFound)
	require.NoError(t, writeFormat(vfs.Default, dir))
	_, err = Open(dir, Options{ReadOnly: true})
	require.ErrorIs(t, err, store.ErrNotFound)
}

func TestOpenErrors(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, []byte("x"), 0o600))
	_, err := Open(file, Options{})
	require.Error(t, err)
	require.NotErrorIs(t, err, store.ErrLocked)
}

// TestLock runs itself as the process that holds the directory, and kills it.
func TestLock(t *testing.T) {
	if dir := os.Getenv("SLUICE_TEST_HOLD"); dir != "" {
		hold(t, dir)
		return
	}
	dir := filled(t)
	child := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestLock$")
	child.Env = append(os.Environ(), "SLUICE_TEST_HOLD="+dir)
	child.Stderr = os.Stderr
	_, err := child.StdinPipe()
	require.NoError(t, err)
	out, err := child.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, child.Start())
	line, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err)
	require.Equal(t, "held\n", line)

	for _, readOnly := range []bool{false, true} {
		_, err = Open(dir, Options{ReadOnly: readOnly})
		require.ErrorIs(t, err, store.ErrLocked)
		require.ErrorContains(t, err, dir)
	}
	require.NoError(t, child.Process.Kill())
	_ = child.Wait() // it was killed
	s, err := Open(dir, Options{})
	require.NoError(t, err)
	_, err = Open(dir, Options{})
	require.ErrorIs(t, err, store.ErrLocked)
	require.NotNil(t, readVersion(t, s, 1, "acknowledged"))
	requireSound(t, s)
	require.NoError(t, s.Close())
}

// hold commits a document, says so and keeps the store open until it is killed.
func hold(t *testing.T, dir string) {
	s, err := Open(dir, Options{})
	require.NoError(t, err)
	_, err = s.Commit(t.Context(), 1, testVersion("acknowledged", "text", 1))
	require.NoError(t, err)
	_, _ = os.Stdout.WriteString("held\n")
	_, _ = io.Copy(io.Discard, os.Stdin)
}
