package postgres

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"

	"sluice/store"
	"sluice/store/encode"
)

const (
	collectionByID = selectCollections + " where id = $1"
	lockCollection = collectionByID + " for no key update"
)

func readCollection(ctx context.Context, q querier, sql string, id uint32) (store.Collection, error) {
	c, err := find(ctx, q, scanCollection, sql, id)
	if err != nil {
		return c, fmt.Errorf("collection %d: %w", id, err)
	}
	return c, nil
}

func (s *Store) collectionByID(ctx context.Context, id uint32) (c store.Collection, err error) {
	err = s.call(ctx, func(ctx context.Context) (err error) {
		c, err = readCollection(ctx, s.pool, collectionByID, id)
		return err
	})
	return c, err
}

// lock returns the collection and keeps others from writing to it.
func (t *txn) lock(collection uint32) (store.Collection, error) {
	return readCollection(t.ctx, t.tx, lockCollection, collection)
}

// live locks a collection and returns its generations, the serving one first.
func (t *txn) live(collection uint32) ([]store.Generation, error) {
	c, err := t.lock(collection)
	return c.Live(), err
}

func numbersOf(generations []store.Generation) (numbers []uint32) {
	for _, g := range generations {
		numbers = append(numbers, g.ID)
	}
	return numbers
}

// SetGenerations runs change outside of the transaction, which only makes sure
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
		changed := c
		err = s.write(ctx, func(t *txn) (err error) {
			changed.Generations, err = t.setGenerations(c, slices.Clone(next))
			return err
		})
		if !errors.Is(err, errConflict) {
			return changed, err
		}
	}
}

func (t *txn) setGenerations(c store.Collection, next []store.Generation) ([]store.Generation, error) {
	present, err := t.lock(c.ID)
	if err != nil {
		return nil, err
	}
	if !bytes.Equal(encode.Generations(present.Generations), encode.Generations(c.Generations)) {
		return nil, errConflict
	}
	for _, g := range c.Live() {
		if !slices.ContainsFunc(next, func(n store.Generation) bool { return n.ID == g.ID }) {
			err = errors.Join(err, t.removeGeneration(c.ID, g.ID))
		}
	}
	for i := range next {
		if next[i].ID == 0 {
			err = errors.Join(err, t.newGeneration(&next[i]))
		}
	}
	if err != nil {
		return nil, err
	}
	slices.SortFunc(next, func(a, b store.Generation) int { return cmp.Compare(a.Role, b.Role) })
	if err := t.exec("update collections set generations = $2 where id = $1", c.ID, encode.Generations(next)); err != nil {
		return nil, err
	}
	_, err = t.change(store.GenerationsChanged, c.ID, 0)
	return next, err
}

// newGeneration gives a generation its number and time.
func (t *txn) newGeneration(g *store.Generation) error {
	g.Created = now()
	if err := t.row("update meta set last_collection = last_collection + 1 returning last_collection").Scan(&g.ID); err != nil {
		return err
	}
	return t.exec("insert into counters (id) values ($1)", g.ID)
}

// removeGeneration leaves the counters of the collection's first generation:
// they are the collection's too.
func (t *txn) removeGeneration(collection, id uint32) error {
	batch := &pgx.Batch{}
	for _, table := range []string{"documents", "contents", "codes"} {
		batch.Queue("delete from "+table+" where collection = $1", id)
	}
	if id != collection {
		batch.Queue("delete from counters where id = $1", id)
	}
	return t.tx.SendBatch(t.ctx, batch).Close()
}

// Build adds a document to the building generation.
func (s *Store) Build(ctx context.Context, collection uint32, of store.Record, b store.Build) (built bool, err error) {
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
	e := s.encode(content.Text, b)
	err = s.write(ctx, func(t *txn) (err error) {
		built, err = t.build(collection, of, e)
		return err
	})
	return built && err == nil, err
}

func (t *txn) build(collection uint32, of store.Record, b encoded) (bool, error) {
	live, err := t.live(collection)
	if err != nil {
		return false, err
	}
	if err := b.CheckBuilding(live); err != nil {
		return false, err
	}
	serving, err := t.lookup(live[0].ID, of.Key)
	if errors.Is(err, store.ErrNotFound) || err == nil && !serving.SameVersion(of) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	r, err := t.replace(serving, b, nil)
	if err == nil {
		err = t.exec(`insert into contents select $2, ordinal, kind, part, body from contents
			where collection = $1 and ordinal = $3 and kind = $4`, serving.Collection, r.Collection, r.Ordinal, kindParsed)
	}
	if err == nil {
		_, err = t.put(collection, []store.Record{r})
	}
	return err == nil, err
}

// SetQueries keeps a query set.
func (s *Store) SetQueries(ctx context.Context, collection uint32, queries []byte) error {
	return s.write(ctx, func(t *txn) error {
		if _, err := t.lock(collection); err != nil {
			return err
		}
		return t.exec("update collections set queries = $2 where id = $1", collection, queries)
	})
}

// Queries returns the query set.
func (s *Store) Queries(ctx context.Context, collection uint32) (queries []byte, err error) {
	err = s.call(ctx, func(ctx context.Context) (err error) {
		queries, err = find(ctx, s.pool, pgx.RowTo[[]byte], "select queries from collections where id = $1", collection)
		return err
	})
	return queries, err
}
