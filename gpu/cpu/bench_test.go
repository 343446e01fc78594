package cpu

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"sluice/gpu"
	"sluice/kernels/simd"
	"sluice/model"
	"sluice/model/hub"
)

// benchBatch is sequences of random ids, all of one length.
func benchBatch(sequences, length, vocabulary int) *gpu.Batch {
	r := rand.New(rand.NewPCG(7, 7))
	var b gpu.Batch
	b.Reset()
	ids, types := make([]int32, length), make([]int32, length)
	for range sequences {
		for i := range ids {
			ids[i] = int32(r.IntN(vocabulary))
		}
		b.Append(ids, types)
	}
	return &b
}

// cpuTime is what this process has used on all cores: beside other work it
// says more than the clock.
func cpuTime(b *testing.B) time.Duration {
	var usage unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &usage); err != nil {
		b.Fatal(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

// BenchmarkEmbed measures all-MiniLM-L6-v2 on one worker; it wants the model in
// the cache. Beside other work, tokens per CPU second say more.
func BenchmarkEmbed(b *testing.B) {
	cache, err := hub.CacheDir()
	if err != nil {
		b.Fatal(err)
	}
	m, err := model.Load(filepath.Join(cache, "models", "all-minilm-l6-v2"))
	if err != nil {
		b.Skip("the model is not in the cache: ", err)
	}
	for _, kernels := range simd.Supported() {
		for _, p := range []Precision{F32, BF16, Int8} {
			d := newPrecision(m, 1, p, kernels)
			for _, shape := range [][2]int{{1, 16}, {1, 128}, {32, 32}, {16, 128}, {8, 256}} {
				b.Run(fmt.Sprintf("%s/%s/%dx%d", kernels.Level, p, shape[0], shape[1]), func(b *testing.B) {
					benchmarkShape(b, d, shape[0], shape[1])
				})
			}
			d.Close()
		}
	}
}

// BenchmarkFamilies measures four layers of each family at the width of base
// models, on one worker.
func BenchmarkFamilies(b *testing.B) {
	base := model.Config{Hidden: 768, Layers: 4, Heads: 12, Intermediate: 3072, Vocabulary: 1000, Positions: 512}
	for family := range wide {
		m := newWide(family, base)
		for _, p := range []Precision{F32, BF16, Int8} {
			d := newPrecision(m, 1, p, simd.Best())
			for _, shape := range [][2]int{{16, 32}, {8, 128}, {2, 512}} {
				b.Run(fmt.Sprintf("%s/%s/%dx%d", family, p, shape[0], shape[1]), func(b *testing.B) {
					benchmarkShape(b, d, shape[0], shape[1])
				})
			}
			d.Close()
		}
	}
}

func benchmarkShape(b *testing.B, d *Device, sequences, length int) {
	batch := benchBatch(sequences, length, d.config.Vocabulary)
	dst := make([]float32, batch.Len()*d.Dimensions())
	before := cpuTime(b)
	for b.Loop() {
		if err := d.Run(b.Context(), batch, gpu.Output{Pooled: dst}); err != nil {
			b.Fatal(err)
		}
	}
	tokens := float64(batch.Tokens() * b.N)
	b.ReportMetric(tokens/b.Elapsed().Seconds(), "tokens/s")
	b.ReportMetric(tokens/(cpuTime(b)-before).Seconds(), "tokens/CPU-s")
}
