//go:build nvidia

package kernel

import (
	"fmt"
	"math"
	"slices"

	"gorgonia.org/cu"
)

// Pick names a kernel for a product of about so many rows.
type Pick struct {
	Rows   int
	Kernel string
}

// Choice is which kernel multiplies how many rows; nil: what the device's
// capability suggests.
type Choice []chosen

type chosen struct {
	upTo    int
	variant Variant
}

// Choose makes a Choice of picks that ascend in rows: the pick counts whose rows
// are the nearest in proportion.
func (s *Set) Choose(picks []Pick) (c Choice, err error) {
	for i, p := range picks {
		at := slices.IndexFunc(s.variants, func(v Variant) bool { return v.Name == p.Kernel })
		if at < 0 {
			return nil, fmt.Errorf("kernel: there is no %q for this device", p.Kernel)
		}
		upTo := math.MaxInt
		if i+1 < len(picks) {
			upTo = int(math.Sqrt(float64(p.Rows) * float64(picks[i+1].Rows)))
		}
		c = append(c, chosen{upTo, s.variants[at]})
	}
	return c, nil
}

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
