package postgres

import (
	"context"
	"fmt"
	"log/slog"
	"math"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"sluice/store"
)

const (
	// channel is notified by every write, of which store and what epoch: all schemas
	// of a database share it. It only hints, since notifications may be lost.
	channel = "sluice"
	// pollEach is how often a wait looks without a hint.
	pollEach = time.Second
	// listenAgain is how long to wait before listening again after a failure.
	listenAgain = time.Second
)

// hints wake those who wait for a change.
type hints struct {
	mu    sync.Mutex
	given chan struct{} // closed when there is a hint
	seen  uint64        // the greatest epoch that was read
}

func (h *hints) next() (given <-chan struct{}, seen uint64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.given, h.seen
}

// forget is for a database that has gone back, to a standby that lagged.
func (h *hints) forget() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.seen = 0
}

func (h *hints) give() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.wake()
}

func (h *hints) wake() {
	close(h.given)
	h.given = make(chan struct{})
}

// read remembers an epoch, which is a hint if it is new.
func (h *hints) read(epoch uint64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if epoch > h.seen {
		h.seen = epoch
		h.wake()
	}
}

// listen takes notifications for hints until ctx ends.
func (s *Store) listen(ctx context.Context, config *pgx.ConnConfig) {
	level := slog.LevelWarn // an outage is told of once
	listening := func() {
		if level != slog.LevelWarn {
			s.log.InfoContext(ctx, "listening to the database again")
		}
		level = slog.LevelWarn
	}
	for {
		err := s.hear(ctx, config, listening)
		if ctx.Err() != nil {
			return
		}
		s.log.Log(ctx, level, "listening to the database failed; changes are polled for", "error", err)
		level = slog.LevelDebug
		pause(ctx, listenAgain)
	}
}

// hear calls listening once it does.
func (s *Store) hear(ctx context.Context, config *pgx.ConnConfig, listening func()) error {
	conn, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	if _, err := conn.Exec(ctx, "listen "+channel); err != nil {
		return err
	}
	listening()
	s.hints.give() // something may have been missed
	for {
		told, err := conn.WaitForNotification(ctx)
		if err != nil {
			return err
		}
		id, epoch, _ := strings.Cut(told.Payload, " ")
		if n, err := strconv.ParseUint(epoch, 10, 64); err == nil && id == s.id {
			s.hints.read(n)
		}
	}
}

func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// Epoch reads the present epoch.
func (s *Store) Epoch(ctx context.Context) (epoch uint64, err error) {
	err = s.call(ctx, func(ctx context.Context) error {
		return s.pool.QueryRow(ctx, "select epoch from meta").Scan(&epoch)
	})
	if err == nil {
		s.hints.read(epoch)
	}
	return epoch, err
}

// WaitChange asks for the epoch every second, unless it is told of it.
func (s *Store) WaitChange(ctx context.Context, after uint64) error {
	for {
		hint, epoch := s.hints.next()
		err := s.call(ctx, func(context.Context) error { return nil }) // it may be closed
		if err == nil && epoch <= after {
			epoch, err = s.Epoch(ctx)
		}
		if err != nil || epoch > after {
			return err
		}
		timer := time.NewTimer(pollEach)
		select {
		case <-hint:
		case <-timer.C:
		case <-s.ending:
			err = store.ErrClosed
		case <-ctx.Done():
			err = ctx.Err()
		}
		timer.Stop()
		if err != nil {
			return err
		}
	}
}

// Changes returns changes after an epoch. How far the feed is trimmed is read
// after them: what was forgotten meanwhile is noticed.
func (s *Store) Changes(ctx context.Context, after uint64, limit int) (changes []store.Change, err error) {
	if limit <= 0 {
		return nil, fmt.Errorf("%w: a limit of %d changes", store.ErrInvalid, limit)
	}
	batch := &pgx.Batch{}
	batch.Queue("select epoch, kind, collection, ordinal, author <> $3 from changes where epoch > $1 order by epoch limit $2", bigint(after), limit, s.author).
		Query(func(rows pgx.Rows) (err error) {
			changes, err = pgx.CollectRows(rows, pgx.RowToStructByPos[store.Change])
			return err
		})
	batch.Queue("select trimmed from meta").QueryRow(func(row pgx.Row) error {
		var trimmed uint64
		if err := row.Scan(&trimmed); err != nil || after >= trimmed {
			return err
		}
		return fmt.Errorf("%w: asked for what follows epoch %d, kept is what follows %d", store.ErrFeedTrimmed, after, trimmed)
	})
	err = s.call(ctx, func(ctx context.Context) error { return s.pool.SendBatch(ctx, batch).Close() })
	if err != nil {
		return nil, err
	}
	if len(changes) == 0 {
		s.hints.forget()
	}
	return changes, nil
}

// Trim forgets changes. What it has announced is forgotten even if it ends
// before it has removed them: the next one does.
func (s *Store) Trim(ctx context.Context, upTo uint64) error {
	return s.call(ctx, func(ctx context.Context) error {
		_, err := s.pool.Exec(ctx, "update meta set trimmed = least(epoch, $1) where trimmed < least(epoch, $1)", bigint(upTo))
		if err == nil {
			_, err = s.pool.Exec(ctx, "delete from changes where epoch <= (select trimmed from meta)")
		}
		return err
	})
}

// bigint is the number as a column can hold it; no epoch is beyond.
func bigint(n uint64) int64 { return int64(min(n, math.MaxInt64)) }
