package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"net"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"sluice/eval"
	"sluice/server/config"
)

const (
	evalIssuer   = "sluice-eval"
	evalAudience = "sluice"
	evalLifetime = 12 * time.Hour
	evalTimeout  = 10 * time.Minute // a large document on a busy machine is no finding
)

// self is a daemon of an evaluation's own: a free port, a temporary directory,
// tokens signed with a secret made for the occasion.
type self struct {
	secret    signer
	dir       string
	precision string
	answer    *config.Answer // nil: no model answers
	url       string
	cancel    context.CancelFunc
	done      chan error
}

// selfStarter starts daemons that run the model in a precision.
func selfStarter(precision string) eval.Starter { return answeringStarter(precision, nil) }

// answeringStarter starts daemons that answer with a chat model, too.
func answeringStarter(precision string, answer *config.Answer) eval.Starter {
	return func(ctx context.Context, dataset *eval.Dataset) (eval.Target, error) {
		return startAnswering(ctx, dataset, precision, answer)
	}
}

func startSelf(ctx context.Context, dataset *eval.Dataset, precision string) (eval.Target, error) {
	return startAnswering(ctx, dataset, precision, nil)
}

func startAnswering(ctx context.Context, dataset *eval.Dataset, precision string, answer *config.Answer) (eval.Target, error) {
	dir, err := os.MkdirTemp("", "sluice-eval-")
	if err != nil {
		return eval.Target{}, err
	}
	s := &self{dir: dir, precision: precision, answer: answer, secret: signer(rand.Text() + rand.Text()), done: make(chan error, 1)}
	if err := s.start(ctx, dataset); err != nil {
		return eval.Target{}, errors.Join(err, os.RemoveAll(dir))
	}
	return eval.Target{URL: s.url, Data: filepath.Join(s.dir, "data"), Token: s.secret.token, Stop: s.stop}, nil
}

func (s *self) start(ctx context.Context, dataset *eval.Dataset) error {
	settings, err := s.settings(dataset)
	if err != nil {
		return err
	}
	d := &daemon{config: settings, log: newLogger(settings.Log)}
	if err := d.open(ctx); err != nil {
		return err
	}
	listener, err := net.Listen("tcp", settings.Listen)
	if err != nil {
		return errors.Join(err, d.close())
	}
	s.url = "http://" + listener.Addr().String()
	serving, stop := context.WithCancel(ctx)
	s.cancel = stop
	go func() { s.done <- errors.Join(d.serve(serving, listener, nil), d.close()) }()
	return nil
}

func (s *self) settings(dataset *eval.Dataset) (config.Config, error) {
	key := filepath.Join(s.dir, "secret")
	if err := os.WriteFile(key, s.secret, 0o600); err != nil {
		return config.Config{}, err
	}
	c := config.Default()
	c.Listen, c.AdminListen, c.Data = "127.0.0.1:0", "off", filepath.Join(s.dir, "data")
	c.Precision, c.Answer = s.precision, s.answer
	c.Policies, c.Log.Level = dataset.Policies, "warn"
	c.Limits.RequestTimeout = evalTimeout
	c.Auth.JWT = &config.JWT{
		Issuer: evalIssuer, Audience: evalAudience,
		Keys:   []config.Key{{ID: "eval", Algorithm: "HS256", File: key}},
		Claims: config.Claims{Attributes: attributeNames(dataset)},
	}
	c.EnsureDefaults()
	return c, c.Validate()
}

// attributeNames maps every attribute of the principals to the claim of its name.
func attributeNames(dataset *eval.Dataset) map[string]string {
	names := map[string]string{}
	for _, p := range dataset.Principals {
		for name := range maps.Keys(p.Attributes) {
			names[name] = name
		}
	}
	return names
}

// stop ends the daemon and removes its directory.
func (s *self) stop() error {
	s.cancel()
	return errors.Join(<-s.done, os.RemoveAll(s.dir))
}

// signer is an HS256 secret that a daemon trusts.
type signer []byte

// token is the credential of a principal.
func (s signer) token(_ context.Context, p eval.Principal) (string, error) {
	now := time.Now()
	claims := jwt.MapClaims{
		"iss": evalIssuer, "aud": evalAudience, "iat": now.Unix(), "exp": now.Add(evalLifetime).Unix(),
		"tenant": p.Tenant, "sub": p.Name, "groups": slices.Concat([]string{}, p.Groups), "roles": p.Roles,
	}
	for name, value := range p.Attributes {
		if _, taken := claims[name]; taken {
			return "", fmt.Errorf("the attribute %q of %s has the name of a claim", name, p.Name)
		}
		claims[name] = value
	}
	token := jwt.NewWithClaims(jwt.SigningMethodHS256, claims)
	token.Header["kid"] = "eval"
	return token.SignedString([]byte(s))
}
