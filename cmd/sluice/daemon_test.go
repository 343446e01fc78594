package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"sluice/client"
	"sluice/needs"
	"sluice/server/identity"
)

// settings is a configuration file, or a part of one.
type settings map[string]any

// person is somebody with an API key.
type person struct {
	tenant     string
	roles      []string
	groups     []string
	attributes map[string]any
}

// home is a directory with a configuration file, the API keys of its people
// and a data directory, on which daemons are started, one after the other.
type home struct {
	t        testing.TB
	dir      string
	keys     map[string]string
	policies string // their directory, where the test has one
}

// tinyModel is a whole model that is loaded at once. It knows nothing.
const tinyModel = "../../model/testdata/bert_e2e_wordpiece_cased"

// pretrained has daemons serve a model that has learnt, for what depends on it.
func pretrained(t testing.TB) settings {
	t.Helper()
	needs.Model(t)
	return settings{"model": modelName}
}

func newHome(t testing.TB, people map[string]person, changes ...settings) *home {
	t.Helper()
	h := &home{t: t, dir: t.TempDir(), keys: map[string]string{}}
	model, err := filepath.Abs(tinyModel)
	require.NoError(t, err)
	configuration := settings{"listen": "127.0.0.1:0", "admin_listen": "off", "data": h.data(), "model": model}
	configuration["auth"] = settings{"api_keys": h.makeKeys(people)}
	for _, change := range changes {
		maps.Copy(configuration, change)
	}
	text, err := yaml.Marshal(configuration)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(h.config(), text, 0o600))
	return h
}

func (h *home) makeKeys(people map[string]person) (entries []settings) {
	for _, name := range slices.Sorted(maps.Keys(people)) {
		p := people[name]
		key, hash := identity.NewKey()
		h.keys[name] = key
		entries = append(entries, settings{
			"name": name, "hash": hash, "tenant": p.tenant, "subject": name,
			"groups": p.groups, "attributes": p.attributes, "roles": p.roles,
		})
	}
	return entries
}

func (h *home) path(name string) string { return filepath.Join(h.dir, name) }
func (h *home) config() string          { return h.path("sluice.yaml") }
func (h *home) data() string            { return h.path("data") }

// served is a running daemon.
type served struct {
	*process
	home *home
	url  string
}

// serve starts a daemon and waits until it listens.
func (h *home) serve(flags ...string) *served {
	h.t.Helper()
	p := launch(h.t, append([]string{"serve", "--config", h.config()}, flags...)...)
	return &served{p, h, p.await(&p.err, `msg=listening url=(https?://\S+)`)}
}

// refused runs a daemon that is not to start.
func (h *home) refused(flags ...string) result {
	h.t.Helper()
	r := sluice(h.t, append([]string{"serve", "--config", h.config()}, flags...)...)
	require.Equal(h.t, 1, r.code, "%s", r)
	return r
}

// stop ends the daemon as an operator does.
func (s *served) stop() {
	s.t.Helper()
	s.signal(syscall.SIGTERM)
	require.Zero(s.t, s.wait(), "%s", s.err.text())
}

// as returns the client of a person. It does not send again what was refused.
func (s *served) as(name string) *client.Client { return s.client(name, 0) }

// patient is a person's client that comes again when it is told to: for what a busy
// machine may refuse for a moment.
func (s *served) patient(name string) *client.Client { return s.client(name, 20) }

func (s *served) client(name string, retries int) *client.Client {
	s.t.Helper()
	key, known := s.home.keys[name]
	require.True(s.t, known, "%s has no key", name)
	c, err := client.New(s.url, client.WithAPIKey(key), client.WithRetries(retries))
	require.NoError(s.t, err)
	s.t.Cleanup(c.CloseIdle)
	return c
}

// run runs the command line as a person against the daemon.
func (s *served) run(name string, args ...string) result {
	s.t.Helper()
	return sluice(s.t, append(args, "--server", s.url, "--api-key", s.home.keys[name])...)
}

// collection creates one as the named admin.
func (s *served) collection(admin, name string) {
	s.t.Helper()
	_, err := s.as(admin).CreateCollection(s.t.Context(), name, client.CollectionSettings{})
	require.NoError(s.t, err)
}

// note is a short text document for the readers; nil leaves it to the policies.
func note(key, text string, readers ...string) client.Document {
	d := client.Document{Key: key, Format: "text", Text: text}
	if readers != nil {
		d.Readers = &readers
	}
	return d
}

// check verifies the data directory, which no daemon has open.
func (h *home) check() {
	h.t.Helper()
	r := sluice(h.t, "check", h.data())
	require.Zero(h.t, r.code, "%s", r)
	require.Equal(h.t, "no faults\n", r.out)
}

func refusal(t testing.TB, err error) int {
	t.Helper()
	var p *client.Problem
	require.ErrorAs(t, err, &p, fmt.Sprint(err))
	return p.Status
}

func jsonOf(value any) json.RawMessage {
	text, err := json.Marshal(value)
	if err != nil {
		panic(err) // tests marshal strings and lists
	}
	return text
}
