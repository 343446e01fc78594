package bench

import (
	"context"
	"fmt"

	"sluice/bench/load"
)

// rampShares are of the greatest throughput of the closed loops, in percent.
var rampShares = []int{10, 20, 30, 40, 50, 60, 70, 80, 90, 100, 110}

// answeredShare of the requests that are due must be answered in time for a
// rate to count as sustained.
const answeredShare = .95

// step is one rate of a ramp.
type step struct {
	name    string
	offered float64 // requests a second
	turns   []served
}

// rate is the requests answered a second, all rounds together.
func (s step) rate() (r float64) {
	seconds, answered := 0.0, 0
	for _, t := range s.turns {
		seconds, answered = seconds+t.Elapsed.Seconds(), answered+t.Latency.Count()
	}
	return float64(answered) / seconds
}

// power is Kleinrock's: throughput over mean latency. It is greatest at the
// knee, beyond which waiting grows faster than throughput.
func (s step) power() float64 {
	return s.rate() / max(merged(s.turns, latencyOf).Mean().Seconds(), 1e-9)
}

// ramp measures a service at rising rates, up to more than it can bear, round by
// round.
func (m *serveRun) ramp(ctx context.Context, name string, most float64, s Service) error {
	steps := make([]step, len(rampShares))
	for round := range m.Rounds {
		for i, share := range rampShares {
			steps[i].name, steps[i].offered = fmt.Sprintf("%s.ramp%d", name, share), most*float64(share)/100
			t, err := s.strain(ctx, load.Options{
				Connections: openConnections, Rate: steps[i].offered, Seed: uint64(round), Duration: m.Turn, Warmup: m.Warmup,
			})
			if err != nil {
				return err
			}
			steps[i].turns = append(steps[i].turns, t)
		}
	}
	m.reportRamp(name, steps)
	return nil
}

func (m *serveRun) reportRamp(name string, steps []step) {
	knee := steps[0]
	for _, s := range steps {
		m.report(s.name, s.turns)
		failed := 0
		for _, t := range s.turns {
			failed += t.Failures
		}
		m.Figures[s.name+".offered_per_s"] = s.offered
		m.Figures[s.name+".failed_share"] = float64(failed) / float64(failed+merged(s.turns, latencyOf).Count())
		if s.rate() >= answeredShare*s.offered {
			m.Figures[name+".sustained_per_s"] = s.offered
		}
		if s.power() > knee.power() {
			knee = s
		}
	}
	m.report(name+".knee", knee.turns)
	fmt.Fprintf(m.log, "%s: the knee is at %.0f requests/s, p99 %.2f ms\n", name, knee.rate(), m.Figures[name+".knee.p99_ms"])
}
