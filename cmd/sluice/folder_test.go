package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// lay writes files below a directory.
func lay(t testing.TB, dir string, files map[string]string) string {
	t.Helper()
	for name, text := range files {
		file := filepath.Join(dir, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o700))
		require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
	}
	return dir
}

// mixed is a folder with three documents, and one of everything that is none.
func mixed(t testing.TB) string {
	t.Helper()
	dir := lay(t, t.TempDir(), map[string]string{
		"a.md": "# Harbour\n\nThe harbour opens at six.", "sub/b.html": "<h1>Tide</h1><p>The tide turns at noon.", "sub/deeper/C.TXT": "The crane lifts nine tons.",
		".hidden.md": "x", ".git/objects.md": "x", "empty.md": "", "picture.csv": "a,b", "none": "x",
		"latin.txt": "caf\xe9", "bad\xff.txt": "x", "blank.md": " \n",
	})
	huge, err := os.Create(filepath.Join(dir, "huge.md"))
	require.NoError(t, err)
	require.NoError(t, huge.Truncate(maxFileBytes+1))
	require.NoError(t, huge.Close())
	outside := lay(t, t.TempDir(), map[string]string{"secret.md": "secret"})
	require.NoError(t, os.Symlink(filepath.Join(outside, "secret.md"), filepath.Join(dir, "link.md")))
	require.NoError(t, os.Symlink(outside, filepath.Join(dir, "linked")))
	require.NoError(t, syscall.Mkfifo(filepath.Join(dir, "pipe.md"), 0o600))
	return dir
}

func TestReadFolder(t *testing.T) {
	f, err := readFolder(mixed(t))
	require.NoError(t, err)
	require.Equal(t, []string{"a.md", "bad\xff.txt", "blank.md", "latin.txt", "sub/b.html", "sub/deeper/C.TXT"}, f.files)
	require.Equal(t, []string{
		`1 skipped: empty: empty.md`, `1 skipped: larger than 64 MiB: huge.md`, `1 skipped: not Markdown, HTML, text, PDF, an office file or .docling.json (""): none`,
		`1 skipped: not Markdown, HTML, text, PDF, an office file or .docling.json (".csv"): picture.csv`,
		`2 skipped: hidden: .git, .hidden.md`, `3 skipped: not a regular file: link.md, linked, pipe.md`,
	}, f.reasons())
	require.Empty(t, f.unreadable)
}

func TestOneFileIsAFolderToo(t *testing.T) {
	dir := lay(t, t.TempDir(), map[string]string{"a.md": "text"})
	f, err := readFolder(filepath.Join(dir, "a.md"))
	require.NoError(t, err)
	require.Equal(t, []string{"a.md"}, f.files)
	d, err := f.document("a.md")
	require.NoError(t, err)
	require.Equal(t, "text", d.Text)
	require.Equal(t, "markdown", d.Format)
}

func TestFoldersWithoutFiles(t *testing.T) {
	_, err := readFolder(t.TempDir())
	require.ErrorContains(t, err, "has no files")
	_, err = readFolder(filepath.Join(t.TempDir(), "nothing"))
	require.ErrorIs(t, err, os.ErrNotExist)
}

// A file that goes away, or is not text, is named; the others are sent.
func TestUnreadableFilesAreNoted(t *testing.T) {
	dir := lay(t, t.TempDir(), map[string]string{"a.md": "a", "b.md": "b", "c.md": "c\xff", "d\xff.md": "d"})
	f, err := readFolder(dir)
	require.NoError(t, err)
	require.NoError(t, os.Remove(filepath.Join(dir, "b.md")))
	var keys []string
	for d, err := range f.documents() {
		require.NoError(t, err)
		keys = append(keys, d.Key)
	}
	require.Equal(t, []string{"a.md"}, keys)
	require.Len(t, f.unreadable, 3)
	for i, reason := range []string{"no such file", "not valid UTF-8", "name is not valid UTF-8"} {
		require.Contains(t, f.unreadable[i].reason, reason)
	}
}

func TestUnreadableFolderIsNoted(t *testing.T) {
	if os.Geteuid() == 0 {
		t.Log("root may read everything: only the listing of what is there is tested")
	}
	dir := lay(t, t.TempDir(), map[string]string{"a.md": "a", "closed/b.md": "b"})
	require.NoError(t, os.Chmod(filepath.Join(dir, "closed"), 0))
	t.Cleanup(func() { _ = os.Chmod(filepath.Join(dir, "closed"), 0o700) })
	f, err := readFolder(dir)
	require.NoError(t, err)
	require.Contains(t, f.files, "a.md")
	if os.Geteuid() != 0 {
		require.Equal(t, "closed", f.unreadable[0].path)
	}
}

func TestExcerptCutsAtWords(t *testing.T) {
	require.Equal(t, "a b c", excerpt("a\n b\t c", 10))
	require.Equal(t, "alpha …", excerpt("alpha beta", 9))
	require.Equal(t, "äöü …", excerpt("äöüß", 3))
	long := strings.Repeat("word ", 100)
	require.LessOrEqual(t, len(excerpt(long, 200)), 204, fmt.Sprint(len(long)))
}

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

	f, err = readFolder(filepath.Join(root, "dir"))
	require.NoError(t, err)
	require.Equal(t, []string{"secret.txt"}, f.files, "of a link that the caller names")

	f, err = readFolder(filepath.Join(root, "a.txt"))
	require.NoError(t, err)
	d, err = f.document(f.files[0])
	require.NoError(t, err)
	require.Equal(t, "a.txt", d.Text)
}
