//go:build unix

// Package postgrestest gives tests a PostgreSQL: the one that POSTGRES_URL names
// (a role that may create schemas and roles), or one of its own, of the installed programs
// (`make postgres`), with its data in a temporary directory and a Unix socket in it for all its network.
package postgrestest

import (
	"bytes"
	"context"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"sluice/needs"
)

// server is the one that all tests of a process share.
var server struct {
	sync.Mutex
	url     string
	err     error
	process *exec.Cmd
	dir     string
	schemas int
	roles   int
}

// Main runs the tests and ends the server, if they have started one.
func Main(m *testing.M) {
	code := m.Run()
	stop()
	os.Exit(code)
}

// URL returns the URL of a schema that is not there yet.
func URL(t testing.TB) string {
	t.Helper()
	server.Lock()
	defer server.Unlock()
	if server.url == "" && server.err == nil {
		server.url, server.err = start()
	}
	if server.err != nil {
		needs.Missing(t, "a PostgreSQL server", server.err)
	}
	server.schemas++
	schema := fmt.Sprintf("sluice_test_%d_%d", os.Getpid(), server.schemas)
	t.Cleanup(func() { drop(t, server.url, schema) })
	return With(server.url, "search_path", schema)
}

// With returns a URL with another parameter.
func With(address, name, value string) string {
	u, err := url.Parse(address)
	if err != nil {
		panic(err) // tests have URLs
	}
	query := u.Query()
	query.Set(name, value)
	u.RawQuery = query.Encode()
	return u.String()
}

// Exec runs statements of a test.
func Exec(t testing.TB, address, statements string) {
	t.Helper()
	ctx := context.WithoutCancel(t.Context())
	conn, err := pgx.Connect(ctx, address)
	if err == nil {
		_, err = conn.PgConn().Exec(ctx, statements).ReadAll()
		_ = conn.Close(ctx)
	}
	if err != nil {
		t.Fatalf("%s: %v", statements, err)
	}
}

func drop(t testing.TB, address, schema string) {
	Exec(t, address, "set client_min_messages = warning; drop schema if exists "+schema+" cascade")
}

func start() (string, error) {
	if given := os.Getenv("POSTGRES_URL"); given != "" {
		return given, nil
	}
	programs, err := installed()
	if err != nil {
		return "", err
	}
	if server.dir, err = os.MkdirTemp("", "sluice-postgres-"); err != nil {
		return "", err
	}
	owner, err := unprivileged(server.dir)
	if err != nil {
		return "", err
	}
	data := filepath.Join(server.dir, "data")
	initialize := exec.Command(filepath.Join(programs, "initdb"), "--pgdata", data, "--username", "sluice", "--auth", "trust", "--encoding", "UTF8", "--no-locale", "--no-sync")
	initialize.SysProcAttr, initialize.Dir = owner, server.dir
	if out, err := initialize.CombinedOutput(); err != nil {
		return "", fmt.Errorf("initdb: %w\n%s", err, out)
	}
	// fsync=off: that what is acknowledged survives a loss of power is PostgreSQL's to test, and not waiting for the disk halves the time.
	server.process = exec.Command(filepath.Join(programs, "postgres"), "-D", data, "-k", server.dir, "-c", "listen_addresses=", "-c", "fsync=off", "-c", "max_connections=200")
	var log bytes.Buffer
	server.process.SysProcAttr, server.process.Dir, server.process.Stderr = owner, server.dir, &log
	if err := server.process.Start(); err != nil {
		return "", err
	}
	address := "postgres://sluice@/postgres?host=" + url.QueryEscape(server.dir)
	if err := await(address); err != nil {
		stop()
		return "", fmt.Errorf("%w\n%s", err, log.String())
	}
	return address, nil
}

// installed finds the directory with initdb and postgres: in PATH, or where Debian puts them.
func installed() (string, error) {
	if found, err := exec.LookPath("initdb"); err == nil {
		found, err = filepath.EvalSymlinks(found)
		return filepath.Dir(found), err
	}
	found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/initdb")
	if len(found) == 0 {
		return "", fmt.Errorf("its programs are not installed (make postgres), and POSTGRES_URL names none")
	}
	return filepath.Dir(found[len(found)-1]), nil
}

// unprivileged gives the directory to a user that PostgreSQL runs as: it refuses root.
func unprivileged(dir string) (*syscall.SysProcAttr, error) {
	attributes := &syscall.SysProcAttr{Setpgid: true}
	if os.Getuid() != 0 {
		return attributes, nil
	}
	account, err := user.Lookup("postgres")
	if err != nil {
		if account, err = user.Lookup("nobody"); err != nil {
			return nil, err
		}
	}
	uid, err := strconv.ParseUint(account.Uid, 10, 32)
	if err != nil {
		return nil, err
	}
	gid, err := strconv.ParseUint(account.Gid, 10, 32)
	if err != nil {
		return nil, err
	}
	attributes.Credential = &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
	return attributes, os.Chown(dir, int(uid), int(gid))
}

// await connects until the server answers.
func await(address string) error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	for {
		conn, err := pgx.Connect(ctx, address)
		if err == nil {
			return conn.Close(ctx)
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("the server does not answer: %w", err)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// stop ends the server, as "fast shutdown" does, and removes its directory.
func stop() {
	if server.process != nil {
		_ = server.process.Process.Signal(syscall.SIGINT)
		_ = server.process.Wait()
	}
	if server.dir != "" {
		_ = os.RemoveAll(server.dir)
	}
}

// Role returns the URL for a role of its own that may use what the schema of the
// URL holds, so that a test can take rights from it.
func Role(t testing.TB, address string) (as, name string) {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	schema := u.Query().Get("search_path")
	server.Lock()
	server.roles++
	name = fmt.Sprintf("%s_role_%d", schema, server.roles)
	server.Unlock()
	Exec(t, address, fmt.Sprintf(`create role %[1]s login password '%[1]s'; grant usage on schema %[2]s to %[1]s;
		grant all on all tables in schema %[2]s to %[1]s`, name, schema))
	t.Cleanup(func() { Exec(t, address, fmt.Sprintf("drop owned by %[1]s; drop role %[1]s", name)) })
	u.User = url.UserPassword(name, name)
	return u.String(), name
}
