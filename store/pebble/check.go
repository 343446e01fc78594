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

// Check verifies every value's checksum and every cross reference.
func (s *Store) Check(ctx context.Context, report func(store.Fault)) error {
	return s.view(ctx, func(r pebble.Reader) error {
		c := &checker{ctx: ctx, store: s, r: r, sink: report, counters: map[uint32]counters{}, collections: map[uint32]uint32{}}
		c.checkMeta()
		c.checkTags()
		c.each(tagCollection, c.checkCollection)
		c.each(tagName, c.checkName)
		c.each(tagCounters, c.checkCounters)
		c.each(tagRecord, c.checkRecord)
		c.checkRows()
		c.each(tagDocument, c.checkDocument)
		c.each(tagContent, c.checkPart)
		c.each(tagVectors, c.checkPart)
		c.each(tagParsed, c.checkPart)
		c.each(tagGeneration, c.checkOfCollection)
		c.each(tagQueries, c.checkOfCollection)
		c.each(tagEmbedding, c.checkEmbedding)
		c.each(tagCodes, c.checkCodes)
		c.checkFeed()
		c.check("policies", func() error { _, err := readPolicies(r); return err })
		c.check("tables", func() error { return s.db.CheckLevels(nil) })
		return ctx.Err()
	})
}

// checker is one run of Check over one state of the store.
type checker struct {
	ctx         context.Context
	store       *Store
	r           pebble.Reader
	sink        func(store.Fault)
	meta        meta
	counters    map[uint32]counters // of every generation and collection
	collections map[uint32]uint32   // of every generation
	rows        []rowRange
}

type rowRange struct {
	collection, ordinal, first, rows uint32
	coded                            bool
}

func (c *checker) fault(where, format string, args ...any) {
	if c.ctx.Err() == nil {
		c.sink(store.Fault{Where: where, What: fmt.Sprintf(format, args...)})
	}
}

// check reports the error of f.
func (c *checker) check(where string, f func() error) {
	if err := f(); err != nil {
		c.fault(where, "%v", err)
	}
}

// each calls f for every key with the tag and reports its errors.
func (c *checker) each(tag byte, f func(*pebble.Iterator) error) {
	c.check(fmt.Sprintf("keys %q", tag), func() error {
		it, err := c.r.NewIterWithContext(c.ctx, &pebble.IterOptions{LowerBound: []byte{tag}, UpperBound: []byte{tag + 1}})
		if err != nil {
			return err
		}
		defer it.Close()
		for it.First(); it.Valid() && c.ctx.Err() == nil; it.Next() {
			c.check(where(it.Key()), func() error { return f(it) })
		}
		return it.Error()
	})
}

// where names what a key holds.
func where(key []byte) string {
	collection, ordinal, err := splitOrdinalKey(key)
	switch {
	case err == nil && key[0] == tagRecord:
		return fmt.Sprintf("collection %d document %d record", collection, ordinal)
	case err == nil && key[0] == tagContent:
		return fmt.Sprintf("collection %d document %d content", collection, ordinal)
	case err == nil && key[0] == tagVectors:
		return fmt.Sprintf("collection %d document %d vectors", collection, ordinal)
	case err == nil && key[0] == tagParsed:
		return fmt.Sprintf("collection %d document %d parsed", collection, ordinal)
	case err == nil && key[0] == tagCodes:
		return fmt.Sprintf("collection %d row %d token codes", collection, ordinal)
	case err == nil && key[0] == tagFeed:
		return fmt.Sprintf("change in epoch %d", uint64(collection)<<32|uint64(ordinal))
	}
	if collection, document, err := splitDocumentKey(key); err == nil && key[0] == tagDocument {
		return fmt.Sprintf("collection %d key %q", collection, document)
	}
	return fmt.Sprintf("key %q", key)
}

func (c *checker) checkMeta() {
	c.check("meta", func() (err error) {
		c.meta, err = readMeta(c.r)
		if err == nil && c.meta.trimmed > c.meta.epoch {
			return fmt.Errorf("the feed is trimmed up to epoch %d, the store is at %d", c.meta.trimmed, c.meta.epoch)
		}
		return err
	})
}

// checkTags reports keys that the format does not have.
func (c *checker) checkTags() {
	families := []byte{tagCollection, tagDocument, tagFeed, tagCounters, tagName, tagRecord, tagContent, tagVectors, tagCodes, tagParsed, tagGeneration, tagQueries, tagEmbedding}
	singles := [][]byte{metaKey(), policiesKey()}
	c.check("all keys", func() error {
		it, err := c.r.NewIterWithContext(c.ctx, nil)
		if err != nil {
			return err
		}
		defer it.Close()
		for valid := it.First(); valid; {
			if tag := it.Key()[0]; bytes.IndexByte(families, tag) >= 0 {
				valid = it.SeekGE([]byte{tag + 1})
				continue
			}
			if !slices.ContainsFunc(singles, func(key []byte) bool { return bytes.Equal(key, it.Key()) }) {
				c.fault(where(it.Key()), "the format has no such key")
			}
			valid = it.Next()
		}
		return it.Error()
	})
}

