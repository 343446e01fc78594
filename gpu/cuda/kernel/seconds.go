//go:build nvidia

package kernel

import "gorgonia.org/cu"

// Seconds is how long the device takes for what do queues in a stream, by events.
func Seconds(in cu.Stream, do func() error) (seconds float64, err error) {
	begin, err := cu.MakeEvent(cu.DefaultEvent)
	if err != nil {
		return 0, err
	}
	defer cu.DestroyEvent(&begin)
	end, err := cu.MakeEvent(cu.DefaultEvent)
	if err != nil {
		return 0, err
	}
	defer cu.DestroyEvent(&end)
	for _, step := range []func() error{func() error { return begin.Record(in) }, do, func() error { return end.Record(in) }, end.Synchronize} {
		if err := step(); err != nil {
			return 0, err
		}
	}
	ms, err := begin.Elapsed(end)
	return ms / 1000, err
}
