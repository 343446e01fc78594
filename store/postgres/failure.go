package postgres

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"sluice/store"
)

// SQLSTATE codes.
const (
	serializationFailure = "40001"
	deadlockDetected     = "40P01"
	uniqueViolation      = "23505"
)

// collided reports a transaction that another one got in the way of: nothing
// is written, and it is to be tried again.
func collided(err error) bool {
	var refused *pgconn.PgError
	if !errors.As(err, &refused) {
		return false
	}
	switch refused.Code {
	case serializationFailure, deadlockDetected, uniqueViolation:
		return true
	}
	return false
}

// contracted are the errors of the contract that calls here make themselves.
var contracted = []error{
	store.ErrNotFound, store.ErrNewerFormat, store.ErrFeedTrimmed, store.ErrVectorsNeeded, store.ErrTooManyRows,
	store.ErrInvalid, store.ErrSettingsDiffer, store.ErrCorrupt, store.ErrGenerations, errConflict,
}

// failure makes an error of the contract of one of the driver's. ctx is the caller's.
func failure(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	for _, known := range contracted {
		if errors.Is(err, known) {
			return err
		}
	}
	var refused *pgconn.PgError
	switch {
	case ctx.Err() != nil:
		return fmt.Errorf("the database was still asked: %w", ctx.Err())
	case errors.As(err, &refused) && !unavailable(refused.Code):
		return fmt.Errorf("the database refuses: %w", err)
	default: // the connection is lost, or there is none
		return fmt.Errorf("%w: %w", store.ErrUnavailable, err)
	}
}

// unavailable reports an SQLSTATE that says that the server cannot serve now.
func unavailable(code string) bool {
	for _, class := range []string{
		"08", // connection exception
		"40", // a transaction given up
		"53", // insufficient resources: connections, disk, memory
		"57", // operator intervention: shutdown, crash, still starting
	} {
		if strings.HasPrefix(code, class) {
			return true
		}
	}
	return code == "25006" // the server became a standby
}
