package cuda

import (
	"bytes"
	"cmp"
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

// silence is what a process that tries kernels is killed after, once it has begun:
// it tells of every start of one, which take microseconds.
const silence = 30 * time.Second

var errSilent = errors.New("it says nothing any more")

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
// products of a model, with batches of so many tokens at most (0: those of Open),
// and returns the fastest for each product and number of rows. Each trial is a
// process of its own, so that a kernel that faults or hangs costs nothing but its
// place. The log has who is out and why, and who is chosen; nil: nothing is known,
// and the worker decides.
func FastestKernels(ctx context.Context, path string, ordinal int, c model.Config, tokens int, log *slog.Logger) []wire.Tried {
	return trier{path, ordinal, silence, log}.choose(ctx, wire.Trial{Config: c, Rows: rowsTried(cmp.Or(tokens, batchTokens))})
}

// trier starts trials.
type trier struct {
	path     string
	ordinal  int
	patience time.Duration
	log      *slog.Logger
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
		case ctx.Err() != nil || culprit == "" || slices.Contains(trial.Without, culprit):
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
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	says := &said{log: t.log}
	command := exec.CommandContext(ctx, t.path, "try", strconv.Itoa(t.ordinal))
	command.Stdin, command.Stderr = bytes.NewReader(question), says
	told, err = t.run(command, cancel)
	if why := context.Cause(ctx); why != nil {
		err = why // not that it was killed for it
	}
	if err != nil {
		return told, fmt.Errorf("the process that tries it ended: %w%s", err, says.suffix())
	}
	return told, nil
}

// run starts a process and listens until it ends. One that is silent, or is not
// understood, is cancelled.
func (t trier) run(command *exec.Cmd, cancel context.CancelCauseFunc) ([]wire.Tried, error) {
	answer, err := command.StdoutPipe()
	if err == nil {
		err = command.Start()
	}
	if err != nil {
		return nil, err
	}
	alarm := time.AfterFunc(startTime, func() { cancel(errSilent) })
	defer alarm.Stop()
	told, err := listen(answer, func() { alarm.Reset(t.patience) })
	if err != nil {
		cancel(err)
	}
	return told, command.Wait()
}

// listen takes what is told until there is no more.
func listen(answer io.Reader, heard func()) (told []wire.Tried, err error) {
	for lines := json.NewDecoder(answer); ; heard() {
		var line wire.Tried
		if err := lines.Decode(&line); err != nil {
			if errors.Is(err, io.EOF) {
				err = nil
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
