//go:build nvidia

package cuda

import (
	"bytes"
	"context"
	"log/slog"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sluice/gpu"
	"sluice/gpu/cpu"
	"sluice/gpu/cuda/wire"
	"sluice/gpu/golden"
	"sluice/kernels/ref"
	"sluice/model"
)

// What is here runs the real worker, on the emulated device.
const built = "../../bin/sluice-gpu"

func startEmulated(t *testing.T, ordinal int) *worker {
	t.Helper()
	w, err := startWorker(t.Context(), built, ordinal, quiet)
	require.NoError(t, err)
	t.Cleanup(w.end)
	return w
}

func (w *worker) loaded(t *testing.T, name string) (*Device, *model.Model) {
	t.Helper()
	m, err := model.Load(filepath.Join(golden.Dir, name))
	require.NoError(t, err)
	number, err := w.load(t.Context(), filepath.Join(golden.Dir, name), m.Digest)
	require.NoError(t, err)
	return newDevice(w, number, m), m
}

// runAll asks for all that a device has to say of cases.
func runAll(ctx context.Context, d gpu.Device, hidden int, cases ...golden.Case) (gpu.Output, error) {
	b := golden.Batch(cases...)
	out := gpu.Output{
		Pooled: make([]float32, b.Len()*d.Dimensions()), Norms: make([]float32, b.Len()), Tokens: make([]float32, b.Tokens()*hidden),
	}
	if d.Labels() > 0 {
		out.Logits = make([]float32, b.Len()*d.Labels())
	}
	return out, d.Run(ctx, b, out)
}

func requireSame(t *testing.T, want, got gpu.Output, width int) {
	t.Helper()
	for i := 0; i < len(want.Pooled); i += width {
		require.InDelta(t, 1, ref.Dot(want.Pooled[i:i+width], got.Pooled[i:i+width]), 2e-4)
	}
	for i := range want.Norms {
		require.InEpsilon(t, want.Norms[i], got.Norms[i], 2e-2)
	}
	ref.Normalize(want.Tokens)
	ref.Normalize(got.Tokens)
	require.InDelta(t, 1, ref.Dot(want.Tokens, got.Tokens), 2e-4)
	golden.RequireNear(t, want.Logits, got.Logits, 0.3, "logits")
}

// Two workers, each with two models, from several callers at once: what comes
// out is what the CPU says, and the same on both, bit for bit.
func TestTwoWorkers(t *testing.T) {
	t.Setenv("CUDA_EMULATOR_DEVICES", "2")
	var outputs [2][2]gpu.Output
	var all sync.WaitGroup
	for ordinal := range 2 {
		w := startEmulated(t, ordinal)
		for i, name := range []string{"bert", "bert_seqcls_3"} {
			d, m := w.loaded(t, name)
			all.Go(func() {
				var err error
				if outputs[ordinal][i], err = runAll(t.Context(), d, m.Config.Hidden, golden.Cases(t, name)[:3]...); err != nil {
					t.Error(err)
				}
			})
		}
	}
	all.Wait()
	require.Equal(t, outputs[0], outputs[1])
	for i, name := range []string{"bert", "bert_seqcls_3"} {
		m, err := model.Load(filepath.Join(golden.Dir, name))
		require.NoError(t, err)
		plain := cpu.New(m, 1)
		want, err := runAll(t.Context(), plain, m.Config.Hidden, golden.Cases(t, name)[:3]...)
		require.NoError(t, err)
		requireSame(t, want, outputs[0][i], m.Config.Hidden)
		require.NoError(t, plain.Close())
	}
}

// What happens to a device happens to its worker only: the batch fails with a
// reason, and the next worker has the model again.
func TestDevicesThatFail(t *testing.T) {
	for fault, why := range map[string]string{
		"crash": "it ended: signal: killed", "fault": "EccUncorrectable", "nan": errNaN.Error(), "hang": "it hangs, and was killed",
	} {
		t.Run(fault, func(t *testing.T) {
			t.Setenv("CUDA_EMULATOR_FAULT", fault)
			w := startEmulated(t, 0)
			d, m := w.loaded(t, "bert")
			t.Setenv("CUDA_EMULATOR_FAULT", "") // for the next
			sick, patience := w.life, time.Minute
			if fault == "hang" {
				patience = time.Second
			}
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			_, err := runAll(ctx, d, m.Config.Hidden, golden.Cases(t, "bert")[0])
			require.ErrorContains(t, err, why)
			if fault == "nan" {
				_, err = runAll(ctx, d, m.Config.Hidden, golden.Cases(t, "bert")[0])
				require.ErrorIs(t, err, errNaN)
			}
			<-sick.ended
			recovers(t, d)
		})
	}
}

// A batch that the device has no memory for runs in parts, with the same bits;
// one text that it has none for is refused, and no worker ends over it.
func TestDevicesWithLittleMemory(t *testing.T) {
	long := lengths(60, 60, 60, 60, 60, 60, 60, 60)
	run := func(memory string) ([]float32, error, error) {
		t.Setenv("CUDA_EMULATOR_MEMORY", memory)
		w := startEmulated(t, 0)
		d, _ := w.loaded(t, "bert")
		out := gpu.Output{Pooled: make([]float32, 32*long.Len())}
		err := d.Run(t.Context(), long, out)
		return out.Pooled, err, w.life.reason()
	}
	want, err, ended := run("1000000000")
	require.NoError(t, err)
	require.NoError(t, ended)
	got, err, _ := run("700000")
	require.NoError(t, err)
	require.Equal(t, want, got)
	_, err, ended = run("270000")
	require.ErrorContains(t, err, "memory does not suffice")
	require.NoError(t, ended)
}

