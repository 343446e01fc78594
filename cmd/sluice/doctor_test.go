package main

import (
	"encoding/json"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sluice/needs"
	"sluice/server/tlstest"
	"sluice/store/postgres/postgrestest"
)

// doctor examines the home, and returns the findings of each check by severity.
func (h *home) doctor(code int) (found map[string][]finding) {
	h.t.Helper()
	r := sluice(h.t, "doctor", "--json", "--config", h.config())
	require.Equal(h.t, code, r.code, "%s", r)
	var report struct{ Findings []finding }
	require.NoError(h.t, json.Unmarshal([]byte(r.out), &report))
	found = map[string][]finding{}
	for _, f := range report.Findings {
		found[f.Check] = append(found[f.Check], f)
	}
	return found
}

// finds is a test's expectation: a fault or warning of the check that says so.
func finds(t *testing.T, found map[string][]finding, check string, s severity, what string) {
	t.Helper()
	for _, f := range found[check] {
		if f.Severity == s && strings.Contains(f.What, what) {
			return
		}
	}
	t.Errorf("no %s of %s says %q: %v", s, check, what, found[check])
}

func TestDoctorOfAHealthyDaemon(t *testing.T) {
	t.Parallel()
	h := newHome(t, onePerson, pretrained(t))
	require.Equal(t, h.dir, above(filepath.Join(h.dir, "a", "b", "c")))
	found := h.doctor(0)
	finds(t, found, "data", fine, "not there yet")
	d := h.serve()
	d.collection("ann", "docs")
	_, err := d.as("ann").Write(t.Context(), "docs", note("a", "harbour"))
	require.NoError(t, err)
	finds(t, h.doctor(0), "store", fine, "a daemon has it open")
	d.stop()
	before := digest(t, h.data())
	found = h.doctor(0)
	finds(t, found, "store", fine, "1 collections")
	finds(t, found, "index", fine, "segments, at epoch")
	finds(t, found, "model", fine, "every file is what was pulled")
	require.Equal(t, before, digest(t, h.data()), "it changes nothing")

	r := sluice(t, "doctor", "--config", h.config())
	require.Contains(t, r.out, "0 faults")
	require.NotContains(t, r.out, h.keys["ann"])
}

func TestDoctorOfBrokenSettings(t *testing.T) {
	t.Parallel()
	busy, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer busy.Close()
	empty := t.TempDir()
	authority, dir := tlstest.New(t), t.TempDir()
	cert, key := authority.Issue(dir, 1, time.Now().Add(time.Hour))
	for name, c := range map[string]struct {
		change settings
		code   int
		check  string
		s      severity
		what   string
	}{
		"key":         {settings{"limitz": 1}, 1, "configuration", fault, "there is no key limitz; the file has "},
		"value":       {settings{"precision": "f64"}, 1, "configuration", fault, "precision: must be one of auto, f32"},
		"port":        {settings{"listen": busy.Addr().String()}, 1, "listen", fault, "taken by another program"},
		"address":     {settings{"listen": "192.0.2.1:80"}, 1, "listen", fault, "192.0.2.1"},
		"plain":       {settings{"listen": "0.0.0.0:0"}, 0, "listen", warning, "plain HTTP"},
		"admin":       {settings{"admin_listen": "0.0.0.0:0"}, 0, "admin_listen", warning, "asks for no key"},
		"certificate": {settings{"tls": settings{"cert": cert, "key": cert}}, 1, "tls", fault, "tls: "},
		"ends":        {settings{"tls": settings{"cert": cert, "key": key}}, 0, "tls", warning, "the certificate ends"},
		"policies":    {settings{"policies": lay(t, t.TempDir(), map[string]string{"schema.cedarschema": schemaText, "a.cedar": "permit ("})}, 1, "policies", fault, "a.cedar:1"},
		"no policies": {settings{"policies": lay(t, t.TempDir(), map[string]string{"schema.cedarschema": schemaText})}, 0, "policies", warning, "nobody reads anything"},
		"model":       {settings{"model": "no-such"}, 1, "model", fault, "unknown model"},
		"not pulled":  {settings{"model": "owner/none"}, 0, "model", warning, "not there yet"},
		"data":        {settings{"data": cert}, 1, "data", fault, "no directory"},
		"readable":    {settings{"data": readable(t)}, 0, "data", warning, "everybody"},
		"milvus":      {settings{"milvus": []string{"127.0.0.1:1"}}, 1, "milvus", fault, "refused"},
		"database":    {settings{"store": "postgres://u:hidden@127.0.0.1:1/d?pool_max_conns=3"}, 1, "database", fault, "refused"},
		"gpu":         {settings{"device": "cuda"}, 1, "gpu", fault, "sluice-gpu"},
		"token keys":  {settings{"auth": settings{"jwt": settings{"issuer": "i", "audience": "a", "jwks_file": filepath.Join(empty, "none.json")}}}, 1, "auth", fault, "none.json"},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHome(t, onePerson, c.change)
			found := h.doctor(c.code)
			finds(t, found, c.check, c.s, c.what)
			require.NotContains(t, string(jsonOf(found)), "hidden")
		})
	}
}

func TestDoctorOfOneWrongKey(t *testing.T) {
	t.Parallel()
	found := newHome(t, onePerson, settings{"limitz": 1}).doctor(1)
	require.Len(t, found["configuration"], 1)
	found = newHome(t, onePerson).doctor(0)
	finds(t, found, "auth", fine, "1 API keys, no JWTs")
}

func TestDoctorOfNoFile(t *testing.T) {
	t.Parallel()
	r := sluice(t, "doctor", "--config", filepath.Join(t.TempDir(), "none.yaml"))
	require.Equal(t, 1, r.code)
	require.Contains(t, r.out, "do: name a file that is there with --config")
}

func readable(t *testing.T) string {
	dir := t.TempDir()
	require.NoError(t, os.Chmod(dir, 0o755))
	return dir
}

func TestDoctorOfDamage(t *testing.T) {
	t.Parallel()
	copied := filepath.Join(t.TempDir(), "copy")
	require.NoError(t, os.CopyFS(copied, os.DirFS(needs.Model(t))))
	h := newHome(t, onePerson, settings{"model": copied})
	d := h.serve()
	d.collection("ann", "docs")
	_, err := d.as("ann").Write(t.Context(), "docs", note("a", "harbour"))
	require.NoError(t, err)
	d.stop()

	flip(t, filepath.Join(copied, "tokenizer.json"), 100)
	finds(t, h.doctor(1), "model", fault, "tokenizer.json: SHA-256")
	require.NoError(t, os.Remove(filepath.Join(copied, "SHA256SUMS")))
	finds(t, h.doctor(0), "model", warning, "no record")

	segments, err := filepath.Glob(filepath.Join(indexDir(h.data()), "*", "*.seg"))
	require.NoError(t, err)
	require.NotEmpty(t, segments)
	require.NoError(t, os.Truncate(segments[0], 10))
	finds(t, h.doctor(0), "index", warning, "cannot be used")

	require.NoError(t, os.WriteFile(filepath.Join(storeDir(h.data()), "FORMAT"), []byte("sluice store 99\n"), 0o600))
	finds(t, h.doctor(1), "store", fault, "format 99")
}

func TestDoctorReachesTheDatabase(t *testing.T) {
	t.Parallel()
	h := newHome(t, onePerson, settings{"store": postgrestest.URL(t)})
	require.Len(t, h.doctor(0)["database"], 1)
}
