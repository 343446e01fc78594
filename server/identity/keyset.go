package identity

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/rsa"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"slices"
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

// fetched are the keys last fetched from a JWKS URL; zero: there is none.
type fetched struct {
	url  string
	keys jwkset.Storage
}

// loadKeys gathers the keys of files and of the JWKS URL. An unreachable URL is
// logged and tried again, unless it has to be reachable; meanwhile the keys last
// fetched from there count, and where there are none its tokens are refused.
func loadKeys(ctx context.Context, c config.JWT, last fetched, reachable bool) (keys keyfunc.Keyfunc, remote fetched, err error) {
	given := jwkset.NewMemoryStorage()
	if c.JWKSFile != "" {
		if err := addKeySet(ctx, given, c.JWKSFile); err != nil {
			return nil, remote, err
		}
	}
	for _, k := range c.Keys {
		if err := addKey(ctx, given, k); err != nil {
			return nil, remote, fmt.Errorf("key %s: %w", k.ID, err)
		}
	}
	storage := jwkset.Storage(given)
	if c.JWKSURL != "" {
		remote = fetched{c.JWKSURL, publicKeys{jwkset.NewMemoryStorage()}}
		if last.url == remote.url {
			reachable = false
			if err := remote.take(ctx, last); err != nil {
				return nil, remote, err
			}
		}
		if storage, err = watchKeySet(ctx, given, remote, reachable); err != nil {
			return nil, remote, err
		}
	}
	keys, err = keyfunc.New(keyfunc.Options{Ctx: ctx, Storage: storage})
	return keys, remote, err
}

// take takes over what is known of the same URL.
func (f fetched) take(ctx context.Context, last fetched) error {
	keys, err := last.keys.KeyReadAll(ctx)
	if err != nil {
		return err
	}
	return f.keys.KeyReplaceAll(ctx, keys)
}

// watchKeySet adds the keys of the JWKS URL, now and then as they change, to
// those given; a given key wins over one of the same id.
func watchKeySet(ctx context.Context, given jwkset.Storage, f fetched, reachable bool) (jwkset.Storage, error) {
	remote, err := jwkset.NewStorageFromHTTP(f.url, jwkset.HTTPClientStorageOptions{
		Client:                    &http.Client{Transport: boundedTransport{http.DefaultTransport}},
		Ctx:                       ctx,
		HTTPTimeout:               refreshTimeout,
		NoErrorReturnFirstHTTPReq: !reachable,
		RefreshInterval:           refreshInterval,
		RefreshErrorHandler: func(ctx context.Context, err error) {
			slog.ErrorContext(ctx, "fetching auth.jwt.jwks_url", "error", err) // which masks a password in the URL
		},
		Storage: f.keys,
	})
	if err != nil {
		return nil, err
	}
	return jwkset.NewHTTPClient(jwkset.HTTPClientOptions{
		Given:             given,
		HTTPURLs:          map[string]jwkset.Storage{f.url: remote},
		RefreshUnknownKID: rate.NewLimiter(rate.Every(time.Minute), 1),
		RateLimitWaitMax:  refreshTimeout, // an unknown key id must not hold a request up
	})
}

// publicKeys leaves out of a key set what does not belong there. A key set is
// read by many: whoever reads a secret in it could sign tokens.
type publicKeys struct{ jwkset.Storage }

func (p publicKeys) KeyReplaceAll(ctx context.Context, keys []jwkset.JWK) error {
	return p.Storage.KeyReplaceAll(ctx, slices.DeleteFunc(keys, func(k jwkset.JWK) bool { return checkPublic(k) != nil }))
}

func checkPublic(k jwkset.JWK) error {
	switch key := k.Key().(type) {
	case ed25519.PublicKey:
		return nil
	case *rsa.PublicKey:
		if key.Size() < minModulus {
			return fmt.Errorf("the RSA key is shorter than %d bits", 8*minModulus)
		}
		return nil
	default:
		return fmt.Errorf("a key set may hold public RSA and Ed25519 keys, not a %T; secrets belong into auth.jwt.keys", key)
	}
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
	for _, k := range keys {
		if err := checkPublic(k); err != nil {
			return fmt.Errorf("%s: key %q: %w", file, k.Marshal().KID, err)
		}
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
