package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"sluice/store"
)

// Embeddings visits cached embeddings.
func (s *Store) Embeddings(ctx context.Context, keys []store.EmbeddingKey, visit func(at int, value []byte)) error {
	wanted := make([][]byte, len(keys))
	for i := range keys {
		wanted[i] = keys[i][:]
	}
	return s.visit(ctx, visit, `select w.at - 1, e.body from unnest($1::bytea[]) with ordinality as w(key, at)
		join embeddings e on e.key = w.key order by w.at`, wanted)
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
