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
	records := make(map[uint32]store.Record, len(sorted))
	err := s.eachBody(ctx, generation, sorted, func(ordinal uint32, body []byte) error {
		record, err := decodeRecord(generation, ordinal, body)
		if err != nil {
			return fmt.Errorf("decoding record %d of generation %d: %w", ordinal, generation, err)
		}
		records[ordinal] = record
		return nil
	})
	if err != nil {
		return nil, err
	}
	return records, nil
}

// eachBody visits the bodies of those records that exist, of one state of the store.
func (s *Store) eachBody(ctx context.Context, generation uint32, sorted []uint32, visit func(ordinal uint32, body []byte) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := s.enter(); err != nil {
		return err
	}
	defer s.use.RUnlock()
	read := s.records.read(s.db, generation, sorted)
	if read.missing > 0 {
		if err := errors.Join(s.fill(ctx, &read), read.snapshot.Close()); err != nil {
			return err
		}
	}
	for i, body := range read.bodies {
		if body == nil {
			continue
		}
		if err := visit(sorted[i], body); err != nil {
			return err
		}
	}
	return nil
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
