package load

import "time"

// stretches is how many a load is cut into.
const stretches = 50

// Stretch is what was due in a part of a load, and answered.
type Stretch struct {
	Requests int
	Sum, Max time.Duration // of the latencies
}

// series is the stretches of a load.
type series struct {
	width time.Duration
	parts []Stretch
}

func newSeries(duration time.Duration) series {
	return series{max(duration/stretches, 1), make([]Stretch, stretches)}
}

func (s series) add(at, latency time.Duration) {
	p := &s.parts[min(int(at/s.width), stretches-1)]
	p.Requests++
	p.Sum += latency
	p.Max = max(p.Max, latency)
}

func (s series) merge(other series) {
	for i, p := range other.parts {
		s.parts[i].Requests += p.Requests
		s.parts[i].Sum += p.Sum
		s.parts[i].Max = max(s.parts[i].Max, p.Max)
	}
}
