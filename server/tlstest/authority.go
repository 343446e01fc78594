// Package tlstest makes certificates for tests.
package tlstest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Authority signs certificates of 127.0.0.1.
type Authority struct {
	t    testing.TB
	key  *ecdsa.PrivateKey
	cert *x509.Certificate
}

// New returns an Authority that nobody trusts but its own clients.
func New(t testing.TB) *Authority {
	t.Helper()
	a := &Authority{t: t, key: newKey(t)}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test authority"}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
	}
	a.cert = a.sign(template, template, &a.key.PublicKey)
	return a
}

func newKey(t testing.TB) *ecdsa.PrivateKey {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	return key
}

func (a *Authority) sign(template, parent *x509.Certificate, key *ecdsa.PublicKey) *x509.Certificate {
	der, err := x509.CreateCertificate(rand.Reader, template, parent, key, a.key)
	require.NoError(a.t, err)
	cert, err := x509.ParseCertificate(der)
	require.NoError(a.t, err)
	return cert
}

// Issue writes dir/cert.pem and dir/key.pem, a certificate of that serial
// number and end, and returns their paths.
func (a *Authority) Issue(dir string, serial int64, end time.Time) (cert, key string) {
	a.t.Helper()
	private := newKey(a.t)
	signed := a.sign(&x509.Certificate{
		SerialNumber: big.NewInt(serial), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore: end.Add(-24 * time.Hour), NotAfter: end, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}, a.cert, &private.PublicKey)
	der, err := x509.MarshalPKCS8PrivateKey(private)
	require.NoError(a.t, err)
	return a.write(dir, "cert.pem", "CERTIFICATE", signed.Raw), a.write(dir, "key.pem", "PRIVATE KEY", der)
}

func (a *Authority) write(dir, name, kind string, der []byte) string {
	file := filepath.Join(dir, name)
	require.NoError(a.t, os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600))
	return file
}

// Client returns a client that trusts the authority and keeps its connection.
// change, if it is not nil, changes its TLS.
func (a *Authority) Client(change func(*tls.Config)) *http.Client {
	config := a.trusted()
	if change != nil {
		change(config)
	}
	transport := &http.Transport{TLSClientConfig: config}
	a.t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport, Timeout: time.Minute}
}

func (a *Authority) trusted() *tls.Config {
	roots := x509.NewCertPool()
	roots.AddCert(a.cert)
	return &tls.Config{RootCAs: roots}
}

// Dial returns a connection that trusts the authority.
func (a *Authority) Dial(address string) net.Conn {
	a.t.Helper()
	c, err := tls.Dial("tcp", address, a.trusted())
	require.NoError(a.t, err)
	a.t.Cleanup(func() { c.Close() })
	return c
}

// Serial returns the number of the certificate that a fresh connection shows.
func (a *Authority) Serial(url string) int64 {
	a.t.Helper()
	response, err := a.Client(nil).Get(url)
	require.NoError(a.t, err)
	defer response.Body.Close()
	return response.TLS.PeerCertificates[0].SerialNumber.Int64()
}
