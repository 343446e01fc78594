package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sluice/client"
	"sluice/needs"
	"sluice/server/config"
)

// digest is the names, sizes and contents below a directory.
func digest(t testing.TB, dir string) string {
	t.Helper()
	var all strings.Builder
	require.NoError(t, filepath.WalkDir(dir, func(file string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := os.ReadFile(file)
		fmt.Fprintf(&all, "%s %x\n", file, sha256.Sum256(content))
		return err
	}))
	return all.String()
}

func TestTheSecondDaemonOnADirectoryIsRefused(t *testing.T) {
	t.Parallel()
	h := newHome(t, onePerson)
	d := h.serve()
	d.collection("ann", "docs")
	require.Contains(t, h.refused().err, "in use by another process")
	r := sluice(t, "check", h.data())
	require.Equal(t, 1, r.code)
	require.Contains(t, r.err, "in use by another process")
	require.Empty(t, r.out) // no word about an index that cannot be compared
	d.stop()
	h.serve().stop()
}

func TestADirectoryOfANewerFormatIsLeftAlone(t *testing.T) {
	t.Parallel()
	h := newHome(t, onePerson)
	d := h.serve()
	d.collection("ann", "docs")
	d.stop()
	require.NoError(t, os.WriteFile(filepath.Join(storeDir(h.data()), "FORMAT"), []byte("sluice store 99\n"), 0o600))
	before := digest(t, h.data())

	r := h.refused()

	require.Contains(t, r.err, "format 99")
	require.Contains(t, r.err, "start the program that wrote it, or a later one")
	require.Equal(t, before, digest(t, h.data()))
	r = sluice(t, "check", h.data())
	require.Equal(t, 1, r.code)
	require.Contains(t, r.err, "format 99")
	require.Equal(t, before, digest(t, h.data()))
}

func TestModelsThatAreNone(t *testing.T) {
	t.Parallel()
	h := newHome(t, onePerson)
	require.Contains(t, h.refused("--model", "no-such-model").err, modelName, "it says which are known")

	empty := t.TempDir()
	require.Contains(t, h.refused("--model", empty).err, filepath.Join(empty, "config.json"))

	cut := filepath.Join(t.TempDir(), "cut")
	require.NoError(t, os.CopyFS(cut, os.DirFS(needs.Model(t))))
	require.NoError(t, os.Truncate(filepath.Join(cut, "model.safetensors"), 1<<20))
	require.Contains(t, h.refused("--model", cut).err, "model.safetensors")
}

func TestConfigurationsThatAreRefused(t *testing.T) {
	t.Parallel()
	h := newHome(t, onePerson)
	text, err := os.ReadFile(h.config())
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(h.config(), append(text, "limit: 3\n"...), 0o600))
	r := h.refused()
	require.Contains(t, r.err, "limit")
	require.Regexp(t, `line \d+`, r.err)
	require.NoError(t, os.WriteFile(h.config(), text, 0o600))

	d := h.serve()
	address := strings.TrimPrefix(d.url, "http://")
	other := newHome(t, onePerson)
	require.Contains(t, other.refused("--listen", address).err, "address already in use")
	d.stop()
}

// A stop while the daemon starts is a stop, and no failure.
func TestStoppedWhileStarting(t *testing.T) {
	t.Parallel()
	var said bytes.Buffer
	settings := config.Default()
	settings.Data, settings.Model = t.TempDir(), tinyModel
	ctx, stop := context.WithCancel(t.Context())
	stop()
	start := func() error {
		return (&daemon{config: settings, log: slog.New(slog.NewTextHandler(&said, nil))}).run(ctx)
	}
	require.NoError(t, start())
	require.Contains(t, said.String(), "stopped before it listened")
	require.NotContains(t, said.String(), "context canceled")

	settings.TLS.Cert = "none.pem"
	require.ErrorContains(t, start(), "none.pem", "what is wrong is told all the same")
}

const (
	schemaText = `
entity User = { tenant: String };
entity Document = { tenant: String, level?: String };
action read appliesTo { principal: User, resource: Document };
`
	permitAll     = `permit (principal, action == Action::"read", resource) when { principal.tenant == resource.tenant };`
	forbidSecrets = "\n" + `forbid (principal, action == Action::"read", resource) when { resource has level && resource.level == "secret" };`
)

// policyHome has its policies in a directory.
func policyHome(t *testing.T, policies string) *home {
	t.Helper()
	dir := lay(t, t.TempDir(), map[string]string{"schema.cedarschema": schemaText, "all.cedar": policies})
	h := newHome(t, onePerson, settings{"policies": dir})
	h.policies = dir
	return h
}

