//go:build nvidia

package measure

import (
	"bytes"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sluice/gpu/cuda/worker"
)

// The measurements run, whatever they give on an emulated device.
func TestRun(t *testing.T) {
	d, err := worker.Open(0)
	require.NoError(t, err)
	defer func() { require.NoError(t, d.Close()) }()
	tiny := Shape{"tiny", 64, 1, 2, 128, 50}
	var out bytes.Buffer
	figures, err := Run(d, "../../../bin/sluice-gpu", Sizes{Tokens: 128, Vectors: 200, Pairs: 2, Passages: 2, Shapes: []Shape{tiny}, Time: time.Millisecond, Repeats: 1}, &out)
	require.NoError(t, err)
	for _, name := range []string{
		"gemm.tiny.qkv.tflops", "gemm.tiny.down.gemm_5.tflops", "attention.32.tflops", "attention.64.gb_per_s", "layernorm.gb_per_s", "embed.gb_per_s", "search_f16.64.ms",
		"search_i8.1.ms", "scan.8.gb_per_s",
		"tiny.query.p50_ms", "tiny.rerank2x180.p95_ms", "tiny.tokens_per_s", "tiny.tflops", "tiny.least_cosine",
		"gemm.tiny.64x192.rows16.served_by", "gemm.tiny.128x64.rows128.us", "tiny.query.device_ms", "tiny.query.queued_ms", "tiny.query.launch_gap_share",
		"worker.search.few.p50_ms", "cpu.search.rows_per_s", "even.search.rows", "worker.maxsim.few.p50_ms", "cpu.maxsim.passages_per_s",
		"worker.search.vectors", "worker.search.hold_gb_per_s", "worker.search.1.p50_ms", "worker.search.64.queries_per_s", "worker.maxsim.2x128.p95_ms",
	} {
		require.Contains(t, figures, name)
		require.Contains(t, out.String(), name)
		require.False(t, math.IsNaN(figures[name]) || math.IsInf(figures[name], 0), name)
	}
	require.InDelta(t, 2*(4*64*64+2*64*128)*10+4*10*10*64, tiny.flops(10), 1e-6)
}
