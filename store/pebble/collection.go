package pebble

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/cockroachdb/pebble/v2"

	"sluice/store"
)

func readCollection(r pebble.Reader, id uint32) (store.Collection, error) {
	c, err := getValue(r, collectionKey(id), func(body []byte) (store.Collection, error) {
		return decodeCollection(id, body)
	})
	if err == nil {
		c.Generations, err = readGenerations(r, id)
	}
	return c, err
}

func findCollection(r pebble.Reader, tenant, name string) (store.Collection, error) {
	id, err := getValue(r, nameKey(tenant, name), decodeNumber)
	if err != nil {
		return store.Collection{}, err
	}
	c, err := readCollection(r, id)
	if errors.Is(err, store.ErrNotFound) {
		return c, fmt.Errorf("%w: collection %d has a name but no settings", store.ErrCorrupt, id)
	}
	return c, err
}

// Collection returns a collection by its name.
func (s *Store) Collection(ctx context.Context, tenant, name string) (c store.Collection, err error) {
	err = s.view(ctx, func(r pebble.Reader) (err error) {
		c, err = findCollection(r, tenant, name)
		return err
	})
	return c, err
}

// Collections returns all collections in the order of their creation.
func (s *Store) Collections(ctx context.Context) (all []store.Collection, err error) {
	err = s.view(ctx, func(r pebble.Reader) error {
		it, err := r.NewIterWithContext(ctx, &pebble.IterOptions{LowerBound: []byte{tagCollection}, UpperBound: []byte{tagCollection + 1}})
		if err != nil {
			return err
		}
		defer it.Close()
		for it.First(); it.Valid(); it.Next() {
			c, err := collectionAt(it)
			if err != nil {
				return err
			}
			if c.Generations, err = readGenerations(r, c.ID); err != nil {
				return err
			}
			all = append(all, c)
		}
		return it.Error()
	})
	return all, err
}

func collectionAt(it *pebble.Iterator) (store.Collection, error) {
	if len(it.Key()) != 5 {
		return store.Collection{}, fmt.Errorf("%w: key %x has %d bytes, not 5", store.ErrCorrupt, it.Key(), len(it.Key()))
	}
	body, err := bodyAt(it)
	if err != nil {
		return store.Collection{}, err
	}
	return decodeCollection(binary.BigEndian.Uint32(it.Key()[1:]), body)
}

// CreateCollection creates a collection, or returns the one that has the name.
func (s *Store) CreateCollection(ctx context.Context, tenant, name string, settings store.Settings) (store.Collection, bool, error) {
	if len(tenant) > store.MaxKeyBytes || len(name) > store.MaxKeyBytes {
		return store.Collection{}, false, fmt.Errorf("%w: tenant and name may have %d bytes each", store.ErrInvalid, store.MaxKeyBytes)
	}
	if err := settings.Validate(); err != nil {
		return store.Collection{}, false, err
	}
	var c store.Collection
	var created bool
	err := s.submit(ctx, func(t *txn) (err error) {
		c, created, err = t.createCollection(tenant, name, settings)
		return err
	})
	if err != nil {
		return store.Collection{}, false, err
	}
	return c, created, nil
}

func (t *txn) createCollection(tenant, name string, settings store.Settings) (store.Collection, bool, error) {
	c, err := findCollection(t.store.db, tenant, name)
	if err == nil && c.Settings != settings {
		return store.Collection{}, false, fmt.Errorf("%w: %+v", store.ErrSettingsDiffer, c.Settings)
	}
	if !errors.Is(err, store.ErrNotFound) {
		return c, false, err
	}
	t.meta.lastCollection++
	c = store.Collection{ID: t.meta.lastCollection, Tenant: tenant, Name: name, Settings: settings, Created: now()}
	_, err = t.change(store.CollectionCreated, c.ID, 0)
	return c, true, errors.Join(err,
		t.set(collectionKey(c.ID), encodeCollection(c)),
		t.set(nameKey(tenant, name), encodeNumber(c.ID)),
		t.set(countersKey(c.ID), counters{}.encode()))
}
