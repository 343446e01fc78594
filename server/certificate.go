package server

import (
	"bytes"
	"crypto/tls"
	"encoding/pem"
	"fmt"
	"net"
	"os"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"sluice/server/config"
)

// Certificate is the listener's, as it was last read. Connections that are open
// keep the one they began with.
type Certificate struct {
	files   config.TLS
	current atomic.Pointer[tls.Certificate]
}

// LoadCertificate reads the files; its metric is registered.
func LoadCertificate(files config.TLS, registry *prometheus.Registry) (*Certificate, error) {
	c := &Certificate{files: files}
	if err := c.Reload(); err != nil {
		return nil, err
	}
	registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "sluice_tls_certificate_expiry_timestamp_seconds", Help: "When the listener's certificate ends, in seconds since 1970.",
	}, func() float64 { return float64(c.Ends().Unix()) }))
	return c, nil
}

// Ends is until when the certificate is good.
func (c *Certificate) Ends() time.Time { return c.current.Load().Leaf.NotAfter }

// Reload reads the files again. On an error the certificate stays as it was.
func (c *Certificate) Reload() error {
	next, err := loadPair(c.files)
	if err != nil {
		return fmt.Errorf("tls: %w", err)
	}
	if time.Now().After(next.Leaf.NotAfter) {
		return fmt.Errorf("tls: the certificate in %s has ended, on %s", c.files.Cert, next.Leaf.NotAfter.Format(time.DateOnly))
	}
	c.current.Store(&next)
	return nil
}

// loadPair refuses a chain that is half written, of which tls takes what is there.
func loadPair(files config.TLS) (tls.Certificate, error) {
	chain, err := os.ReadFile(files.Cert)
	if err != nil {
		return tls.Certificate{}, err
	}
	key, err := os.ReadFile(files.Key)
	if err != nil {
		return tls.Certificate{}, err
	}
	rest := chain
	for block, after := pem.Decode(rest); block != nil; block, after = pem.Decode(rest) {
		rest = after
	}
	if len(bytes.TrimSpace(rest)) > 0 {
		return tls.Certificate{}, fmt.Errorf("%s: no whole PEM block after the first %d bytes; is it still being written?", files.Cert, len(chain)-len(rest))
	}
	return tls.X509KeyPair(chain, key)
}

// secure makes the listener's connections TLS, 1.2 or newer. Of no certificate
// they stay plain.
func (c *Certificate) secure(listener net.Listener) net.Listener {
	if c == nil {
		return listener
	}
	return tls.NewListener(listener, &tls.Config{
		MinVersion: tls.VersionTLS12,
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
			return c.current.Load(), nil
		},
	})
}
