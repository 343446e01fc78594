package cuda

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"time"

	"sluice/gpu/cuda/wire"
	"sluice/model"
)

// trialTime is for one process that tries kernels; those that hang take it all.
const trialTime = 30 * time.Second

// mostTrials bounds the processes: each after the first leaves one kernel more out.
const mostTrials = 4

// rowsTried are those of a query, of small batches and of the largest.
func rowsTried(largest int) (rows []int) {
	for _, n := range []int{16, 128, 1024} {
		if n < largest {
			rows = append(rows, n)
		}
	}
	return append(rows, largest)
}

// FastestKernels has the program at path try the kernels of a device for the
// products of a model, with batches of so many tokens at most, and returns the
// fastest for each product and number of rows. Each trial is a process of its own,
// so that a kernel that faults or hangs costs nothing but its own place. The log
// has who is out and why, and who is chosen; nil: nothing is known, and
// the worker decides.
func FastestKernels(ctx context.Context, path string, ordinal int, c model.Config, tokens int, log *slog.Logger) []wire.Tried {
	return trier{path, ordinal, trialTime, log}.choose(ctx, wire.Trial{Config: c, Rows: rowsTried(tokens)})
}

// trier starts trials.
type trier struct {
	path    string
	ordinal int
	time    time.Duration
	log     *slog.Logger
}

func (t trier) choose(ctx context.Context, trial wire.Trial) []wire.Tried {
	for range mostTrials {
		told, err := t.try(ctx, trial)
		culprit := suspect(told)
		switch {
		case err == nil:
			best := fastest(told)
			t.report(told, best)
			return best
		case culprit == "" || slices.Contains(trial.Without, culprit):
			t.log.Warn("kernels for products are not tried", "why", err)
			return nil
		}
		t.log.Warn("a kernel for products is not used", "kernel", culprit, "why", err)
		trial.Without = append(trial.Without, culprit)
	}
	return nil
}

// try is one process. What it told is returned with an error too.
func (t trier) try(ctx context.Context, trial wire.Trial) (told []wire.Tried, err error) {
	question, err := json.Marshal(trial)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, t.time)
	defer cancel()
	says := &said{log: t.log}
	command := exec.CommandContext(ctx, t.path, "try", strconv.Itoa(t.ordinal))
	command.Stdin, command.Stderr = bytes.NewReader(question), says
	answer, err := command.Output()
	if err != nil {
		err = fmt.Errorf("the process that tries it ended: %w%s", errors.Join(err, ctx.Err()), says.suffix())
	}
	for lines := json.NewDecoder(bytes.NewReader(answer)); ; {
		var line wire.Tried
		if wrong := lines.Decode(&line); wrong != nil {
			if !errors.Is(wrong, io.EOF) && err == nil {
				err = fmt.Errorf("%s try: %w", t.path, wrong)
			}
			return told, err
		}
		told = append(told, line)
	}
}

// suspect is the kernel that was started last.
func suspect(told []wire.Tried) string {
	if len(told) == 0 {
		return ""
	}
	return told[len(told)-1].Kernel
}

// fastest is the kernel that takes the least for each product and number of
// rows, the plainer of equals, without those that are out.
func fastest(told []wire.Tried) (best []wire.Tried) {
	for _, t := range told {
		out := slices.ContainsFunc(told, func(o wire.Tried) bool { return o.Kernel == t.Kernel && o.Why != "" })
		if out || t.Seconds <= 0 {
			continue
		}
		at := slices.IndexFunc(best, func(b wire.Tried) bool { return b.Product == t.Product && b.Rows == t.Rows })
		if at < 0 {
			best = append(best, t)
		} else if t.Seconds < best[at].Seconds {
			best[at] = t
		}
	}
	return best
}

func (t trier) report(told, best []wire.Tried) {
	for _, line := range told {
		if line.Why != "" {
			t.log.Warn("a kernel for products is not used", "kernel", line.Kernel, "why", line.Why)
		}
	}
	t.log.Info("kernels for products are chosen", "by_rows", strings.Join(Kernels(best), "; "))
}

// Kernels are what FastestKernels chose, a line for each product with the rows of
// each kernel, as in "384 × 1536 gelu: 16 gemm_4, 128 gemm_4, 1024 gemm_5".
func Kernels(best []wire.Tried) (lines []string) {
	for i, b := range best {
		of := fmt.Sprintf("%d %s", b.Rows, b.Kernel)
		if i > 0 && best[i-1].Product == b.Product {
			lines[len(lines)-1] += ", " + of
		} else {
			lines = append(lines, b.Name()+": "+of)
		}
	}
	return lines
}
