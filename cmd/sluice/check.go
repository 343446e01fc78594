package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"sluice/index/local"
	"sluice/store"
	"sluice/store/pebble"
)

type checkCommand struct {
	Data string `arg:"" help:"Data directory of a daemon that is not running."`
}

func (c checkCommand) Run(ctx context.Context) error {
	faults := 0
	report := func(fault string) {
		faults++
		fmt.Println(fault)
	}
	if err := errors.Join(checkStore(ctx, c.Data, report), checkIndexes(c.Data, report)); err != nil {
		return err
	}
	if faults > 0 {
		return fmt.Errorf("%d faults; faults of the index are mended by removing %s, those of the store by restoring a backup", faults, indexDir(c.Data))
	}
	fmt.Println("no faults")
	return nil
}

func checkStore(ctx context.Context, data string, report func(string)) error {
	st, err := pebble.Open(storeDir(data), pebble.Options{ReadOnly: true})
	if err != nil {
		return err
	}
	err = st.Check(ctx, func(f store.Fault) { report("store: " + f.Where + ": " + f.What) })
	return errors.Join(err, st.Close())
}

func checkIndexes(data string, report func(string)) error {
	entries, err := os.ReadDir(indexDir(data))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, entry := range entries {
		dir := filepath.Join(indexDir(data), entry.Name())
		if _, err := local.Check(dir, nil); err != nil {
			report("index: " + err.Error())
		}
	}
	return nil
}