func TestModelsThatChanged(t *testing.T) {
	w := startEmulated(t, 0)
	_, err := w.load(t.Context(), filepath.Join(golden.Dir, "bert"), "another digest")
	require.ErrorContains(t, err, "has changed since the daemon read it")
	_, err = w.load(t.Context(), "no/such/folder", "")
	var failure wire.Failure
	require.ErrorAs(t, err, &failure)
	require.Equal(t, wire.CodeModel, failure.Code)
}

// The whole way: texts through a scheduler to two devices of a GPU that fails
// once. Callers get an error that says that it may work later; health is red,
// and green again when the next worker is there.
func TestSchedulerSurvivesItsWorker(t *testing.T) {
	t.Setenv("CUDA_EMULATOR_FAULT", "crash")
	t.Setenv("CUDA_EMULATOR_FAULT_AT", "2")
	sick, well := make(chan error, 16), make(chan struct{}, 16)
	started := false
	options := gpu.Options{BatchTokens: 64, Hooks: gpu.Hooks{Health: func(_ string, device int, why error) {
		switch {
		case why != nil:
			sick <- why
		case started && device == 0:
			well <- struct{}{}
		}
	}}}
	s, _, err := Open(t.Context(), built, []int{0}, quiet, options, filepath.Join(golden.Dir, "bert_e2e_wordpiece_cased"))
	require.NoError(t, err)
	defer func() { require.NoError(t, s.Close(context.Background())) }()
	started = true
	require.Equal(t, Precision, s.Info().Precision)
	embed := func() ([]gpu.Embedding, error) {
		return s.Embed(t.Context(), gpu.Request{Texts: []string{"a word"}, Truncation: gpu.Truncation{}})
	}
	first, err := embed()
	require.NoError(t, err)
	t.Setenv("CUDA_EMULATOR_FAULT", "")
	_, err = embed()
	require.ErrorIs(t, err, gpu.ErrDevice)
	require.ErrorIs(t, err, ErrWorker)
	require.ErrorIs(t, <-sick, ErrWorker)
	for s.Health() != nil {
		select {
		case <-well:
		case <-time.After(10 * time.Millisecond): // the other of the two devices
		}
	}
	again, err := embed()
	require.NoError(t, err)
	require.Equal(t, first[0].Vector, again[0].Vector)
}

func TestDevicesAreListed(t *testing.T) {
	t.Setenv("CUDA_EMULATOR_DEVICES", "2")
	devices, err := Devices(t.Context(), built)
	require.NoError(t, err)
	require.Len(t, devices, 2)
	require.Equal(t, wire.Device{
		Ordinal: 1, Name: "emulated device", Memory: 1 << 30, Compute: "9.0", Processors: 2, Kernels: "sm_90a", Driver: "12.0",
	}, devices[1])
	require.True(t, devices[1].Usable())
	t.Setenv("CUDA_EMULATOR_COMPUTE", "75")
	devices, err = Devices(t.Context(), built)
	require.NoError(t, err)
	require.False(t, devices[0].Usable())
	t.Setenv("CUDA_DRIVER_LIBRARY", "/no/such/driver")
	_, err = Devices(t.Context(), built)
	require.ErrorContains(t, err, "no NVIDIA driver")
	_, err = startWorker(t.Context(), built, 0, quiet)
	require.ErrorContains(t, err, "no NVIDIA driver")
}

// The whole way of a choice: trials in processes of their own, of which one
// goes wrong when it has multiplied by the last kernel for the first time.
func TestKernelsAreTried(t *testing.T) {
	m := tinyModel(t)
	const rows = 16
	var log bytes.Buffer
	choose := func() []wire.Tried {
		log.Reset()
		return FastestKernels(t.Context(), built, 0, m.Config, rows, slog.New(slog.NewTextHandler(&log, nil)))
	}
	best := choose()
	require.Len(t, best, 4, "%v\n%s", best, &log)
	require.NotContains(t, log.String(), "WARN")
	w := startEmulated(t, 0)
	plain, _ := w.loaded(t, "bert")
	number, err := w.load(t.Context(), filepath.Join(golden.Dir, "bert"), m.Digest, best...)
	require.NoError(t, err)
	want, err := runAll(t.Context(), plain, m.Config.Hidden, golden.Cases(t, "bert")[:3]...)
	require.NoError(t, err)
	got, err := runAll(t.Context(), newDevice(w, number, m), m.Config.Hidden, golden.Cases(t, "bert")[:3]...)
	require.NoError(t, err)
	require.Equal(t, want, got)
	_, err = w.load(t.Context(), filepath.Join(golden.Dir, "bert"), m.Digest, wire.Tried{Kernel: "gemm_9", Rows: 16})
	require.ErrorContains(t, err, `there is no "gemm_9" for this device`)
	for fault, why := range map[string]string{"fault": "EccUncorrectable", "nan": "it gives other bits than gemm_4"} {
		t.Run(fault, func(t *testing.T) {
			t.Setenv("CUDA_EMULATOR_FAULT", fault)
			t.Setenv("CUDA_EMULATOR_FAULT_AT", "3") // gemm_4, gemm_3, gemm_5
			best := choose()
			require.Contains(t, log.String(), "kernel=gemm_5")
			require.Contains(t, log.String(), why)
			for _, b := range best {
				require.NotEqual(t, "gemm_5", b.Kernel)
			}
		})
	}
}
