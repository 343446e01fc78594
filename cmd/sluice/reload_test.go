package main

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"io"
	"net/http"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"github.com/stretchr/testify/require"

	"sluice/server/identity"
	"sluice/server/tlstest"
)

// reloading is a daemon with a certificate, a key for tokens and an API key.
type reloading struct {
	*served
	t         *testing.T
	authority *tlstest.Authority
	http      *http.Client
	admin     string
}

func newReloading(t *testing.T) *reloading {
	r := &reloading{t: t, authority: tlstest.New(t)}
	h := newHome(t, onePerson, settings{"admin_listen": "127.0.0.1:0"})
	cert, key := r.authority.Issue(h.dir, 1, time.Now().Add(time.Hour))
	h.edit("auth:\n", "tls: {cert: "+cert+", key: "+key+"}\nauth:\n    jwt: {issuer: i, audience: a, default_role: read, keys: [{id: k, algorithm: EdDSA, file: "+h.path("token.pem")+"}]}\n")
	r.http = r.authority.Client(nil)
	writeToken(t, h.path("token.pem"))
	r.served = h.serve()
	r.admin = r.await(&r.err, `msg="listening for administrators" url=(http://\S+)`)
	return r
}

// edit replaces text in the configuration file.
func (h *home) edit(old, text string) {
	h.t.Helper()
	content, err := os.ReadFile(h.config())
	require.NoError(h.t, err)
	require.Contains(h.t, string(content), old)
	require.NoError(h.t, os.WriteFile(h.config(), []byte(strings.Replace(string(content), old, text, 1)), 0o600))
}

// writeToken writes a public key, and returns a token of its private key.
func writeToken(t *testing.T, file string) string {
	public, private, err := ed25519.GenerateKey(rand.Reader)
	require.NoError(t, err)
	der, err := x509.MarshalPKIXPublicKey(public)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}), 0o600))
	token := jwt.NewWithClaims(jwt.SigningMethodEdDSA, jwt.MapClaims{"iss": "i", "aud": "a", "sub": "s", "tenant": "acme", "exp": time.Now().Add(time.Hour).Unix()})
	token.Header["kid"] = "k"
	signed, err := token.SignedString(private)
	require.NoError(t, err)
	return signed
}

// info is the status that the bearer of a secret gets.
func (r *reloading) info(secret string) int { return r.send("GET", "/info", "", secret) }

// send returns the status of a request.
func (r *reloading) send(method, path, body, secret string) int {
	r.t.Helper()
	request, err := http.NewRequest(method, r.url+path, strings.NewReader(body))
	require.NoError(r.t, err)
	request.Header.Set("Authorization", "Bearer "+secret)
	request.Header.Set("Content-Type", "application/json")
	response, err := r.http.Do(request)
	require.NoError(r.t, err)
	response.Body.Close()
	return response.StatusCode
}

// reload asks the admin listener for it.
func (r *reloading) reload() (status int, body string) {
	r.t.Helper()
	request, err := http.NewRequest("PUT", r.admin+"/reload", nil)
	require.NoError(r.t, err)
	response, err := http.DefaultClient.Do(request)
	require.NoError(r.t, err)
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	require.NoError(r.t, err)
	return response.StatusCode, string(text)
}

// metrics is all of /metrics.
func (r *reloading) metrics() string {
	r.t.Helper()
	response, err := http.Get(r.admin + "/metrics")
	require.NoError(r.t, err)
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	require.NoError(r.t, err)
	return string(text)
}

// metric is a line of /metrics without its name's rest.
func (r *reloading) metric(name string) string {
	r.t.Helper()
	_, rest, found := strings.Cut(r.metrics(), "\n"+name+" ")
	require.True(r.t, found, name)
	value, _, _ := strings.Cut(rest, "\n")
	return value
}

func TestReload(t *testing.T) {
	t.Parallel()
	r := newReloading(t)
	h, old := r.home, r.home.keys["ann"]
	require.Equal(t, 200, r.info(old))

	token := writeToken(t, h.path("token.pem"))
	require.Equal(t, 401, r.info(token))
	r.authority.Issue(h.dir, 2, time.Now().Add(time.Hour))
	status, body := r.reload()
	require.Equal(t, 204, status, body)
	require.Equal(t, 200, r.info(token))
	require.EqualValues(t, 2, r.authority.Serial(r.url+"/healthz"))
	for _, what := range []string{"policies", "keys", "certificates"} {
		require.Equal(t, "1", r.metric(`sluice_last_reload_successful{what="`+what+`"}`))
	}

	// Each that is broken stays as it was, and the others are renewed.
	require.NoError(t, os.WriteFile(h.path("cert.pem"), []byte("broken"), 0o600))
	next := writeToken(t, h.path("token.pem"))
	status, body = r.reload()
	require.Equal(t, 500, status)
	require.Contains(t, body, "tls: ")
	r.await(&r.err, `the certificates are refused; those before stay in force`)
	require.EqualValues(t, 2, r.authority.Serial(r.url+"/healthz"))
	require.Equal(t, []int{401, 200}, []int{r.info(token), r.info(next)})
	require.Equal(t, "0", r.metric(`sluice_last_reload_successful{what="certificates"}`))
	require.Equal(t, "1", r.metric(`sluice_last_reload_successful{what="keys"}`))

	r.authority.Issue(h.dir, 3, time.Now().Add(time.Hour))
	require.NoError(t, os.WriteFile(h.path("token.pem"), []byte("broken"), 0o600))
	r.signal(syscall.SIGHUP)
	r.await(&r.err, `the keys are refused; those before stay in force`)
	require.Eventually(t, func() bool { return r.authority.Serial(r.url+"/healthz") == 3 }, patience, 10*time.Millisecond)
	require.Equal(t, 200, r.info(next))
	r.stop()
}

// An API key that is taken out of the file ends with the next reload.
func TestReloadOfAPIKeys(t *testing.T) {
	t.Parallel()
	r := newReloading(t)
	old := r.home.keys["ann"]
	key, hash := identity.NewKey()
	_, before, _ := strings.Cut(readText(t, r.home.config()), "hash: ")
	before, _, _ = strings.Cut(before, "\n")
	r.home.edit(before, hash)
	r.home.edit("listen: 127.0.0.1:0", "listen: 127.0.0.1:1")
	status, body := r.reload()
	require.Equal(t, 204, status, body)
	require.Equal(t, []int{401, 200}, []int{r.info(old), r.info(key)})
	r.await(&r.err, `takes effect at the next start`)

	r.home.edit(hash, "sha256:none")
	status, body = r.reload()
	require.Equal(t, 500, status)
	require.Contains(t, body, "auth.api_keys[0].hash")
	require.Equal(t, 200, r.info(key))
	r.stop()
}

func readText(t testing.TB, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	return string(text)
}
