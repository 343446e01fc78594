package cuda

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"sluice/gpu"
	"sluice/gpu/cuda/wire"
	"sluice/model"
	"sluice/model/tokenizer"
)

// program is the worker's name.
const program = "sluice-gpu"

// ErrNoWorker is returned where the worker's program is not installed.
var ErrNoWorker = fmt.Errorf("%s is neither beside sluice nor in PATH: build it with make gpu", program)

// Program finds the worker's program: beside this one, or in PATH.
func Program() (string, error) {
	if own, err := os.Executable(); err == nil {
		beside := filepath.Join(filepath.Dir(own), program)
		if info, err := os.Stat(beside); err == nil && !info.IsDir() {
			return beside, nil
		}
	}
	if found, err := exec.LookPath(program); err == nil {
		return found, nil
	}
	return "", ErrNoWorker
}

// Devices asks the worker's program which devices there are. An error says why
// there are none.
func Devices(ctx context.Context, path string) ([]wire.Device, error) {
	ctx, cancel := context.WithTimeout(ctx, listTime)
	defer cancel()
	command := exec.CommandContext(ctx, path, "list")
	out, err := command.Output()
	var exit *exec.ExitError
	if errors.As(err, &exit) && len(exit.Stderr) > 0 {
		return nil, errors.New(strings.TrimSpace(string(exit.Stderr)))
	}
	if err != nil {
		return nil, fmt.Errorf("asking %s for devices: %w", path, err)
	}
	var devices []wire.Device
	if err := json.Unmarshal(out, &devices); err != nil {
		return nil, fmt.Errorf("%s list: %w", path, err)
	}
	return devices, nil
}

const listTime = time.Minute // a driver without its daemon takes seconds to start

// ParseOrdinals reads what follows "cuda:" in a setting, as in "0,1".
func ParseOrdinals(list string) (ordinals []int, err error) {
	seen := map[int]bool{}
	for _, text := range strings.Split(list, ",") {
		n, err := strconv.Atoi(text)
		if err != nil || n < 0 || n > 255 || seen[n] {
			return nil, fmt.Errorf("%q is no list of devices, as in 0,1", list)
		}
		seen[n] = true
		ordinals = append(ordinals, n)
	}
	return ordinals, nil
}

// batches under way on one device at once: while one computes, another is copied.
const batches = 2

// What suits a device: long batches, and not much time for one.
const (
	batchTokens = 16 << 10
	queueTokens = 1 << 20
	batchTime   = 10 * time.Second
)

// Open is gpu.Open on the devices of those numbers, each with a worker of the
// program at path, and what searches on them until the Scheduler is closed. ctx
// bounds the start.
func Open(ctx context.Context, path string, ordinals []int, log *slog.Logger, o gpu.Options, dirs ...string) (*gpu.Scheduler, *Searcher, error) {
	o.BatchTokens, o.QueueTokens, o.BatchTime = cmp.Or(o.BatchTokens, batchTokens), cmp.Or(o.QueueTokens, queueTokens), cmp.Or(o.BatchTime, batchTime)
	workers, err := startAll(ctx, path, ordinals, log)
	if err != nil {
		return nil, nil, err
	}
	s, err := gpu.Open(func(m *model.Model, _ *tokenizer.Tokenizer) ([]gpu.Device, error) {
		return load(ctx, workers, m, o.BatchTokens)
	}, o, dirs...)
	if err != nil {
		endAll(workers)
		return nil, nil, err
	}
	return s, &Searcher{workers: workers}, nil
}

func startAll(ctx context.Context, path string, ordinals []int, log *slog.Logger) (workers []*worker, err error) {
	for _, n := range ordinals {
		w, err := startWorker(ctx, path, n, log)
		if err != nil {
			endAll(workers)
			return nil, fmt.Errorf("GPU %d: %w", n, err)
		}
		workers = append(workers, w)
	}
	return workers, nil
}

func endAll(workers []*worker) {
	for _, w := range workers {
		w.end()
	}
}

// load puts a model on every worker, with the kernels that are the fastest for
// batches of so many tokens at most. What comes out is in rounds of the workers,
// so that the scheduler's processors are spread over them.
func load(ctx context.Context, workers []*worker, m *model.Model, tokens int) (devices []gpu.Device, err error) {
	kernels := chooseAll(ctx, workers, m, tokens)
	numbers := make([]int, len(workers))
	for i, w := range workers {
		if numbers[i], err = w.load(ctx, filepath.Dir(m.Tokenizer), m.Digest, kernels[i]...); err != nil {
			return nil, fmt.Errorf("GPU %d: %w", w.ordinal, err)
		}
	}
	for range batches {
		for i, w := range workers {
			devices = append(devices, newDevice(w, numbers[i], m))
		}
	}
	return devices, nil
}

// chooseAll asks all devices at once.
func chooseAll(ctx context.Context, workers []*worker, m *model.Model, tokens int) [][]wire.Tried {
	kernels := make([][]wire.Tried, len(workers))
	var all sync.WaitGroup
	for i, w := range workers {
		all.Go(func() {
			kernels[i] = FastestKernels(ctx, w.path, w.ordinal, m.Config, tokens, w.log.With("model", m.Name))
		})
	}
	all.Wait()
	return kernels
}
