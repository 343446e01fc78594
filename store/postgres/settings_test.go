package postgres

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"

	"sluice/store"
	"sluice/store/postgres/postgrestest"
)

// TestCommitsWait: no setting of the database, the role or the URL's options makes
// commits not wait for the disk, and a URL that asks for it is refused.
func TestCommitsWait(t *testing.T) {
	url := postgrestest.URL(t)
	s, err := Open(t.Context(), url, Options{})
	require.NoError(t, err)
	require.NoError(t, s.Close())

	_, err = Open(t.Context(), postgrestest.With(url, "synchronous_commit", "off"), Options{})
	require.ErrorIs(t, err, store.ErrInvalid)
	require.ErrorContains(t, err, "take that out of the store's URL")

	role, name := postgrestest.Role(t, url)
	postgrestest.Exec(t, url, fmt.Sprintf("alter role %s set synchronous_commit = off", name))
	for _, url := range []string{url, role, postgrestest.With(role, "options", "-csynchronous_commit=off")} {
		s, err := Open(t.Context(), url, Options{})
		require.NoError(t, err, url)
		var commit string
		require.NoError(t, s.pool.QueryRow(t.Context(), "show synchronous_commit").Scan(&commit))
		require.Equal(t, "on", commit, url)
		require.NoError(t, s.Close())
	}
}

// TestOutagesAreToldOf: each of two outages is told of once, and its end.
func TestOutagesAreToldOf(t *testing.T) {
	proxy := postgrestest.NewProxy(t, postgrestest.URL(t))
	told := make(chan string, 100)
	s, err := Open(t.Context(), proxy.URL, Options{Logger: slog.New(logged(told))})
	require.NoError(t, err)
	requireTold := func(want string) {
		select {
		case line := <-told:
			require.Equal(t, want, line)
		case <-time.After(time.Minute):
			require.Fail(t, "nothing is told", want)
		}
	}
	for range 2 {
		proxy.Cut()
		requireTold("WARN listening to the database failed; changes are polled for")
		proxy.Mend()
		requireTold("INFO listening to the database again")
	}
	require.NoError(t, s.Close())
	require.Empty(t, told)
}

// logged is a handler that sends what is logged of listening, from level info on.
type logged chan<- string

func (l logged) Enabled(_ context.Context, level slog.Level) bool { return level >= slog.LevelInfo }
func (l logged) WithAttrs([]slog.Attr) slog.Handler               { return l }
func (l logged) WithGroup(string) slog.Handler                    { return l }
func (l logged) Handle(_ context.Context, r slog.Record) error {
	if strings.HasPrefix(r.Message, "listening") {
		l <- r.Level.String() + " " + r.Message
	}
	return nil
}

// TestFailures: what a server refuses with becomes an error of the contract,
// whatever stands in the place of an SQLSTATE.
func TestFailures(t *testing.T) {
	for code, want := range map[string]bool{"": false, "5": false, "08": true, "57P01": true, "40001": true, "25006": true, "42P01": false} {
		err := failure(t.Context(), &pgconn.PgError{Code: code})
		require.Equal(t, want, errors.Is(err, store.ErrUnavailable), code)
	}
}
