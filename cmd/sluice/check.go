package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"sluice/index/local"
	"sluice/store"
	"sluice/store/pebble"
)

type checkCommand struct {
	Data string `arg:"" help:"Data directory of a daemon that is not running, or a snapshot."`
	Deep bool   `help:"Also compare every row of the indexes, its vector, codes and postings with the documents; takes about as long as to build them."`

	Milvus []string `placeholder:"HOST:PORT" help:"Compare every row that these Milvus servers have (those of the configuration, in its order) with the documents, and list their collections that are of none here."`
	Repair bool     `help:"With --milvus: write the rows that are missing or wrong, and delete those of no document."`
	Drop   []string `placeholder:"COLLECTION" help:"With --milvus: remove these of the listed collections."`
}

func (c checkCommand) Run(ctx context.Context) error {
	faults := 0
	report := func(fault string) {
		faults++
		fmt.Println(fault)
	}
	epoch, err := checkStore(ctx, c.Data, report)
	if err != nil {
		return err // the indexes would be compared with nothing
	}
	if err := checkIndexes(c.Data, epoch, report); err != nil {
		return err
	}
	if c.Deep {
		if err := compareIndexes(ctx, c.Data, report); err != nil {
			return err
		}
	}
	if len(c.Milvus) > 0 {
		if err := c.checkMilvus(ctx, report); err != nil {
			return err
		}
	}
	if s, err := readSnapshot(c.Data); err == nil {
		fmt.Fprintf(os.Stderr, "this is the snapshot %s of %s: changes after epoch %d, revocations too, are not in it\n", s.Name, s.Made.Format(time.RFC3339), s.Epoch)
	}
	if faults > 0 {
		return fmt.Errorf("%s; faults of the index are mended by removing %s, those of the store by restoring a backup", counted(faults, "fault"), indexDir(c.Data))
	}
	fmt.Println("no faults")
	return nil
}

// checkStore returns the store's epoch.
func checkStore(ctx context.Context, data string, report func(string)) (epoch uint64, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("checking %s: %w", storeDir(data), err)
		}
	}()
	st, err := openStored(data, pebble.Options{ReadOnly: true})
	if err != nil {
		return 0, err
	}
	err = st.Check(ctx, func(f store.Fault) { report("store: " + f.Where + ": " + f.What) })
	epoch, epochErr := st.Epoch(ctx)
	return epoch, errors.Join(err, epochErr, st.Close())
}

func checkIndexes(data string, epoch uint64, report func(string)) error {
	entries, err := os.ReadDir(indexDir(data))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, entry := range entries {
		dir := filepath.Join(indexDir(data), entry.Name())
		found, err := local.Check(dir, nil)
		switch {
		case err != nil:
			report("index: " + err.Error())
		case found.Epoch > epoch:
			report(fmt.Sprintf("store: it is at epoch %d, but the index %s has seen %d: writes are lost, or the store is an older copy", epoch, dir, found.Epoch))
		}
	}
	return nil
}
