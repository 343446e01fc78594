//go:build nvidia

package kernel

import (
	"fmt"
	"math"
	"slices"
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