func (h *home) setPolicies(text string) { lay(h.t, h.policies, map[string]string{"all.cedar": text}) }

func TestAPolicyThatFailsToParse(t *testing.T) {
	t.Parallel()
	h := policyHome(t, permitAll+"\nforbid (principal, action, resource) when {")
	require.Regexp(t, `all\.cedar:\d+`, h.refused().err, "the first start needs policies")

	h.setPolicies(permitAll + forbidSecrets)
	d := h.serve()
	d.collection("ann", "docs")
	secret := note("secret", "harbour")
	secret.Attributes = map[string]any{"level": "secret"}
	for _, document := range []client.Document{secret, note("plain", "harbour")} {
		_, err := d.as("ann").Write(t.Context(), "docs", document)
		require.NoError(t, err)
	}
	require.Equal(t, []string{"plain"}, found(t, d.as("ann"), "docs", "harbour"))
	d.stop()

	h.setPolicies(permitAll + "\npermit (")
	d = h.serve()
	require.Regexp(t, `the policies are refused.*all\.cedar:2`, d.err.text())
	require.Equal(t, []string{"plain"}, found(t, d.as("ann"), "docs", "harbour"), "those before stay in force")
	d.stop()
}

// The built-in policies permit much: they do not stand in for those that cannot
// be read.
func TestNoPoliciesWhereSomeAreConfigured(t *testing.T) {
	t.Parallel()
	h := newHome(t, onePerson)
	h.serve().stop()
	missing := filepath.Join(t.TempDir(), "polcies")
	require.Contains(t, h.refused("--policies", missing).err, missing)
}

func TestHangupReadsThePoliciesAgain(t *testing.T) {
	t.Parallel()
	h := policyHome(t, permitAll)
	d := h.serve()
	d.collection("ann", "docs")
	ann := d.as("ann")
	secret := note("secret", "harbour")
	secret.Attributes = map[string]any{"level": "secret"}
	_, err := ann.Write(t.Context(), "docs", secret)
	require.NoError(t, err)
	require.Equal(t, []string{"secret"}, found(t, ann, "docs", "harbour"))
	becomes := func(want []string) {
		require.Eventually(t, func() bool { return len(found(t, ann, "docs", "harbour")) == len(want) }, patience, 10*time.Millisecond)
	}

	h.setPolicies(permitAll + forbidSecrets)
	d.signal(syscall.SIGHUP)
	becomes(nil)

	h.setPolicies("permit (")
	d.signal(syscall.SIGHUP)
	d.await(&d.err, `the policies are refused; those before stay in force.*all\.cedar:1`)
	require.Empty(t, found(t, ann, "docs", "harbour"))

	h.setPolicies(permitAll)
	d.signal(syscall.SIGHUP)
	becomes([]string{"secret"})
	d.stop()
}

// A daemon that is told to stop finishes what it has begun, and says from
// which line on the rest is to be sent again.
func TestStopDrains(t *testing.T) {
	t.Parallel()
	for name, signal := range map[string]syscall.Signal{"SIGTERM": syscall.SIGTERM, "SIGINT": syscall.SIGINT} {
		t.Run(name, func(t *testing.T) {
			h := newHome(t, onePerson, pretrained(t)) // a document takes longer than a signal
			d := h.serve()
			d.collection("ann", "docs")
			written, refused := 0, 0
			documents := func(yield func(client.Document, error) bool) {
				for i := 0; yield(note(fmt.Sprint(i), fmt.Sprint("harbour ", i)), nil); i++ {
				}
			}
			err := d.as("ann").Ingest(t.Context(), "docs", documents, func(r client.WriteResult) error {
				if r.Error != nil {
					require.Equal(t, 503, r.Error.Status, "%v", r.Error)
					refused++
					return nil
				}
				if written++; written == 10 {
					d.signal(signal)
				}
				return nil
			})
			require.ErrorIs(t, err, client.ErrIncomplete)
			require.Zero(t, d.wait(), "%s", d.err.text())
			require.LessOrEqual(t, refused, 1)
			h.check()

			d = h.serve()
			listed := 0
			for _, err := range d.as("ann").Documents(context.Background(), "docs") {
				require.NoError(t, err)
				listed++
			}
			require.GreaterOrEqual(t, listed, written, "what is acknowledged is there")
			// Results can be lost when the connection is torn; the client says ErrIncomplete.
			underWay := 2 * config.Default().Limits.BulkConcurrency
			require.LessOrEqual(t, listed, written+underWay, "nothing but what was under way was begun")
			d.stop()
		})
	}
}
