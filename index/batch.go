package index

import (
	"fmt"
	"math"
	"slices"
)

// Check returns the ordinals that the batch touches, ascending. ErrInvalid: one
// is given twice, rows are out of order, or a vector is not one of CheckVector.
func (b Batch) Check(dims int) ([]uint32, error) {
	touched := slices.Clone(b.Delete)
	for _, d := range b.Put {
		touched = append(touched, d.Ordinal)
		if err := d.check(dims); err != nil {
			return nil, fmt.Errorf("document %d: %w", d.Ordinal, err)
		}
	}
	slices.Sort(touched)
	for i := 1; i < len(touched); i++ {
		if touched[i-1] == touched[i] {
			return nil, fmt.Errorf("document %d is given twice: %w", touched[i], ErrInvalid)
		}
	}
	return touched, nil
}

func (d Document) check(dims int) error {
	for i, r := range d.Rows {
		if i > 0 && r.Row <= d.Rows[i-1].Row {
			return fmt.Errorf("row %d after row %d: %w", r.Row, d.Rows[i-1].Row, ErrInvalid)
		}
		if err := CheckVector(r.Vector, dims); err != nil {
			return fmt.Errorf("row %d: %w", r.Row, err)
		}
	}
	return nil
}

// CheckVector refuses vectors of other dimensions, and those with NaN, Inf or
// a length with which an inner product could overflow: ErrInvalid.
func CheckVector(v []float32, dims int) error {
	if len(v) != dims {
		return fmt.Errorf("vector has %d dimensions, the index has %d: %w", len(v), dims, ErrInvalid)
	}
	var square float64
	for _, x := range v {
		square += float64(x) * float64(x)
	}
	if !(square <= math.MaxFloat32/16) { // NaN too
		return fmt.Errorf("vector is not finite: %w", ErrInvalid)
	}
	return nil
}
