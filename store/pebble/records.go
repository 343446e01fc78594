package pebble

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/cockroachdb/pebble/v2"

	"sluice/store"
)

// Records returns the records of the ordinals; those that were read lately come from the cache.
func (s *Store) Records(ctx context.Context, generation uint32, ordinals []uint32) (map[uint32]store.Record, error) {
	sorted := slices.Clone(ordinals)
	slices.Sort(sorted)
	sorted = slices.Compact(sorted)
	bodies, err := s.bodies(ctx, generation, sorted)
	if err != nil {
		return nil, err
	}
	records := make(map[uint32]store.Record, len(sorted))
	for i, body := range bodies {
		if body == nil {
			continue
		}
		if records[sorted[i]], err = decodeRecord(generation, sorted[i], body); err != nil {
			return nil, fmt.Errorf("decoding record %d of generation %d: %w", sorted[i], generation, err)
		}
	}
	return records, nil
}

// bodies are those of the records, of one state of the store; nil where there is none.
func (s *Store) bodies(ctx context.Context, generation uint32, sorted []uint32) (bodies [][]byte, err error) {
	err = s.reading(ctx, func() (err error) {
		read := s.records.read(s.db, generation, sorted)
		if bodies = read.bodies; read.missing > 0 {
			err = errors.Join(s.fill(ctx, &read), read.snapshot.Close())
		}
		return err
	})
	return bodies, err
}

// fill reads what the cache lacked: one iterator goes over it in ascending order.
func (s *Store) fill(ctx context.Context, read *recordsRead) error {
	records, err := recordsFrom(ctx, read.snapshot, read.generation, 0)
	if err != nil {
		return err
	}
	defer records.Close()
	for i, ordinal := range read.ordinals {
		if read.bodies[i] != nil {
			continue
		}
		if read.bodies[i], err = bodyOf(records, ordinalKey(tagRecord, read.generation, ordinal)); err != nil {
			return err
		}
	}
	s.records.keep(read)
	return nil
}

// bodyOf is the body at a key, nil if there is none. The iterator forgets an error
// with its next step: one that is not looked for here hides a record.
func bodyOf(records *pebble.Iterator, key []byte) ([]byte, error) {
	if !records.SeekGE(key) {
		return nil, records.Error()
	}
	if !bytes.Equal(records.Key(), key) {
		return nil, nil
	}
	body, err := bodyAt(records)
	return bytes.Clone(body), err
}
