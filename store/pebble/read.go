package pebble

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/cockroachdb/pebble/v2"

	"sluice/store"
)

// get reads the value of key and has its body decoded. Bodies are not kept.
func get(r pebble.Reader, key []byte, decode func(body []byte) error) error {
	value, closer, err := r.Get(key)
	if errors.Is(err, pebble.ErrNotFound) {
		return store.ErrNotFound
	}
	if err != nil {
		return fmt.Errorf("reading %x: %w", key, err)
	}
	defer closer.Close()
	body, err := unseal(key, value)
	if err == nil {
		err = decode(body)
	}
	if err != nil {
		return fmt.Errorf("decoding %x: %w", key, err)
	}
	return nil
}

// getValue is get for a decoder that returns what it decodes.
func getValue[T any](r pebble.Reader, key []byte, decode func(body []byte) (T, error)) (v T, err error) {
	err = get(r, key, func(body []byte) (err error) {
		v, err = decode(body)
		return err
	})
	return v, err
}

func readMeta(r pebble.Reader) (meta, error) {
	m, err := getValue(r, metaKey(), decodeMeta)
	if errors.Is(err, store.ErrNotFound) {
		return meta{}, nil
	}
	return m, err
}

func readCounters(r pebble.Reader, collection uint32) (counters, error) {
	c, err := getValue(r, countersKey(collection), decodeCounters)
	if errors.Is(err, store.ErrNotFound) {
		return counters{}, fmt.Errorf("collection %d: %w", collection, err)
	}
	return c, err
}

func readRecord(r pebble.Reader, collection, ordinal uint32) (store.Record, error) {
	return getValue(r, ordinalKey(tagRecord, collection, ordinal), func(body []byte) (store.Record, error) {
		return decodeRecord(collection, ordinal, body)
	})
}

func lookup(r pebble.Reader, collection uint32, key string) (store.Record, error) {
	ordinal, err := getValue(r, documentKey(collection, key), decodeNumber)
	if err != nil {
		return store.Record{}, err
	}
	record, err := readRecord(r, collection, ordinal)
	if errors.Is(err, store.ErrNotFound) {
		return record, fmt.Errorf("%w: document %d of collection %d has a key but no record", store.ErrCorrupt, ordinal, collection)
	}
	return record, err
}

// reading calls read while the store is open.
func (s *Store) reading(ctx context.Context, read func() error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := s.enter(); err != nil {
		return err
	}
	defer s.use.RUnlock()
	return read()
}

// view calls read with one consistent state of the store.
func (s *Store) view(ctx context.Context, read func(pebble.Reader) error) error {
	return s.reading(ctx, func() error {
		snapshot := s.db.NewSnapshot()
		return errors.Join(read(snapshot), snapshot.Close())
	})
}

// Lookup returns the record of a key.
func (s *Store) Lookup(ctx context.Context, collection uint32, key string) (record store.Record, err error) {
	err = s.view(ctx, func(r pebble.Reader) (err error) {
		record, err = lookup(r, collection, key)
		return err
	})
	return record, err
}

// recordsFrom returns an iterator over the records of a collection from an ordinal on.
func recordsFrom(ctx context.Context, r pebble.Reader, collection, ordinal uint32) (*pebble.Iterator, error) {
	return r.NewIterWithContext(ctx, &pebble.IterOptions{
		LowerBound: ordinalKey(tagRecord, collection, ordinal),
		UpperBound: append(ordinalKey(tagRecord, collection, 1<<32-1), 0),
	})
}

func recordAt(it *pebble.Iterator) (store.Record, error) {
	collection, ordinal, err := splitOrdinalKey(it.Key())
	if err != nil {
		return store.Record{}, err
	}
	body, err := bodyAt(it)
	if err != nil {
		return store.Record{}, err
	}
	record, err := decodeRecord(collection, ordinal, body)
	if err != nil {
		return record, fmt.Errorf("decoding %x: %w", it.Key(), err)
	}
	return record, nil
}

func bodyAt(it *pebble.Iterator) ([]byte, error) {
	value, err := it.ValueAndErr()
	if err != nil {
		return nil, fmt.Errorf("reading %x: %w", it.Key(), err)
	}
	return unseal(it.Key(), value)
}

// Content returns one version of a document.
func (s *Store) Content(ctx context.Context, collection, ordinal uint32, withVectors bool) (content store.Content, err error) {
	err = s.view(ctx, func(r pebble.Reader) (err error) {
		if content.Record, err = readRecord(r, collection, ordinal); err != nil {
			return err
		}
		return s.readContent(r, &content, withVectors)
	})
	if err != nil {
		return store.Content{}, err
	}
	return content, nil
}

// readContent fills in the content of a record. A part that is missing is damage.
func (s *Store) readContent(r pebble.Reader, c *store.Content, withVectors bool) error {
	err := get(r, ordinalKey(tagContent, c.Collection, c.Ordinal), func(body []byte) error {
		return decodeContent(s.codec, c, body)
	})
	if err == nil && withVectors {
		err = get(r, ordinalKey(tagVectors, c.Collection, c.Ordinal), func(body []byte) error {
			return decodeVectors(c, body)
		})
	}
	if errors.Is(err, store.ErrNotFound) {
		return fmt.Errorf("%w: document %d of collection %d has a record but no content", store.ErrCorrupt, c.Ordinal, c.Collection)
	}
	return err
}

// Codes visits the token codes of rows.
func (s *Store) Codes(ctx context.Context, collection uint32, rows []uint32, visit func(at int, codes []byte)) error {
	return s.view(ctx, func(r pebble.Reader) error {
		for at, row := range rows {
			err := get(r, ordinalKey(tagCodes, collection, row), func(body []byte) error {
				visit(at, body)
				return ctx.Err()
			})
			if err != nil && !errors.Is(err, store.ErrNotFound) {
				return err
			}
		}
		return nil
	})
}

// scanPage is how many records Scan reads at a time.
const scanPage = 256

// Scan yields the records from an ordinal on. It holds an iterator only while it
// reads a page, never while the caller works.
func (s *Store) Scan(ctx context.Context, collection, from uint32) iter.Seq2[store.Record, error] {
	return func(yield func(store.Record, error) bool) {
		page := make([]store.Record, 0, scanPage)
		for next, more := from, true; more; {
			var err error
			if page, err = s.page(ctx, collection, next, page[:0]); err != nil {
				yield(store.Record{}, err)
				return
			}
			for _, record := range page {
				if !yield(record, nil) {
					return
				}
			}
			if more = len(page) == scanPage; more {
				next = page[len(page)-1].Ordinal + 1 // ordinals end before the last uint32
			}
		}
	}
}

func (s *Store) page(ctx context.Context, collection, from uint32, page []store.Record) ([]store.Record, error) {
	err := s.view(ctx, func(r pebble.Reader) error {
		records, err := recordsFrom(ctx, r, collection, from)
		if err != nil {
			return err
		}
		defer records.Close()
		for records.First(); records.Valid() && len(page) < scanPage; records.Next() {
			record, err := recordAt(records)
			if err != nil {
				return err
			}
			page = append(page, record)
		}
		return records.Error()
	})
	return page, err
}
