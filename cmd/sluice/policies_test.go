package main

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"

	"sluice/store/pebble"
)

// A directory without policies, and a setting that is gone, are said: the one
// shows nobody anything, the other may show much.
func TestTheDirectoryOfPoliciesIsWarnedOf(t *testing.T) {
	st, err := pebble.Open("store", pebble.Options{FS: vfs.NewMem()})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, st.Close()) })
	var said bytes.Buffer
	d := &daemon{store: st, log: slog.New(slog.NewTextHandler(&said, &slog.HandlerOptions{Level: slog.LevelWarn}))}
	load := func(directory string) string {
		said.Reset()
		d.config.Policies = directory
		present, err := st.Policies(t.Context())
		require.NoError(t, err)
		require.NoError(t, d.loadPolicies(t.Context(), present))
		return said.String()
	}
	directory := t.TempDir()
	write := func(name, text string) {
		require.NoError(t, os.WriteFile(filepath.Join(directory, name), []byte(text), 0o600))
	}
	write("schema.cedarschema", `entity Group; entity User in [Group] { tenant: String, subject: String }; entity Document { tenant: String };
		action read appliesTo { principal: User, resource: Document };`)
	require.Empty(t, load(""))
	require.Contains(t, load(directory), "the directory of policies has none: nobody reads anything")
	write("a.cedar", "permit (principal, action, resource);")
	require.Empty(t, load(directory))
	require.Contains(t, load(""), "the setting policies is empty, and was not before")
	require.Empty(t, load(""), "once")
}
