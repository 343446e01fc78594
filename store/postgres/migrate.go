package postgres

import (
	"context"
	"embed"
	"fmt"

	"github.com/jackc/pgx/v5"

	"sluice/store"
)

// migrations hold the tables: each brings them from the version before to its own.
//
//go:embed migrations/*.sql
var migrations embed.FS

// schemaVersion is that of the last migration.
const schemaVersion = 2

// migrationLock keeps daemons that start at the same time from migrating both.
const migrationLock = 0x51_01_CE

// migrate brings the tables to the present version, in one transaction. Tables
// that are of it already need no right to change them.
func (s *Store) migrate(ctx context.Context, schema string) error {
	return pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, "select pg_advisory_xact_lock($1)", migrationLock); err != nil {
			return err
		}
		version, err := readVersion(ctx, tx)
		switch {
		case err != nil:
			return fmt.Errorf("reading the version of the tables: %w", err)
		case version > schemaVersion:
			return fmt.Errorf("%w: its tables are of version %d, this program knows up to %d", store.ErrNewerFormat, version, schemaVersion)
		case version == 0:
			err = createSchema(ctx, tx, schema)
		}
		for ; err == nil && version < schemaVersion; version++ {
			err = upgrade(ctx, tx, version+1)
		}
		return err
	})
}

// readVersion returns 0 where there are no tables.
func readVersion(ctx context.Context, tx pgx.Tx) (version int, err error) {
	var there bool
	if err := tx.QueryRow(ctx, "select to_regclass('schema_version') is not null").Scan(&there); err != nil || !there {
		return 0, err
	}
	return version, tx.QueryRow(ctx, "select number from schema_version").Scan(&version)
}

func createSchema(ctx context.Context, tx pgx.Tx, schema string) error {
	_, err := tx.Exec(ctx, "create schema if not exists "+pgx.Identifier{schema}.Sanitize())
	if err == nil {
		_, err = tx.Exec(ctx, "create table schema_version (number integer not null)")
	}
	if err == nil {
		_, err = tx.Exec(ctx, "insert into schema_version values (0)")
	}
	if err != nil {
		return fmt.Errorf("creating the schema %s: %w", schema, err)
	}
	return nil
}

func upgrade(ctx context.Context, tx pgx.Tx, to int) error {
	statements, err := migrations.ReadFile(fmt.Sprintf("migrations/%d.sql", to))
	if err == nil {
		_, err = tx.Conn().PgConn().Exec(ctx, string(statements)).ReadAll()
	}
	if err == nil {
		_, err = tx.Exec(ctx, "update schema_version set number = $1", to)
	}
	if err != nil {
		return fmt.Errorf("bringing the tables to version %d: %w", to, err)
	}
	return nil
}
