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
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/milvus-io/milvus-sdk-go/v2/client"

	"sluice/needs"
)

const startTimeout = 3 * time.Minute

// Server is a server on this machine.
type Server struct {
	Address string

	dir, program string
	port         int
	command      *exec.Cmd
	turn         *os.File // locked: the package's servers share a file, and run one at a time
}

// shared is the server of a package's tests.
var shared struct {
	once   sync.Once
	server *Server
	err    error
}

// Main runs the tests of a package, and then ends the server if one needed it.
func Main(m *testing.M) int {
	defer func() {
		if shared.server != nil {
			shared.server.Remove()
		}
	}()
	return m.Run()
}

// Address is where a server listens: that of MILVUS_ADDR, else one that is started
// with the first call and ends with Main. Where there is none to be had, the test
// is skipped, or fails where nothing may be lacking.
func Address(t testing.TB) string {
	t.Helper()
	if given := os.Getenv("MILVUS_ADDR"); given != "" {
		return given
	}
	shared.once.Do(func() { shared.server, shared.err = Start() })
	need(t, shared.err)
	return shared.server.Address
}

// Serve is Address for a package that has one such test: the server ends with it.
func Serve(t testing.TB) string {
	t.Helper()
	if given := os.Getenv("MILVUS_ADDR"); given != "" {
		return given
	}
	s, err := Start()
	need(t, err)
	t.Cleanup(s.Remove)
	return s.Address
}

// Kill ends the server of Address, and Restart brings it back.
func Kill(testing.TB) { shared.server.Kill() }

// Restart is to follow Kill.
func Restart(t testing.TB) {
	t.Helper()
	if err := shared.server.Restart(); err != nil {
		t.Fatal(err)
	}
}

func need(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		needs.Missing(t, "a Milvus server", err)
	}
}

// Start starts a server with an empty directory on a free port of the loopback
// interface, and waits until it answers.
func Start() (*Server, error) {
	installed, err := needs.Find("milvus")
	if err != nil {
		return nil, fmt.Errorf("run 'make milvus' first: %w", err)
	}
	dir, err := os.MkdirTemp("", "milvus-")
	if err != nil {
		return nil, err
	}
	s := &Server{dir: dir, program: filepath.Join(installed, "bin", "milvus-server")}
	if err := s.start(installed); err != nil {
		s.Remove()
		return nil, err
	}
	return s, nil
}

func (s *Server) start(installed string) (err error) {
	if s.turn, err = os.OpenFile(filepath.Join(installed, "turn"), os.O_CREATE|os.O_RDWR, 0o600); err != nil {
		return err
	}
	if err := syscall.Flock(int(s.turn.Fd()), syscall.LOCK_EX); err != nil {
		return fmt.Errorf("waiting for another test's server to end: %w", err)
	}
	if err := s.prepare(filepath.Join(installed, "unpacked")); err != nil {
		return err
	}
	return s.Restart()
}

// prepare chooses a port, and has all servers share what the package unpacks.
func (s *Server) prepare(unpacked string) error {
	if err := os.MkdirAll(unpacked, 0o755); err != nil {
		return err
	}
	if err := os.Symlink(unpacked, filepath.Join(s.dir, "bin")); err != nil {
		return err
	}
	etcd, err := net.Listen("tcp", "127.0.0.1:2380")
	if err != nil {
		return fmt.Errorf("its etcd's port is not free; does another Milvus run here? %w", err)
	}
	if err := etcd.Close(); err != nil {
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
// Its clock ticks faster than is usual, so that tests wait less for writes, and
// it outlives a machine that is busy for a minute; its successor waits as long.
func (s *Server) Restart() error {
	s.command = leashed(s.program, "--data", s.dir, "--proxy-port", strconv.Itoa(s.port),
		"--extra-config", "proxy.timeTickInterval=20", "--extra-config", "common.session.ttl=60")
	if _, err := os.Stat(filepath.Join(s.dir, "configs", "milvus.yaml")); err == nil {
		s.command = s.again()
	}
	if err := start(s.command); err != nil {
		s.command = nil
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

// again is the server as the package started it. The package itself would take
// another port while old connections linger on this one.
func (s *Server) again() *exec.Cmd {
	bin := filepath.Join(s.dir, "bin")
	c := leashed(filepath.Join(bin, "milvus"), "run", "standalone")
	c.Dir, c.Env = s.dir, append(os.Environ(), "DEPLOY_MODE=STANDALONE", "LD_LIBRARY_PATH="+bin)
	return c
}

// leashed is a command that ends with this process, however that ends: a shell waits
// at a pipe of which nobody else has the other end, and then ends its process group.
func leashed(program string, arguments ...string) *exec.Cmd {
	c := exec.Command("sh", append([]string{"-c", `"$@" & read -r _; kill -KILL 0`, "sh", program}, arguments...)...)
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	return c
}

func start(c *exec.Cmd) error {
	if _, err := c.StdinPipe(); err != nil { // the command keeps it open
		return err
	}
	return c.Start()
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
	if s.command == nil {
		return
	}
	_ = syscall.Kill(-s.command.Process.Pid, syscall.SIGKILL) // its own process group
	_ = s.command.Wait()
	s.command = nil
}

// Remove ends the server and removes its directory.
func (s *Server) Remove() {
	s.Kill()
	_ = os.RemoveAll(s.dir)
	_ = s.turn.Close() // also unlocks it
}
