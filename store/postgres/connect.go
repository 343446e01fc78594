package postgres

import (
	"fmt"
	"net"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// configuration reads a URL and fills in what it leaves open.
func configuration(url string) (*pgxpool.Config, error) {
	config, err := pgxpool.ParseConfig(url)
	if err != nil {
		return nil, fmt.Errorf("the database's URL: %w", err) // pgx leaves the password out
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
