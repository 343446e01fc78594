package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"sluice/store"
)

// Embeddings visits cached embeddings.
func (s *Store) Embeddings(ctx context.Context, keys []store.EmbeddingKey, visit func(at int, value []byte)) error {
	wanted := make([][]byte, len(keys))
	for i := range keys {
		wanted[i] = keys[i][:]
	}
	return s.call(ctx, func(ctx context.Context) error {
		rows, err := s.pool.Query(ctx, `select w.at - 1, e.body from unnest($1::bytea[]) with ordinality as w(key, at)
			join embeddings e on e.key = w.key order by w.at`, wanted)
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			var at int
			var body pgtype.DriverBytes // the driver's until the next row
			if err := rows.Scan(&at, &body); err != nil {
				return err
			}
			visit(at, body)
		}
		return rows.Err()
	})
}

// KeepEmbeddings adds to the cache.
func (s *Store) KeepEmbeddings(ctx context.Context, entries []store.Embedding) error {
	return s.write(ctx, func(t *txn) error {
		batch, kept := &pgx.Batch{}, now().UnixMicro()
		for _, e := range entries {
			batch.Queue(`insert into embeddings (key, kept, body) values ($1, $2, $3)
				on conflict (key) do update set kept = excluded.kept, body = excluded.body`, e.Key[:], kept, append([]byte{}, e.Value...))
		}
		return t.tx.SendBatch(t.ctx, batch).Close()
	})
}

// CacheSize adds up the whole cache.
func (s *Store) CacheSize(ctx context.Context) (size store.CacheSize, err error) {
	err = s.call(ctx, func(ctx context.Context) error {
		return s.pool.QueryRow(ctx, "select count(*), coalesce(sum(32 + length(body)), 0) from embeddings").Scan(&size.Entries, &size.Bytes)
	})
	return size, err
}

// PruneEmbeddings removes what is old.
func (s *Store) PruneEmbeddings(ctx context.Context, before time.Time) (removed store.CacheSize, err error) {
	err = s.call(ctx, func(ctx context.Context) error {
		return s.pool.QueryRow(ctx, `with gone as (delete from embeddings where kept < $1 returning length(body) as bytes)
			select count(*), coalesce(sum(32 + bytes), 0) from gone`, before.UnixMicro()).Scan(&removed.Entries, &removed.Bytes)
	})
	return removed, err
}
