package cuda

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sluice/gpu/cuda/wire"
	"sluice/model"
)

// fakeTrial has three kernels, of which plain suits few rows, wide many and
// mapped most. What it is told is which of them does what wrong, as in "mapped dies".
func fakeTrial(told string) error {
	var trial wire.Trial
	if err := json.NewDecoder(os.Stdin).Decode(&trial); err != nil {
		return err
	}
	culprit, does, _ := strings.Cut(told, " ")
	if culprit == "everything" {
		fmt.Println("nonsense")
		return nil
	}
	out := json.NewEncoder(os.Stdout)
	for _, rows := range trial.Rows {
		for kernel, seconds := range map[string]float64{"plain": float64(rows), "wide": 100 + float64(rows)/2, "mapped": 1000 + float64(rows)/4} {
			if slices.Contains(trial.Without, kernel) {
				continue
			}
			line := wire.Tried{Kernel: kernel}
			if err := out.Encode(line); err != nil {
				return err
			}
			switch {
			case kernel == culprit && does == "dies":
				return fmt.Errorf("CUDA error 700: an illegal memory access")
			case kernel == culprit && does == "hangs":
				time.Sleep(time.Hour)
			case kernel == culprit && does == "differs" && rows > 10000:
				line.Why = "it gives other bits than plain"
			default:
				line.Seconds = seconds
			}
			line.Product, line.Rows = wire.Product{In: trial.Config.Hidden, Out: 8, Activation: model.ReLU}, rows
			if err := out.Encode(line); err != nil {
				return err
			}
		}
	}
	return nil
}

// chosenBy is what comes of fakes, and what the log says.
func chosenBy(ctx context.Context, t *testing.T, told string, patience time.Duration) (lines, log string) {
	t.Helper()
	t.Setenv(behaviour, told)
	var said bytes.Buffer
	trier := trier{os.Args[0], 3, patience, slog.New(slog.NewTextHandler(&said, nil))}
	best := trier.choose(ctx, wire.Trial{Config: model.Config{Hidden: 8}, Rows: rowsTried(16 << 10)})
	return strings.Join(Kernels(best), "; "), said.String()
}

func TestKernelsAreChosen(t *testing.T) {
	require.Equal(t, []int{16, 128, 1024, 4000}, rowsTried(4000))
	require.Equal(t, []int{16}, rowsTried(16))
	lines, log := chosenBy(t.Context(), t, "", time.Minute)
	require.Equal(t, "8 × 8 relu: 16 plain, 128 plain, 1024 wide, 16384 mapped", lines)
	require.Contains(t, log, "16384 mapped")
	require.NotContains(t, log, "WARN")
}

// A kernel that is wrong, faults or hangs is out, also where it was fast and
// right, and the others race without it.
func TestKernelsThatFailAreNotChosen(t *testing.T) {
	const withoutMapped = "8 × 8 relu: 16 plain, 128 plain, 1024 wide, 16384 wide"
	for told, want := range map[string]struct{ lines, why string }{
		"mapped differs":     {withoutMapped, "kernel=mapped why=\"it gives other bits than plain\""},
		"wide differs":       {"8 × 8 relu: 16 plain, 128 plain, 1024 plain, 16384 mapped", "kernel=wide"},
		"mapped dies":        {withoutMapped, "kernel=mapped why=\"the process that tries it ended: exit status 1: fake worker: CUDA error 700: an illegal memory access\""},
		"plain dies":         {"8 × 8 relu: 16 wide, 128 wide, 1024 wide, 16384 mapped", "kernel=plain"},
		"everything is text": {"", "kernels for products are not tried\" why=\"the process that tries it ended: invalid character"},
	} {
		t.Run(told, func(t *testing.T) {
			lines, log := chosenBy(t.Context(), t, told, time.Minute)
			require.Equal(t, want.lines, lines)
			require.Contains(t, log, want.why)
		})
	}
	t.Run("mapped hangs", func(t *testing.T) {
		lines, log := chosenBy(t.Context(), t, "mapped hangs", 2*time.Second)
		require.Equal(t, withoutMapped, lines)
		require.Contains(t, log, "kernel=mapped")
		require.Contains(t, log, errSilent.Error())
	})
}

// A daemon that is stopped meanwhile blames no kernel.
func TestTrialsThatAreCutOff(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	lines, log := chosenBy(ctx, t, "mapped hangs", time.Hour)
	require.Empty(t, lines)
	require.NotContains(t, log, "is not used")
	require.Contains(t, log, context.DeadlineExceeded.Error())
}

func TestKernelsWithoutProgram(t *testing.T) {
	require.Nil(t, FastestKernels(t.Context(), "/no/such/program", 0, model.Config{}, 64, quiet))
}

// What is chosen is said to the worker with the model, and to each that follows.
func TestChosenKernelsReachWorkers(t *testing.T) {
	t.Setenv(behaviour, "wants kernels")
	w, err := startWorker(t.Context(), os.Args[0], 0, quiet)
	require.NoError(t, err)
	devices, err := load(t.Context(), []*worker{w}, tinyModel(t), 64)
	require.NoError(t, err)
	d := devices[0].(*Device)
	defer d.Close()
	defer devices[1].Close()
	l, _ := w.present()
	l.end(errNaN)
	<-l.ended
	recovers(t, d)
	_, err = w.load(t.Context(), "dir", "digest")
	require.ErrorContains(t, err, "too wide", "a model without")
}