func (c *checker) checkCollection(it *pebble.Iterator) error {
	collection, err := collectionAt(it)
	if err != nil {
		return err
	}
	if collection.ID == 0 || collection.ID > c.meta.lastCollection {
		return fmt.Errorf("the number %d is beyond the last one given, %d", collection.ID, c.meta.lastCollection)
	}
	id, err := getValue(c.r, nameKey(collection.Tenant, collection.Name), decodeNumber)
	if err == nil && id != collection.ID {
		err = fmt.Errorf("its name leads to collection %d", id)
	}
	var damaged error
	if collection.Generations, damaged = readGenerations(c.r, collection.ID); damaged != nil {
		err = errors.Join(err, damaged)
	}
	for _, g := range append(collection.Live(), store.Generation{ID: collection.ID}) {
		err = errors.Join(err, c.checkGeneration(collection.ID, g.ID))
	}
	return err
}

// checkGeneration notes whose generation it is.
func (c *checker) checkGeneration(collection, id uint32) error {
	if whose, known := c.collections[id]; known && whose != collection {
		return fmt.Errorf("generation %d is also of collection %d", id, whose)
	}
	n, err := readCounters(c.r, id)
	c.counters[id], c.collections[id] = n, collection
	if id > c.meta.lastCollection {
		err = errors.Join(err, fmt.Errorf("generation %d is beyond the last number given, %d", id, c.meta.lastCollection))
	}
	return err
}

// checkOfCollection reports what belongs to no collection.
func (c *checker) checkOfCollection(it *pebble.Iterator) error {
	for id, collection := range c.collections {
		if id == collection && bytes.Equal(it.Key()[1:], collectionKey(id)[1:]) {
			_, err := bodyAt(it)
			return err
		}
	}
	return errors.New("there is no collection for it")
}

func (c *checker) checkEmbedding(it *pebble.Iterator) error {
	body, err := bodyAt(it)
	if err != nil {
		return err
	}
	d := encode.Decoder{Body: body}
	d.Time()
	return d.Err
}

func (c *checker) checkName(it *pebble.Iterator) error {
	body, err := bodyAt(it)
	if err != nil {
		return err
	}
	id, err := decodeNumber(body)
	if err != nil {
		return err
	}
	collection, err := readCollection(c.r, id)
	if err != nil {
		return fmt.Errorf("leads to collection %d: %w", id, err)
	}
	if !bytes.Equal(nameKey(collection.Tenant, collection.Name), it.Key()) {
		return fmt.Errorf("leads to collection %d, which has another name", id)
	}
	return nil
}

func (c *checker) checkCounters(it *pebble.Iterator) error {
	for id := range c.counters {
		if bytes.Equal(countersKey(id), it.Key()) {
			return nil
		}
	}
	return errors.New("counters of no collection")
}

func (c *checker) checkRecord(it *pebble.Iterator) error {
	r, err := recordAt(it)
	if err != nil {
		return err
	}
	c.rows = append(c.rows, rowRange{r.Collection, r.Ordinal, r.FirstRow, r.Rows, r.Coded})
	content := store.Content{Record: r}
	return errors.Join(
		c.checkNumbers(r),
		c.checkKeyOf(r),
		c.checkLastChange(r),
		c.store.readContent(c.r, &content, true),
		c.checkCoded(r),
		c.checkParsed(r),
	)
}

func (c *checker) checkParsed(r store.Record) error {
	_, err := getValue(c.r, ordinalKey(tagParsed, r.Collection, r.Ordinal), c.store.codec.Inflate)
	if errors.Is(err, store.ErrNotFound) {
		return nil
	}
	return err
}

// checkCoded looks for the token codes of every row that should have them.
func (c *checker) checkCoded(r store.Record) error {
	for i := range r.Rows {
		if !r.Coded {
			break
		}
		if err := get(c.r, ordinalKey(tagCodes, r.Collection, r.FirstRow+i), anyBody); err != nil {
			return fmt.Errorf("token codes of row %d: %w", r.FirstRow+i, err)
		}
	}
	return nil
}

func anyBody([]byte) error { return nil }

// checkNumbers compares a record with the counters.
func (c *checker) checkNumbers(r store.Record) error {
	n, ok := c.counters[r.Collection]
	if !ok {
		return errors.New("its collection does not exist")
	}
	var err error
	if free := c.counters[c.collections[r.Collection]].ordinal; uint64(r.Ordinal) >= free {
		err = errors.Join(err, fmt.Errorf("the next free ordinal is %d", free))
	}
	if end := uint64(r.FirstRow) + uint64(r.Rows); end > n.row {
		err = errors.Join(err, fmt.Errorf("its rows end at %d, the next free row is %d", end, n.row))
	}
	if r.Version == 0 || r.Epoch == 0 || r.Epoch > c.meta.epoch {
		err = errors.Join(err, fmt.Errorf("version %d, epoch %d, the store is at epoch %d", r.Version, r.Epoch, c.meta.epoch))
	}
	return err
}

