package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"path/filepath"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"sluice/index"
	"sluice/index/local"
	"sluice/index/text"
	"sluice/retrieve"
	"sluice/store"
	"sluice/store/pebble"
)

// compareIndexes compares the indexes that are there with the store. What cannot
// be read is left out: the checks before have reported it.
func compareIndexes(ctx context.Context, data string, report func(string)) (err error) {
	st, err := openStored(data, pebble.Options{ReadOnly: true})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, st.Close()) }()
	all, err := st.Collections(ctx)
	if err != nil {
		return err
	}
	owned := map[string]bool{}
	for _, c := range all {
		for _, g := range c.Live() {
			dir := collectionDir(indexDir(data), c.At(g))
			owned[dir] = true
			if err := compareIndex(ctx, st, c, g, dir, report); err != nil {
				report(fmt.Sprintf("index: %s is not compared to its end: %v", dir, err))
			}
		}
	}
	entries, err := os.ReadDir(indexDir(data))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	for _, entry := range entries {
		if dir := filepath.Join(indexDir(data), entry.Name()); !owned[dir] {
			report("index: " + dir + " is of no collection")
		}
	}
	return err
}

func compareIndex(ctx context.Context, st *pebble.Store, c store.Collection, g store.Generation, dir string, report func(string)) error {
	if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
		return nil // the next start builds it
	}
	held, err := local.Check(dir, nil)
	if err != nil {
		return nil //nolint:nilerr // reported before
	}
	pending, err := changedAfter(ctx, st, c, held.Epoch)
	if held.Epoch == 0 || errors.Is(err, store.ErrFeedTrimmed) {
		return nil // the next start builds it anew
	}
	if err != nil {
		return err
	}
	analyzer, err := text.New(c.Settings.Analyzer)
	if err != nil {
		return err
	}
	return local.Compare(ctx, dir, vfs.Default, analyzer, documentsOf(ctx, st, g.ID, pending), pending, func(ordinal uint32, fault string) {
		report(fmt.Sprintf("index: %s: %s: %s", dir, nameOf(ctx, st, g.ID, ordinal), fault))
	})
}

// changedAfter is what the feed is to bring to an index of that epoch.
func changedAfter(ctx context.Context, st store.Store, c store.Collection, epoch uint64) (*roaring.Bitmap, error) {
	changed := roaring.New()
	for {
		changes, err := st.Changes(ctx, epoch, 1024)
		if err != nil || len(changes) == 0 {
			return changed, err
		}
		for _, change := range changes {
			if change.Kind == store.DocumentChanged && change.Collection == c.ID {
				changed.Add(change.Ordinal)
			}
		}
		epoch = changes[len(changes)-1].Epoch
	}
}

// documentsOf yields the documents as their index is to hold them. Those that
// cannot be read are added to unreadable.
func documentsOf(ctx context.Context, st store.Store, generation uint32, unreadable *roaring.Bitmap) iter.Seq2[index.Document, error] {
	return func(yield func(index.Document, error) bool) {
		for record, err := range st.Scan(ctx, generation, 0) {
			if err != nil {
				yield(index.Document{}, err)
				return
			}
			content, err := st.Content(ctx, generation, record.Ordinal, true)
			if err != nil {
				unreadable.Add(record.Ordinal)
				continue
			}
			if !yield(retrieve.Indexed(content), nil) {
				return
			}
		}
	}
}

// nameOf names a document by its key, if the store has it.
func nameOf(ctx context.Context, st store.Store, generation, ordinal uint32) string {
	records, err := st.Records(ctx, generation, []uint32{ordinal})
	if r, ok := records[ordinal]; ok && err == nil {
		return fmt.Sprintf("document %d %q", ordinal, r.Key)
	}
	return fmt.Sprintf("document %d", ordinal)
}
