package pebble

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/cockroachdb/pebble/v2"

	"sluice/store"
	"sluice/store/encode"
)

// readGenerations returns those of a collection that was reindexed, else nil.
func readGenerations(r pebble.Reader, collection uint32) ([]store.Generation, error) {
	all, err := getValue(r, generationsKey(collection), encode.DecodeGenerations)
	if errors.Is(err, store.ErrNotFound) {
		return nil, nil
	}
	return all, err
}

// SetGenerations runs change here, not in the committer, which only makes sure
// that the generations are still those that change was given.
func (s *Store) SetGenerations(ctx context.Context, collection uint32, change func([]store.Generation) ([]store.Generation, error)) (store.Collection, error) {
	for {
		c, err := s.collectionByID(ctx, collection)
		if err != nil {
			return store.Collection{}, err
		}
		next, err := change(slices.Clone(c.Live()))
		if err == nil {
			err = store.CheckGenerations(c.Live(), next)
		}
		if err != nil {
			return store.Collection{}, err
		}
		err = s.submit(ctx, func(t *txn) error { return t.setGenerations(&c, next) })
		if err == nil {
			return c, nil
		}
		if !errors.Is(err, errConflict) {
			return store.Collection{}, err
		}
	}
}

func (s *Store) collectionByID(ctx context.Context, id uint32) (c store.Collection, err error) {
	err = s.view(ctx, func(r pebble.Reader) (err error) {
		c, err = readCollection(r, id)
		return err
	})
	return c, err
}

func (t *txn) setGenerations(c *store.Collection, next []store.Generation) error {
	present, err := readGenerations(t.store.db, c.ID)
	if err != nil {
		return err
	}
	if !bytes.Equal(encode.Generations(present), encode.Generations(c.Generations)) {
		return errConflict
	}
	for _, g := range c.Live() {
		if !slices.ContainsFunc(next, func(n store.Generation) bool { return n.ID == g.ID }) {
			err = errors.Join(err, t.removeGeneration(c.ID, g.ID))
		}
	}
	for i := range next {
		if next[i].ID == 0 {
			t.meta.lastCollection++
			next[i].ID, next[i].Created = t.meta.lastCollection, now()
			err = errors.Join(err, t.set(countersKey(next[i].ID), counters{}.encode()))
		}
	}
	slices.SortFunc(next, func(a, b store.Generation) int { return cmp.Compare(a.Role, b.Role) })
	c.Generations = next
	_, changeErr := t.change(store.GenerationsChanged, c.ID, 0)
	return errors.Join(err, changeErr, t.set(generationsKey(c.ID), encode.Generations(next)))
}

// removeGeneration leaves the counters of the collection's first generation:
// they are the collection's too.
func (t *txn) removeGeneration(collection, id uint32) (err error) {
	for _, tag := range tagsOfGeneration {
		err = errors.Join(err, t.batch.DeleteRange(numberKey(tag, id), numberKey(tag, id+1), nil))
	}
	if id != collection {
		err = errors.Join(err, t.batch.Delete(countersKey(id), nil))
		t.dropped = append(t.dropped, id)
	}
	return err
}

// live returns the generations of a collection, the serving one first.
func (t *txn) live(collection uint32) ([]store.Generation, error) {
	c, err := readCollection(t.store.db, collection)
	if err != nil {
		return nil, fmt.Errorf("collection %d: %w", collection, err)
	}
	return c.Live(), nil
}

// Build adds a document to the building generation.
func (s *Store) Build(ctx context.Context, collection uint32, of store.Record, b store.Build) (bool, error) {
	content, err := s.Content(ctx, of.Collection, of.Ordinal, false)
	if errors.Is(err, store.ErrNotFound) {
		return false, nil
	}
	if err != nil || !content.SameVersion(of) {
		return false, err
	}
	if err := b.Validate(len(content.Text)); err != nil {
		return false, err
	}
	e, built := s.encode(content.Text, b), false
	err = s.submit(ctx, func(t *txn) (err error) {
		built, err = t.build(collection, of, e)
		return err
	})
	if err != nil { // the write may be under way still
		return false, err
	}
	return built, nil
}

func (t *txn) build(collection uint32, of store.Record, b encoded) (bool, error) {
	live, err := t.live(collection)
	if err != nil {
		return false, err
	}
	if err := b.CheckBuilding(live); err != nil {
		return false, err
	}
	serving, err := lookup(t.store.db, live[0].ID, of.Key)
	if errors.Is(err, store.ErrNotFound) || err == nil && !serving.SameVersion(of) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	parsed, err := getValue(t.store.db, ordinalKey(tagParsed, serving.Collection, serving.Ordinal), cloned)
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return false, err
	}
	old, err := readRecord(t.store.db, b.Generation, serving.Ordinal)
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return false, err
	}
	if serving.Epoch, err = t.change(store.DocumentChanged, collection, serving.Ordinal); err != nil {
		return false, err
	}
	_, err = t.replace(old, serving, b, parsed)
	return true, err
}

// eachOf calls do for the document's record in each generation that has one.
func (t *txn) eachOf(live []store.Generation, key string, do func(store.Record) error) error {
	for _, g := range live {
		r, err := lookup(t.store.db, g.ID, key)
		if errors.Is(err, store.ErrNotFound) {
			continue
		}
		if err == nil {
			err = do(r)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// SetQueries keeps a query set.
func (s *Store) SetQueries(ctx context.Context, collection uint32, queries []byte) error {
	return s.submit(ctx, func(t *txn) error {
		if _, err := t.live(collection); err != nil {
			return err
		}
		return t.set(queriesKey(collection), queries)
	})
}

// Queries returns the query set.
func (s *Store) Queries(ctx context.Context, collection uint32) (queries []byte, err error) {
	err = s.view(ctx, func(r pebble.Reader) error {
		queries, err = getValue(r, queriesKey(collection), cloned)
		if errors.Is(err, store.ErrNotFound) {
			_, err = readCollection(r, collection)
		}
		return err
	})
	return queries, err
}

// Parsed returns what a version brought for other chunkers.
func (s *Store) Parsed(ctx context.Context, generation, ordinal uint32) (parsed []byte, err error) {
	err = s.view(ctx, func(r pebble.Reader) error {
		if _, err := readRecord(r, generation, ordinal); err != nil {
			return err
		}
		parsed, err = getValue(r, ordinalKey(tagParsed, generation, ordinal), s.codec.Inflate)
		if errors.Is(err, store.ErrNotFound) {
			return nil
		}
		return err
	})
	return parsed, err
}

func cloned(body []byte) ([]byte, error) { return bytes.Clone(body), nil }
