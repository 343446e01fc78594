package server

import (
	"crypto/tls"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"

	"sluice/server/config"
	"sluice/server/tlstest"
)

// secure starts a Server with a certificate of serial number 7.
func secure(t *testing.T) (*daemon, *tlstest.Authority, string) {
	authority, dir := tlstest.New(t), t.TempDir()
	cert, key := authority.Issue(dir, 7, time.Now().Add(time.Hour))
	d := start(t, func(s *setup) { s.tls = config.TLS{Cert: cert, Key: key} })
	d.url = strings.Replace(d.url, "http:", "https:", 1)
	return d, authority, dir
}

func TestTLS(t *testing.T) {
	d, authority, _ := secure(t)
	get := func(c *http.Client, url string) error {
		response, err := c.Get(url)
		if err == nil {
			response.Body.Close()
		}
		return err
	}
	for version, allowed := range map[uint16]bool{tls.VersionTLS11: false, tls.VersionTLS12: true, tls.VersionTLS13: true} {
		c := authority.Client(func(c *tls.Config) { c.MinVersion, c.MaxVersion = version, version })
		require.Equal(t, allowed, get(c, d.url+"/healthz") == nil, tls.VersionName(version))
	}
	require.Error(t, get(http.DefaultClient, d.url+"/healthz"), "nobody else trusts the certificate")
	require.Error(t, get(authority.Client(nil), strings.Replace(d.url, "https", "http", 1)+"/healthz"), "no plain HTTP beside it")

	request, err := http.NewRequest("PUT", d.url+"/v1/collections/c", strings.NewReader(strings.Repeat(" ", 8<<20)))
	require.NoError(t, err)
	request.Header.Set("Authorization", bearer("root"))
	request.Header.Set("Content-Type", "application/json")
	response, err := authority.Client(nil).Do(request)
	require.NoError(t, err, "a client that still sends sees the answer")
	require.Equal(t, http.StatusRequestEntityTooLarge, response.StatusCode)
	response.Body.Close()
}

func TestCertificateRotates(t *testing.T) {
	d, authority, dir := secure(t)
	open := authority.Client(nil)
	serialOf := func(c *http.Client) int64 {
		response, err := c.Get(d.url + "/healthz")
		require.NoError(t, err)
		_, err = io.Copy(io.Discard, response.Body) // else the connection is not kept
		require.NoError(t, err)
		response.Body.Close()
		return response.TLS.PeerCertificates[0].SerialNumber.Int64()
	}
	require.EqualValues(t, 7, serialOf(open))
	cert, _ := authority.Issue(dir, 8, time.Now().Add(20*time.Hour))
	require.EqualValues(t, 7, authority.Serial(d.url+"/healthz"), "not before it is told")
	require.NoError(t, d.certificate.Reload())
	require.EqualValues(t, 8, authority.Serial(d.url+"/healthz"))
	require.EqualValues(t, 7, serialOf(open), "open connections go on")
	expiry, err := testutil.GatherAndCount(d.registry, "sluice_tls_certificate_expiry_timestamp_seconds")
	require.NoError(t, err)
	require.Equal(t, 1, expiry)

	good, err := os.ReadFile(cert)
	require.NoError(t, err)
	for name, spoil := range map[string]func(){
		"no PEM": func() { require.NoError(t, os.WriteFile(cert, []byte("certificate"), 0o600)) },
		"cut":    func() { require.NoError(t, os.WriteFile(cert, good[:len(good)/2], 0o600)) },
		"half a chain": func() { // as long as a certificate and most of an intermediate one
			require.NoError(t, os.WriteFile(cert, append(slices.Clone(good), good[:len(good)-40]...), 0o600))
		},
		"gone": func() { require.NoError(t, os.Remove(cert)) },
		"of another key": func() {
			authority.Issue(dir, 9, time.Now().Add(time.Hour))
			require.NoError(t, os.WriteFile(cert, good, 0o600))
		},
		"ended": func() { authority.Issue(dir, 10, time.Now().Add(-time.Minute)) },
	} {
		spoil()
		require.Error(t, d.certificate.Reload(), name)
		require.EqualValues(t, 8, authority.Serial(d.url+"/healthz"), name)
	}
	authority.Issue(dir, 11, time.Now().Add(time.Hour))
	require.NoError(t, d.certificate.Reload())
	require.EqualValues(t, 11, authority.Serial(d.url+"/healthz"))
}
