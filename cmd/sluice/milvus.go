package main

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/RoaringBitmap/roaring/v2"

	"sluice/index"
	"sluice/index/milvus"
	"sluice/index/text"
	"sluice/store"
	"sluice/store/pebble"
)

// connectMilvus connects to every configured server. One that does not answer as
// it should keeps the daemon from starting.
func (d *daemon) connectMilvus(ctx context.Context) error {
	for _, address := range d.config.Milvus {
		c, err := milvus.Connect(ctx, address)
		if err != nil {
			return err
		}
		d.milvus = append(d.milvus, c)
		d.log.Info("connected to Milvus", "address", address, "version", c.Version())
	}
	return nil
}

// openOnMilvus is openIndex with the vectors on Milvus.
func (d *daemon) openOnMilvus(c store.Collection, fresh bool) (index.Index, error) {
	ctx := context.Background() // each call has a deadline of its own
	options, err := d.milvusOptions(c)
	if err != nil {
		return nil, err
	}
	if !fresh {
		ix, err := d.openWhole(ctx, c.ID, options)
		if !errors.Is(err, index.ErrRebuild) {
			return ix, err
		}
		d.log.Warn("the index cannot be used and is rebuilt", "collection", c.Name, "reason", err)
	}
	if options.Shared > 0 {
		err = milvus.Forget(options)
	} else {
		err = milvus.Remove(ctx, d.milvus, options)
	}
	if err != nil {
		return nil, err
	}
	return milvus.Open(ctx, d.milvus, options)
}

// openWhole opens an index. index.ErrRebuild: it lacks rows that the store has.
func (d *daemon) openWhole(ctx context.Context, generation uint32, options milvus.Options) (index.Index, error) {
	ix, err := milvus.Open(ctx, d.milvus, options)
	if err != nil {
		return nil, err
	}
	records, err := d.store.Records(ctx, generation, ix.Lacks())
	for ordinal, record := range records {
		if ix.Holds(ordinal, record.FirstRow) {
			err = fmt.Errorf("the servers lack rows of document %d: %w", ordinal, index.ErrRebuild)
		}
	}
	if err != nil {
		return nil, errors.Join(err, ix.Close())
	}
	return ix, nil
}

func (d *daemon) milvusOptions(c store.Collection) (milvus.Options, error) {
	analyzer, err := text.New(c.Settings.Analyzer)
	if err != nil {
		return milvus.Options{}, err
	}
	info := d.embedder.Info()
	model := c.Settings.Model(info.Digest)
	name := milvusName(c, model)
	o := milvus.Options{
		Name: name, Dir: filepath.Join(d.milvusDir(), name),
		Dimensions: c.Settings.Dimensions(info.Dimensions), Analyzer: analyzer, Model: model,
		Partial: d.config.MilvusDown == "degrade", Log: d.log, Owner: milvus.Owner(d.database, c.ID),
	}
	if d.database != "" {
		o.Epoch = d.store.Epoch
		o.Shared = d.config.StoreStaleness + d.config.Limits.RequestTimeout + clocksPart
	}
	return o, nil
}

// clocksPart is how much longer than it should a search of another daemon may last.
const clocksPart = 10 * time.Second

// sweepMilvus drops what generations have left that the database has no more.
func (d *daemon) sweepMilvus(ctx context.Context) error {
	if d.database == "" {
		return nil
	}
	dropped, err := milvus.DropOrphans(ctx, d.milvus, milvusPrefix, d.database, d.liveOwners)
	for _, name := range dropped {
		d.log.Info("dropped a collection of a generation that is gone", "collection", name)
	}
	return err
}

func (d *daemon) liveOwners(ctx context.Context) (map[string]bool, error) {
	all, err := d.store.Collections(ctx)
	owners := map[string]bool{}
	for _, c := range all {
		for _, g := range c.Live() {
			owners[milvus.Owner(d.database, g.ID)] = true
		}
	}
	return owners, err
}

// milvusDir has a directory for each index, of its name.
func (d *daemon) milvusDir() string { return filepath.Join(d.config.Data, "milvus") }

