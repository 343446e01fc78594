package bench

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sluice/bench/load"
)

// turnOf is a turn in which so many requests of a latency were answered in a second.
func turnOf(n int, latency time.Duration, failed int) served {
	h := load.NewHistogram()
	for range n {
		h.Record(latency)
	}
	return served{Result: load.Result{Latency: h, Late: load.NewHistogram(), Sent: n, Failures: failed, Elapsed: time.Second, Stages: &load.Stages{}}}
}

// Throughput follows the rate until the service is full; latency has grown before.
func TestRamp(t *testing.T) {
	var log strings.Builder
	m := &serveRun{recorder: newRecorder(t.Context(), &log)}
	m.reportRamp("s.x", []step{
		{"s.x.ramp10", 100, []served{turnOf(100, 10*time.Millisecond, 0)}},
		{"s.x.ramp50", 500, []served{turnOf(500, 15*time.Millisecond, 0)}},
		{"s.x.ramp90", 900, []served{turnOf(890, 60*time.Millisecond, 0)}},
		{"s.x.ramp110", 1100, []served{turnOf(900, 600*time.Millisecond, 100)}},
	})
	require.Equal(t, 500.0, m.Figures["s.x.knee.requests_per_s"])
	require.InEpsilon(t, 15, m.Figures["s.x.knee.p99_ms"], .001)
	require.Equal(t, 900.0, m.Figures["s.x.sustained_per_s"])
	require.Equal(t, .1, m.Figures["s.x.ramp110.failed_share"])
	require.Equal(t, 1100.0, m.Figures["s.x.ramp110.offered_per_s"])
	require.Contains(t, log.String(), "the knee is at 500 requests/s")
}
