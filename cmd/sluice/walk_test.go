package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"sluice/client"
	"sluice/needs"
)

// commands are the lines of the first block after a heading of docs/operations.md.
func commands(t *testing.T, heading string) []string {
	t.Helper()
	text := readText(t, filepath.Join("..", "..", "docs", "operations.md"))
	_, text, found := strings.Cut(text, "\n"+heading+"\n")
	require.True(t, found, heading)
	_, text, found = strings.Cut(text, "\n```\n")
	require.True(t, found, heading)
	block, _, _ := strings.Cut(text, "\n```\n")
	return strings.Split(block, "\n")
}

// shell runs a line of the documentation in the home, with sluice in PATH.
func (h *home) shell(line string) string {
	h.t.Helper()
	self, err := os.Executable()
	require.NoError(h.t, err)
	bin := lay(h.t, h.t.TempDir(), map[string]string{"sluice": "#!/bin/sh\n" + beSluice + "=1 exec " + self + ` "$@"` + "\n"})
	require.NoError(h.t, os.Chmod(filepath.Join(bin, "sluice"), 0o755))
	c := exec.Command("bash", "-ec", line)
	c.Dir, c.Env = h.dir, append(os.Environ(), "PATH="+bin+":"+os.Getenv("PATH"))
	out, err := c.CombinedOutput()
	require.NoError(h.t, err, "%s\n%s", line, out)
	return string(out)
}

// Backup and restore as docs/operations.md has them, line by line: what the
// restored directory lacks is what the old one's audit log names.
func TestBackupAndRestoreAsDocumented(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("jq"); err != nil {
		needs.Missing(t, "jq", err)
	}
	h := newHome(t, onePerson)
	data := func(line string) string { return strings.ReplaceAll(line, "DATA", "data") }
	d := h.serve()
	d.collection("ann", "docs")
	for _, key := range []string{"kept", "revoked", "deleted"} {
		_, err := d.as("ann").Write(t.Context(), "docs", note(key, "harbour", "user:ann"))
		require.NoError(t, err)
	}
	d.stop()
	backup := commands(t, "## Backup")
	require.Contains(t, h.shell(data(backup[0])), "data/snapshots/monday holds every change")

	d = h.serve()
	_, err := d.as("ann").SetAccess(t.Context(), "docs", "revoked", client.AccessPatch{Readers: jsonOf([]string{})})
	require.NoError(t, err)
	require.NoError(t, d.as("ann").Delete(t.Context(), "docs", "deleted"))
	require.Equal(t, []string{"kept"}, found(t, d.as("ann"), "docs", "harbour"))
	d.stop()

	restore := commands(t, "## Restore")
	check, serve, both := strings.Cut(restore[1], " && ")
	require.True(t, both)
	require.Equal(t, "sluice serve --config sluice.yaml", serve)
	h.shell(data(restore[0]))
	require.Contains(t, h.shell(data(check)), "no faults")
	d = h.serve()
	require.Contains(t, d.err.text(), "restored snapshot")
	require.ElementsMatch(t, []string{"kept", "revoked", "deleted"}, found(t, d.as("ann"), "docs", "harbour"))
	d.stop()

	epoch := regexp.MustCompile(`"epoch": (\d+)`).FindStringSubmatch(readText(t, filepath.Join(h.data(), "SNAPSHOT")))
	_, after, _ := strings.Cut(readText(t, filepath.Join("..", "..", "docs", "operations.md")), "\njq -c ")
	query, _, _ := strings.Cut("jq -c "+after, "\n```")
	lost := h.shell(strings.ReplaceAll(data(query), "1234", epoch[1]))
	require.Equal(t, []string{"access.change revoked", "document.delete deleted"}, actions(lost))
}

// actions are action and document of each record.
func actions(records string) (all []string) {
	for _, r := range regexp.MustCompile(`"action":"([^"]+)".*?"document":"([^"]+)"`).FindAllStringSubmatch(records, -1) {
		all = append(all, fmt.Sprint(r[1], " ", r[2]))
	}
	return all
}

// blocks are those of shell commands under a heading of the README.
func blocks(t *testing.T, heading string) (all []string) {
	t.Helper()
	_, text, found := strings.Cut(readText(t, filepath.Join("..", "..", "README.md")), "\n"+heading+"\n")
	require.True(t, found, heading)
	text, _, _ = strings.Cut(text, "\n## ")
	for _, m := range regexp.MustCompile("(?s)\n```\n(.*?)\n```\n").FindAllStringSubmatch(text, -1) {
		all = append(all, m[1])
	}
	return all
}

// What the README has for a first daemon of one's own works as it is pasted, on
// other ports and with a model that is loaded at once.
func TestReadmeStarts(t *testing.T) {
	t.Parallel()
	if out, err := exec.Command("bash", "-ec", "awk 1 /dev/null; curl --json '{}' --version").CombinedOutput(); err != nil {
		needs.Missing(t, "awk and curl 7.82", fmt.Errorf("%w: %s", err, out))
	}
	h := &home{t: t, dir: t.TempDir()}
	text := blocks(t, "## Use it for real")
	start := strings.ReplaceAll(text[0], "bin/sluice", "sluice")
	configure, serve, found := strings.Cut(start, "\nsluice serve ")
	require.True(t, found)
	require.Equal(t, "--config sluice.yaml", serve)
	h.shell(configure)
	d := h.serve("--listen", "127.0.0.1:0", "--admin-listen", "off", "--model", tinyModel, "--data", h.data())
	out := h.shell(strings.ReplaceAll(text[1], "localhost:8080", strings.TrimPrefix(d.url, "http://")))
	require.NotContains(t, out, `"status":4`)
	require.Contains(t, out, "Thirty days.")
	d.stop()
}
