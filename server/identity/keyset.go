package identity

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"time"

	"github.com/MicahParks/jwkset"
	"github.com/MicahParks/keyfunc/v3"
	"github.com/golang-jwt/jwt/v5"
	"golang.org/x/time/rate"

	"sluice/server/config"
)

const (
	maxKeyFile      = 1 << 20
	minSecret       = 32  // bytes, RFC 7518, 3.2
	minModulus      = 256 // bytes, RFC 7518, 3.3
	refreshInterval = 5 * time.Minute
	refreshTimeout  = 5 * time.Second
)

// loadKeys gathers the keys of files and of the JWKS URL. An unreachable URL is
// logged and tried again; its tokens are refused meanwhile.
func loadKeys(ctx context.Context, c config.JWT) (keyfunc.Keyfunc, error) {
	given := jwkset.NewMemoryStorage()
	if c.JWKSFile != "" {
		if err := addKeySet(ctx, given, c.JWKSFile); err != nil {
			return nil, err
		}
	}
	for _, k := range c.Keys {
		if err := addKey(ctx, given, k); err != nil {
			return nil, fmt.Errorf("key %s: %w", k.ID, err)
		}
	}
	var urls []string
	if c.JWKSURL != "" {
		urls = []string{c.JWKSURL}
	}
	return keyfunc.NewDefaultOverrideCtx(ctx, urls, keyfunc.Override{
		Given:             given,
		Client:            &http.Client{Transport: boundedTransport{http.DefaultTransport}},
		HTTPTimeout:       refreshTimeout,
		RefreshInterval:   refreshInterval,
		RefreshUnknownKID: rate.NewLimiter(rate.Every(time.Minute), 1),
		RateLimitWaitMax:  refreshTimeout, // an unknown key id must not hold a request up
	})
}

func addKeySet(ctx context.Context, storage jwkset.Storage, file string) error {
	text, err := readKeyFile(file)
	if err != nil {
		return err
	}
	var set jwkset.JWKSMarshal
	if err := json.Unmarshal(text, &set); err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	keys, err := set.JWKSlice()
	if err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	return storage.KeyReplaceAll(ctx, keys)
}

func addKey(ctx context.Context, storage jwkset.Storage, k config.Key) error {
	text, err := readKeyFile(k.File)
	if err != nil {
		return err
	}
	key, err := parseKey(k.Algorithm, text)
	if err != nil {
		return fmt.Errorf("%s: %w", k.File, err)
	}
	jwk, err := jwkset.NewJWKFromKey(key, jwkset.JWKOptions{
		Metadata: jwkset.JWKMetadataOptions{KID: k.ID, ALG: jwkset.ALG(k.Algorithm)},
		Marshal:  jwkset.JWKMarshalOptions{Private: true}, // else a symmetric key is dropped
	})
	if err != nil {
		return err
	}
	return storage.KeyWrite(ctx, jwk)
}

func parseKey(algorithm string, text []byte) (any, error) {
	switch algorithm {
	case "HS256":
		secret := bytes.TrimRight(text, "\r\n")
		if len(secret) < minSecret {
			return nil, fmt.Errorf("the secret is shorter than %d bytes", minSecret)
		}
		return secret, nil
	case "RS256":
		key, err := jwt.ParseRSAPublicKeyFromPEM(text)
		if err == nil && key.Size() < minModulus {
			err = fmt.Errorf("the RSA key is shorter than %d bits", 8*minModulus)
		}
		return key, err
	case "EdDSA":
		return jwt.ParseEdPublicKeyFromPEM(text)
	default:
		return nil, fmt.Errorf("algorithm %q is not supported", algorithm)
	}
}

func readKeyFile(file string) ([]byte, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxKeyFile+1))
	if err == nil && len(text) > maxKeyFile {
		err = errors.New("the file is too long for a key")
	}
	return text, err
}

// boundedTransport bounds response bodies, which the JWKS client does not.
type boundedTransport struct{ http.RoundTripper }

func (t boundedTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	response, err := t.RoundTripper.RoundTrip(r)
	if err == nil {
		response.Body = http.MaxBytesReader(nil, response.Body, maxKeyFile)
	}
	return response, err
}
