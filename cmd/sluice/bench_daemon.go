package main

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"go.yaml.in/yaml/v3"

	"sluice/client"
)

// benchDaemon is a daemon in a process of its own, so that what it uses is not
// mixed with what the load generator does: default settings, a temporary
// directory, tokens signed with a secret made for the occasion.
type benchDaemon struct {
	url     string
	admin   string // host:port
	secret  signer
	dir     string
	command *exec.Cmd
	ended   chan struct{}
}

// benchDaemonCommand is that process: 'sluice serve' that can profile itself.
type benchDaemonCommand struct {
	profile
	Config string `arg:"" type:"existingfile"`
}

func (c benchDaemonCommand) Run(ctx context.Context, flags *settingFlags) error {
	return c.run(func() error { return (&serveCommand{Config: c.Config}).Run(ctx, flags) })
}

// benchSettings are what is not as by default.
type benchSettings struct {
	data             string // directory, which stays; "": one that does not
	policies         string
	attributes       map[string]string
	model, precision string
	connections      int     // at least
	profile          profile // of the daemon
}

// startBenchDaemon returns when the daemon is ready.
func startBenchDaemon(ctx context.Context, c benchSettings) (*benchDaemon, error) {
	dir, err := os.MkdirTemp("", "sluice-bench-")
	if err != nil {
		return nil, err
	}
	d := &benchDaemon{dir: dir, secret: signer(rand.Text() + rand.Text()), ended: make(chan struct{})}
	if err := d.start(ctx, c); err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	if err := d.await(ctx); err != nil {
		return nil, errors.Join(err, d.stop())
	}
	return d, nil
}

func (d *benchDaemon) start(ctx context.Context, c benchSettings) error {
	address, err := freeAddress()
	if err != nil {
		return err
	}
	d.url = "http://" + address
	if d.admin, err = freeAddress(); err != nil {
		return err
	}
	if err := d.configure(address, c); err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	log, err := os.Create(d.path("log"))
	if err != nil {
		return err
	}
	defer log.Close()
	d.command = exec.CommandContext(ctx, self, append([]string{"bench", "daemon", d.path("sluice.yaml")}, c.profile.args()...)...)
	d.command.Stderr = log
	d.command.Cancel = func() error { return d.command.Process.Signal(syscall.SIGTERM) }
	if err := d.command.Start(); err != nil {
		return fmt.Errorf("starting the daemon: %w", err)
	}
	go func() {
		defer close(d.ended)
		_ = d.command.Wait() // stop looks at the state
	}()
	return nil
}

func (d *benchDaemon) path(name string) string { return filepath.Join(d.dir, name) }

// freeAddress is one that nobody listens on now.
func freeAddress() (string, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return listener.Addr().String(), listener.Close()
}

// absolute makes paths mean the same in a configuration file, wherever that is.
func (c *benchSettings) absolute() (err error) {
	paths := []*string{&c.data, &c.policies}
	if info, err := os.Stat(c.model); err == nil && info.IsDir() {
		paths = append(paths, &c.model) // else it is a name
	}
	for _, path := range paths {
		if *path == "" {
			continue
		}
		if *path, err = filepath.Abs(*path); err != nil {
			return err
		}
	}
	return nil
}

func (d *benchDaemon) configure(address string, c benchSettings) error {
	if err := c.absolute(); err != nil {
		return err
	}
	if err := os.WriteFile(d.path("secret"), d.secret, 0o600); err != nil {
		return err
	}
	settings, err := yaml.Marshal(map[string]any{
		"listen": address, "admin_listen": d.admin, "data": cmp.Or(c.data, d.path("data")), "policies": c.policies,
		"model": c.model, "precision": c.precision, "limits": map[string]any{"connections": max(c.connections, 4096)},
		"auth": map[string]any{"jwt": map[string]any{
			"issuer": evalIssuer, "audience": evalAudience,
			"keys":   []map[string]string{{"id": "eval", "algorithm": "HS256", "file": d.path("secret")}},
			"claims": map[string]any{"attributes": c.attributes},
		}},
	})
	if err != nil {
		return err
	}
	return os.WriteFile(d.path("sluice.yaml"), settings, 0o600)
}

// await polls until the daemon says that it is ready.
func (d *benchDaemon) await(ctx context.Context) error {
	api, err := client.New(d.url, client.WithRetries(0))
	if err != nil {
		return err
	}
	defer api.CloseIdle()
	for {
		if api.Ready(ctx) == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-d.ended:
			log, err := os.ReadFile(d.path("log"))
			return errors.Join(fmt.Errorf("the daemon does not start; it said:\n%s", log), err)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// stop ends the daemon and removes its directory.
func (d *benchDaemon) stop() error {
	_ = d.command.Process.Signal(syscall.SIGTERM) // it may have ended
	<-d.ended
	var err error
	if !d.command.ProcessState.Success() {
		err = fmt.Errorf("the daemon ended with %v", d.command.ProcessState)
	}
	return errors.Join(err, os.RemoveAll(d.dir))
}
