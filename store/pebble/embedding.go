package pebble

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"sluice/store"
	"sluice/store/encode"
)

// prunedAtOnce bounds the batch of a step of pruning.
const prunedAtOnce = 4096

// Embeddings visits cached embeddings.
func (s *Store) Embeddings(ctx context.Context, keys []store.EmbeddingKey, visit func(at int, value []byte)) error {
	return s.view(ctx, func(r pebble.Reader) error {
		for at, key := range keys {
			err := get(r, embeddingKey(key), func(body []byte) error {
				d := encode.Decoder{Body: body}
				d.Time()
				if d.Err == nil {
					visit(at, d.Body)
				}
				return errors.Join(d.Err, ctx.Err())
			})
			if err != nil && !errors.Is(err, store.ErrNotFound) {
				return err
			}
		}
		return nil
	})
}

// KeepEmbeddings adds to the cache.
func (s *Store) KeepEmbeddings(ctx context.Context, entries []store.Embedding) error {
	kept := encode.AppendTime(nil, now())
	return s.submit(ctx, func(t *txn) (err error) {
		for _, e := range entries {
			err = errors.Join(err, t.set(embeddingKey(e.Key), kept, e.Value))
		}
		return err
	})
}

// CacheSize reads the whole cache.
func (s *Store) CacheSize(ctx context.Context) (size store.CacheSize, err error) {
	err = s.eachEmbedding(ctx, nil, func(_, value []byte, _ time.Time) bool {
		size.Entries++
		size.Bytes += int64(32 + len(value))
		return true
	})
	return size, err
}

// eachEmbedding visits entries from a key on until visit returns false.
func (s *Store) eachEmbedding(ctx context.Context, from []byte, visit func(key, value []byte, kept time.Time) bool) error {
	return s.view(ctx, func(r pebble.Reader) error {
		lower := append([]byte{tagEmbedding}, from...)
		it, err := r.NewIterWithContext(ctx, &pebble.IterOptions{LowerBound: lower, UpperBound: []byte{tagEmbedding + 1}})
		if err != nil {
			return err
		}
		defer it.Close()
		for it.First(); it.Valid(); it.Next() {
			body, err := bodyAt(it)
			if err != nil {
				return err
			}
			d := encode.Decoder{Body: body}
			kept := d.Time()
			if d.Err != nil {
				return fmt.Errorf("decoding %x: %w", it.Key(), d.Err)
			}
			if !visit(it.Key(), d.Body, kept) {
				break
			}
		}
		return it.Error()
	})
}

// PruneEmbeddings removes what is old, some thousands of entries in a write.
func (s *Store) PruneEmbeddings(ctx context.Context, before time.Time) (removed store.CacheSize, err error) {
	var from []byte
	for more := true; more && err == nil; {
		var old [][]byte
		more = false
		err = s.eachEmbedding(ctx, from, func(key, value []byte, kept time.Time) bool {
			if kept.Before(before) {
				old = append(old, append([]byte(nil), key...))
				removed.Entries++
				removed.Bytes += int64(32 + len(value))
			}
			from = append(append(from[:0], key[1:]...), 0)
			more = len(old) == prunedAtOnce
			return !more
		})
		if err == nil && len(old) > 0 {
			err = s.submit(ctx, func(t *txn) (err error) {
				for _, key := range old {
					err = errors.Join(err, t.batch.Delete(key, nil))
				}
				return err
			})
		}
	}
	return removed, err
}
