package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/schollz/progressbar/v3"

	"sluice/model/hub"
)

type modelCommand struct {
	Pull pullCommand `cmd:"" help:"Fetch a model, verify it, and keep it under $SLUICE_CACHE (default ~/.cache/sluice)."`
}

type pullCommand struct {
	Name string `arg:"" help:"A known model, for example all-minilm-l6-v2, or owner/name or owner/name@revision on the Hugging Face hub, which is trusted on first use."`
}

func (c pullCommand) Run(ctx context.Context) error {
	dir, err := pull(ctx, c.Name)
	if err != nil {
		return err
	}
	fmt.Println(dir)
	return nil
}

// pull fetches a model by name with a progress bar on standard error.
func pull(ctx context.Context, name string) (dir string, err error) {
	var bar *progressbar.ProgressBar
	dir, err = hub.Pull(ctx, name, hub.Options{Progress: func(p hub.Progress) {
		if bar == nil {
			bar = byteProgress(p.Total, "fetching "+name)
		}
		bar.Set64(p.Done)
	}})
	if bar != nil {
		bar.Finish()
	}
	return dir, err
}

// modelDir is the folder of a model given as a name or as a folder.
func modelDir(ctx context.Context, model string) (string, error) {
	if info, err := os.Stat(model); err == nil && info.IsDir() {
		return filepath.Clean(model), nil
	}
	return pull(ctx, model)
}
