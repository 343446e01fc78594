package main

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"path/filepath"

	"sluice/index"
	"sluice/index/milvus"
	"sluice/index/text"
	"sluice/store"
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
		ix, err := milvus.Open(ctx, d.milvus, options)
		if !errors.Is(err, index.ErrRebuild) {
			return ix, err
		}
		d.log.Warn("the index cannot be used and is rebuilt", "collection", c.Name, "reason", err)
	}
	if err := milvus.Remove(ctx, d.milvus, options); err != nil {
		return nil, err
	}
	return milvus.Open(ctx, d.milvus, options)
}

func (d *daemon) milvusOptions(c store.Collection) (milvus.Options, error) {
	analyzer, err := text.New(c.Settings.Analyzer)
	if err != nil {
		return milvus.Options{}, err
	}
	info := d.embedder.Info()
	model := c.Settings.Model(info.Digest)
	return milvus.Options{
		Name: milvusName(c, model), Dir: filepath.Join(d.config.Data, "milvus", fmt.Sprintf("c%08x", c.ID)),
		Dimensions: c.Settings.Dimensions(info.Dimensions), Analyzer: analyzer, Model: model,
		Partial: d.config.MilvusDown == "degrade", Log: d.log,
	}, nil
}

// milvusName is the same for all daemons on one store and differs between
// stores, which may share a server, and between models.
func milvusName(c store.Collection, model string) string {
	of := fmt.Sprintf("%d %d %q %q %q", c.ID, c.Created.UnixNano(), c.Tenant, c.Name, model)
	return fmt.Sprintf("sluice_%x", sha256.Sum256([]byte(of)))[:39]
}