// removeFromMilvus removes the index that a directory is of. Of one that other
// daemons may use only the directory goes.
func (d *daemon) removeFromMilvus(ctx context.Context, dir string) error {
	if d.database != "" {
		return os.RemoveAll(dir)
	}
	return milvus.Remove(ctx, d.milvus, milvus.Options{Name: filepath.Base(dir), Dir: dir})
}

// checkMilvus compares the servers with the store.
func (c checkCommand) checkMilvus(ctx context.Context, report func(string)) (err error) {
	var clusters []*milvus.Cluster
	defer func() {
		for _, cluster := range clusters {
			err = errors.Join(err, cluster.Close())
		}
	}()
	for _, address := range c.Milvus {
		cluster, err := milvus.Connect(ctx, address)
		if err != nil {
			return err
		}
		clusters = append(clusters, cluster)
	}
	owned, err := c.compareMilvus(ctx, clusters, report)
	if err != nil {
		return err
	}
	return c.listOthers(ctx, clusters, owned, report)
}

// compareMilvus returns the names of the collections that belong to the store.
func (c checkCommand) compareMilvus(ctx context.Context, clusters []*milvus.Cluster, report func(string)) (owned map[string]bool, err error) {
	st, err := openStored(c.Data, pebble.Options{ReadOnly: true})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, st.Close()) }()
	all, err := st.Collections(ctx)
	if err != nil {
		return nil, err
	}
	owned = map[string]bool{}
	for _, collection := range all {
		for _, g := range collection.Live() {
			if err := c.compareGeneration(ctx, clusters, st, collection.At(g), owned, report); err != nil {
				return nil, err
			}
		}
	}
	return owned, nil
}

func (c checkCommand) compareGeneration(ctx context.Context, clusters []*milvus.Cluster, st store.Store, at store.Collection, owned map[string]bool, report func(string)) error {
	options, empty, err := storedOptions(ctx, st, at)
	if err != nil || empty {
		return err
	}
	for _, name := range milvus.CollectionNames(clusters, options) {
		owned[name] = true
	}
	unreadable := roaring.New() // reported by the check of the store
	return milvus.Compare(ctx, clusters, options, documentsOf(ctx, st, at.ID, unreadable), c.Repair, func(fault string) {
		report("milvus: " + fault)
	})
}

// storedOptions tells from the documents what made their vectors. Without any
// there is nothing to compare.
func storedOptions(ctx context.Context, st store.Store, c store.Collection) (o milvus.Options, empty bool, err error) {
	for record, err := range st.Scan(ctx, c.ID, 0) {
		if err != nil {
			return o, false, err
		}
		content, err := st.Content(ctx, c.ID, record.Ordinal, true)
		if err != nil {
			return o, false, err
		}
		if content.Dimensions > 0 {
			return milvus.Options{Name: milvusName(c, record.Model), Dimensions: content.Dimensions}, false, nil
		}
	}
	return o, true, nil
}

// listOthers lists collections that are not the store's, and drops those that
// were named. Another store, or another model, may own the others.
func (c checkCommand) listOthers(ctx context.Context, clusters []*milvus.Cluster, owned map[string]bool, report func(string)) error {
	for _, cluster := range clusters {
		names, err := cluster.Collections(ctx, milvusPrefix)
		if err != nil {
			return err
		}
		for _, name := range names {
			switch {
			case owned[name]:
			case slices.Contains(c.Drop, name):
				if err := cluster.Drop(ctx, name); err != nil {
					return err
				}
				fmt.Println("milvus: dropped " + name)
			default:
				report("milvus: the collection " + name + " is of no collection here; if no other store or daemon uses it, --drop it")
			}
		}
	}
	return nil
}

const milvusPrefix = "sluice_"

// milvusName is the same for all daemons on one store and differs between
// stores, which may share a server, and between models.
func milvusName(c store.Collection, model string) string {
	of := fmt.Sprintf("%d %d %q %q %q", c.ID, c.Created.UnixNano(), c.Tenant, c.Name, model)
	return fmt.Sprintf(milvusPrefix+"%x", sha256.Sum256([]byte(of)))[:39]
}
