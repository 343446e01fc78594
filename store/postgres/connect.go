package postgres

import (
	"errors"
	"fmt"
	"net"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// configuration reads a URL and fills in what it leaves open.
func configuration(url string) (*pgxpool.Config, error) {
	if strings.Contains(database(url), "@") {
		return nil, errAmbiguous
	}
	config, err := pgxpool.ParseConfig(url)
	if err != nil {
		return nil, unreadable(err)
	}
	if !strings.Contains(url, "pool_max_conns") {
		config.MaxConns = connections
	}
	connection := config.ConnConfig
	for name, value := range map[string]string{"search_path": "sluice", "synchronous_commit": "on", "application_name": "sluice"} {
		if _, given := connection.RuntimeParams[name]; !given {
			connection.RuntimeParams[name] = value
		}
	}
	// A standby lags behind, and would answer with rights that are revoked.
	connection.ValidateConnect = pgconn.ValidateConnectTargetSessionAttrsReadWrite
	dialer := &net.Dialer{KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: 10 * time.Second, Interval: 5 * time.Second, Count: 3}}
	connection.DialFunc = dialer.DialContext
	return config, nil
}

// errAmbiguous: what would be the database's name, which errors show, is of a password.
var errAmbiguous = errors.New("the database's URL has @ behind the host: in a password, write %40 for @ and %2F for /")

// database is the part of a URL that names it.
func database(url string) string {
	_, rest, _ := strings.Cut(url, "://")
	_, path, _ := strings.Cut(rest, "/")
	name, _, _ := strings.Cut(path, "?")
	return name
}

// unreadable is pgx's reason without the URL, of which pgx leaves out what it takes
// for a password: where a URL is malformed, that may be elsewhere.
func unreadable(err error) error {
	reason := err.Error()
	if strings.Contains(reason, "failed to parse as URL") {
		reason = "postgres://user:password@host:port/database?name=value&name=value is expected, with % and two digits for what is special there, as %40 for @"
	} else if at := strings.LastIndex(reason, "`: "); at >= 0 {
		reason = reason[at+len("`: "):]
	}
	return fmt.Errorf("the database's URL cannot be read: %s", reason)
}
