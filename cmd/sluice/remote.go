package main

import (
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"syscall"
	"unicode"

	"sluice/client"
)

// defaultServer is where a daemon listens if nothing else is said.
const defaultServer = "http://127.0.0.1:8080"

// remote says which daemon to talk to, and as whom.
type remote struct {
	Server string `help:"Address of the daemon." default:"http://127.0.0.1:8080" env:"SLUICE_SERVER"`
	Token  string `help:"Bearer token (a JWT)." env:"SLUICE_TOKEN"`
	APIKey string `name:"api-key" help:"API key." env:"SLUICE_API_KEY"`
	As     string `help:"Demo principal to act as; only a daemon started with --demo allows it."`
}

func (r remote) client() (*client.Client, error) {
	var options []client.Option
	if r.Token != "" {
		options = append(options, client.WithToken(r.Token))
	}
	if r.APIKey != "" {
		options = append(options, client.WithAPIKey(r.APIKey))
	}
	if r.As != "" {
		options = append(options, client.WithDemoPrincipal(r.As))
	}
	if len(options) > 1 {
		return nil, errors.New("give one of --token, --api-key and --as; SLUICE_TOKEN and SLUICE_API_KEY of the environment count as the first two")
	}
	if strings.ContainsFunc(r.Token+r.APIKey, unicode.IsSpace) {
		return nil, errors.New("the token or API key has blanks or line breaks, as a whole file of 'sluice key' has: give only the word that is the key")
	}
	return client.New(r.Server, options...)
}

// hint adds to an error what its usual cause is.
func (r remote) hint(err error) error {
	var problem *client.Problem
	switch {
	case errors.As(err, &problem) && problem.Status == http.StatusUnauthorized:
		return fmt.Errorf("%w (here: --api-key or --token, or --as with the name of a demo principal)", err)
	case errors.As(err, &problem) && problem.Status == http.StatusForbidden:
		return fmt.Errorf("%w (here: --api-key, --token or --as of somebody who has the role)", err)
	case errors.Is(err, syscall.ECONNREFUSED):
		return fmt.Errorf("%w (is a daemon serving there? --server names another)", err)
	case errors.As(err, new(x509.UnknownAuthorityError)):
		return fmt.Errorf("%w (the environment's SSL_CERT_FILE=ca.pem names who signed its certificate)", err)
	case errors.Is(err, io.EOF) && strings.HasPrefix(r.Server, "http://"):
		return fmt.Errorf("%w (perhaps the daemon speaks HTTPS: --server https://…)", err)
	}
	return err
}
