// Package postgres keeps the store of many daemons in a PostgreSQL database, on
// github.com/jackc/pgx. docs/formats/postgres.md states the tables.
//
// Every write is one transaction. It takes the next epoch from the one row of
// meta, last of all: the row's lock makes the order in which transactions commit
// the order of the epochs, so the feed has no gaps and whoever reads an epoch
// reads all that came before it.
package postgres

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"sluice/store"
	"sluice/store/encode"
)

const (
	// connections is the size of the pool unless the URL has pool_max_conns.
	connections = 16
	// callTimeout bounds one call, so that a database that has fallen silent
	// does not hold whoever has no deadline of their own.
	callTimeout = time.Minute
)

// Options of Open.
type Options struct {
	Logger *slog.Logger // nil: slog's default
}

// Store is a store.Store on a database.
type Store struct {
	pool   *pgxpool.Pool
	codec  encode.Codec
	log    *slog.Logger
	id     string
	author int64 // of the changes made here; another one with every Open

	use    sync.RWMutex // held for reading by each call
	closed bool
	ending chan struct{} // closed by Close
	stop   context.CancelFunc
	ear    sync.WaitGroup // the goroutine that listens
	hints  hints
}

var _ store.Store = (*Store)(nil)

// Open connects to the database of a URL (postgres://user:password@host/database,
// or a list of keywords and values), and makes or upgrades the tables in its
// schema sluice, or in the one that the URL names with search_path.
// Tables of a newer version are ErrNewerFormat.
func Open(ctx context.Context, url string, options Options) (*Store, error) {
	config, err := configuration(url)
	if err != nil {
		return nil, err
	}
	codec, err := encode.NewCodec()
	if err != nil {
		return nil, err
	}
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("opening the database: %w", err), codec.Close())
	}
	s := &Store{
		pool: pool, codec: codec, log: cmp.Or(options.Logger, slog.Default()), author: rand.Int64(), ending: make(chan struct{}),
		hints: hints{given: make(chan struct{})},
	}
	if err := s.start(ctx, config.ConnConfig); err != nil {
		pool.Close()
		return nil, errors.Join(fmt.Errorf("opening the database: %w", failure(ctx, err)), codec.Close())
	}
	return s, nil
}

// start brings the tables to the present version and begins to listen.
func (s *Store) start(ctx context.Context, config *pgx.ConnConfig) error {
	if err := s.migrate(ctx, config.RuntimeParams["search_path"]); err != nil {
		return err
	}
	if err := s.pool.QueryRow(ctx, "select id::text from meta").Scan(&s.id); err != nil {
		return fmt.Errorf("reading the store's identity: %w", err)
	}
	if err := s.checkDurability(ctx); err != nil {
		return err
	}
	listening, stop := context.WithCancel(context.Background())
	s.stop = stop
	s.ear.Go(func() { s.listen(listening, config) })
	return nil
}

// checkDurability refuses a database that acknowledges what it has not written.
// Connections ask for it, but a URL may ask for the contrary, and a pooler between
// may leave out what is asked. One without these settings is trusted.
func (s *Store) checkDurability(ctx context.Context) error {
	var fsync, commit string
	err := s.pool.QueryRow(ctx, "select coalesce(current_setting('fsync', true), ''), coalesce(current_setting('synchronous_commit', true), '')").Scan(&fsync, &commit)
	switch {
	case err != nil:
		return fmt.Errorf("asking for the settings: %w", err)
	case commit == "off":
		return fmt.Errorf("%w: the database commits with synchronous_commit=off, so what is acknowledged may be lost; take that out of the store's URL, or let the pooler pass the parameter on", store.ErrInvalid)
	case fsync == "off":
		s.log.Warn("the database runs with fsync=off: what it acknowledges is lost with the power")
	}
	return nil
}

// ID names the store: what was derived from one is not another's.
func (s *Store) ID() string { return s.id }

// Close waits for the calls under way and closes the connections.
func (s *Store) Close() error {
	s.use.Lock()
	defer s.use.Unlock()
	if s.closed {
		return store.ErrClosed
	}
	s.closed = true
	close(s.ending)
	s.stop()
	s.ear.Wait()
	s.pool.Close()
	return s.codec.Close()
}

// call runs one call of the contract.
func (s *Store) call(ctx context.Context, f func(context.Context) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	s.use.RLock()
	defer s.use.RUnlock()
	if s.closed {
		return store.ErrClosed
	}
	bounded, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	return failure(ctx, f(bounded))
}

// attempts is how often a write is tried that another one got in the way of.
const attempts = 20

// write runs one transaction.
func (s *Store) write(ctx context.Context, f func(*txn) error) error {
	return s.again(ctx, func(ctx context.Context) error {
		return pgx.BeginTxFunc(ctx, s.pool, pgx.TxOptions{IsoLevel: pgx.ReadCommitted}, func(tx pgx.Tx) error {
			return f(&txn{ctx, tx, s.author})
		})
	})
}

// again runs a transaction until no other one gets in its way.
func (s *Store) again(ctx context.Context, transact func(context.Context) error) error {
	return s.call(ctx, func(ctx context.Context) (err error) {
		for range attempts {
			if err = transact(ctx); !collided(err) {
				return err
			}
		}
		return err
	})
}

// now is the time that records carry.
func now() time.Time { return store.NormalTime(time.Now()) }
