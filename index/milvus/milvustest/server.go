// Package milvustest starts a real Milvus server for tests: the one of PyPI's
// package milvus, which `make milvus` installs.
package milvustest

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/milvus-io/milvus-sdk-go/v2/client"
)

const startTimeout = 3 * time.Minute

// Server is a server on this machine.
type Server struct {
	Address string

	dir, program string
	port         int
	command      *exec.Cmd
}

// Main runs the tests of a package with a server, which address gets. Where there
// is none to be had, address gets "" and why.
func Main(m *testing.M, address func(string, error)) int {
	if given := os.Getenv("MILVUS_ADDR"); given != "" {
		address(given, nil)
		return m.Run()
	}
	s, err := Start()
	if err != nil {
		address("", err)
		return m.Run()
	}
	defer s.Remove()
	address(s.Address, nil)
	return m.Run()
}

// Need skips a test that has no server, or fails it where nothing may be lacking.
func Need(t testing.TB, err error) {
	t.Helper()
	switch {
	case err == nil:
	case os.Getenv("SLUICE_REQUIRE_ALL") == "1":
		t.Fatalf("SLUICE_REQUIRE_ALL=1, but there is no Milvus server: %v", err)
	default:
		t.Skipf("SKIPPED: there is no Milvus server: %v", err)
	}
}

// Start starts a server with an empty directory on a free port of the loopback
// interface, and waits until it answers.
func Start() (*Server, error) {
	cache, err := cacheDir()
	if err != nil {
		return nil, err
	}
	installed := filepath.Join(cache, "milvus")
	if _, err := os.Stat(filepath.Join(installed, "installed")); err != nil {
		return nil, fmt.Errorf("run 'make milvus' first: %w", err)
	}
	dir, err := os.MkdirTemp("", "milvus-")
	if err != nil {
		return nil, err
	}
	s := &Server{dir: dir, program: filepath.Join(installed, "bin", "milvus-server")}
	if err := s.prepare(filepath.Join(installed, "unpacked")); err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	if err := s.Restart(); err != nil {
		s.Remove()
		return nil, err
	}
	return s, nil
}

func cacheDir() (string, error) {
	if dir := os.Getenv("SLUICE_CACHE"); dir != "" {
		return dir, nil
	}
	home, err := os.UserHomeDir()
	return filepath.Join(home, ".cache", "sluice"), err
}

// prepare chooses a port, and has all servers share what the package unpacks.
func (s *Server) prepare(unpacked string) error {
	if err := os.MkdirAll(unpacked, 0o755); err != nil {
		return err
	}
	if err := os.Symlink(unpacked, filepath.Join(s.dir, "bin")); err != nil {
		return err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	s.Address = listener.Addr().String()
	s.port = listener.Addr().(*net.TCPAddr).Port
	return listener.Close()
}

// Restart starts the server that Kill ended, on the same address and directory.
// Its clock ticks faster than is usual, so that tests wait less for writes.
func (s *Server) Restart() error {
	s.command = exec.Command(s.program, "--data", s.dir, "--proxy-port", strconv.Itoa(s.port), "--extra-config", "proxy.timeTickInterval=20")
	s.command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := s.command.Start(); err != nil {
		return fmt.Errorf("starting Milvus: %w", err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	c, err := client.NewClient(ctx, client.Config{Address: s.Address})
	if err != nil {
		return fmt.Errorf("waiting for Milvus: %w", err)
	}
	defer c.Close() //nolint:errcheck // it was only asked
	return s.awaitHealth(ctx, c)
}

func (s *Server) awaitHealth(ctx context.Context, c client.Client) error {
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		state, err := c.CheckHealth(ctx)
		if err == nil && state.IsHealthy {
			return nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("waiting until Milvus is healthy: %w", errors.Join(ctx.Err(), err))
		}
	}
}

// Kill ends the server at once, as a power failure would.
func (s *Server) Kill() {
	_ = syscall.Kill(-s.command.Process.Pid, syscall.SIGKILL) // its own process group
	_ = s.command.Wait()
}

// Remove ends the server and removes its directory.
func (s *Server) Remove() {
	s.Kill()
	_ = os.RemoveAll(s.dir)
}