// checkKeyOf follows a record's key back to it.
func (c *checker) checkKeyOf(r store.Record) error {
	ordinal, err := getValue(c.r, documentKey(r.Collection, r.Key), decodeNumber)
	if err == nil && ordinal != r.Ordinal {
		return fmt.Errorf("its key %q leads to document %d", r.Key, ordinal)
	}
	if err != nil {
		return fmt.Errorf("its key %q: %w", r.Key, err)
	}
	return nil
}

// checkLastChange looks for a record's last change in the feed.
func (c *checker) checkLastChange(r store.Record) error {
	if r.Epoch <= c.meta.trimmed {
		return nil
	}
	change, err := getValue(c.r, feedKey(r.Epoch), func(body []byte) (store.Change, error) { return decodeChange(r.Epoch, body) })
	if err != nil {
		return fmt.Errorf("its change in epoch %d: %w", r.Epoch, err)
	}
	if want := (store.Change{Epoch: r.Epoch, Kind: store.DocumentChanged, Collection: c.collections[r.Collection], Ordinal: r.Ordinal}); change != want {
		return fmt.Errorf("the change in epoch %d is another one: %+v", r.Epoch, change)
	}
	return nil
}

// checkRows reports rows that belong to two documents.
func (c *checker) checkRows() {
	slices.SortFunc(c.rows, func(a, b rowRange) int {
		return cmp.Or(cmp.Compare(a.collection, b.collection), cmp.Compare(a.first, b.first), cmp.Compare(a.rows, b.rows))
	})
	for i := 1; i < len(c.rows); i++ {
		a, b := c.rows[i-1], c.rows[i]
		if a.collection == b.collection && uint64(a.first)+uint64(a.rows) > uint64(b.first) {
			c.fault(fmt.Sprintf("collection %d document %d record", b.collection, b.ordinal), "it shares rows with document %d", a.ordinal)
		}
	}
}

func (c *checker) checkDocument(it *pebble.Iterator) error {
	collection, document, err := splitDocumentKey(it.Key())
	if err != nil {
		return err
	}
	body, err := bodyAt(it)
	if err != nil {
		return err
	}
	ordinal, err := decodeNumber(body)
	if err != nil {
		return err
	}
	r, err := readRecord(c.r, collection, ordinal)
	if err == nil && r.Key != document {
		return fmt.Errorf("leads to document %d, whose key is %q", ordinal, r.Key)
	}
	if err != nil {
		return fmt.Errorf("leads to document %d: %w", ordinal, err)
	}
	return nil
}

// checkPart reports content and vectors without a record; checkRecord reads the others.
func (c *checker) checkPart(it *pebble.Iterator) error {
	collection, ordinal, err := splitOrdinalKey(it.Key())
	if err != nil {
		return err
	}
	if _, err := readRecord(c.r, collection, ordinal); errors.Is(err, store.ErrNotFound) {
		return errors.New("there is no record of it")
	}
	return nil
}

// checkCodes reports token codes that no record counts on; checkCoded reads the others.
func (c *checker) checkCodes(it *pebble.Iterator) error {
	collection, row, err := splitOrdinalKey(it.Key())
	if err != nil {
		return err
	}
	after, _ := slices.BinarySearchFunc(c.rows, 0, func(r rowRange, _ int) int {
		if cmp.Or(cmp.Compare(r.collection, collection), cmp.Compare(r.first, row)) > 0 {
			return 1
		}
		return -1
	})
	for _, r := range c.rows[max(0, after-1):after] {
		if r.coded && r.collection == collection && row-r.first < r.rows {
			return nil
		}
	}
	return errors.New("no record has this row with codes")
}

// checkFeed reads the feed, which has one change for each epoch after the trimmed ones.
func (c *checker) checkFeed() {
	next := c.meta.trimmed + 1
	c.each(tagFeed, func(it *pebble.Iterator) error {
		change, err := changeAt(it)
		if err != nil {
			next++
			return err
		}
		if change.Epoch != next {
			err = fmt.Errorf("epoch %d was expected", next)
		}
		next = change.Epoch + 1
		return errors.Join(err, c.checkChange(change))
	})
	if next != c.meta.epoch+1 {
		c.fault("feed", "it ends at epoch %d, the store is at %d", next-1, c.meta.epoch)
	}
}

func (c *checker) checkChange(change store.Change) error {
	n, ok := c.counters[change.Collection]
	switch change.Kind {
	case store.PoliciesChanged:
		return nil
	case store.CollectionCreated, store.GenerationsChanged:
		if !ok {
			return fmt.Errorf("collection %d does not exist", change.Collection)
		}
	case store.DocumentChanged:
		if uint64(change.Ordinal) >= n.ordinal {
			return fmt.Errorf("document %d of collection %d was never created", change.Ordinal, change.Collection)
		}
	default:
		return fmt.Errorf("there is no kind of change %d", change.Kind)
	}
	return nil
}
