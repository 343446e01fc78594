package client

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
)

// Matrix is rows of Columns numbers each, laid end to end. On the wire it is a
// list of rows; each is a list of numbers or (Base64) its little-endian float32
// bytes.
type Matrix struct {
	Values  []float32
	Columns int
	Base64  bool
}

// Rows is how many there are.
func (m Matrix) Rows() int {
	if m.Columns < 1 {
		return 0
	}
	return len(m.Values) / m.Columns
}

// IsZero is true of what is left out.
func (m Matrix) IsZero() bool { return m.Values == nil }

// MarshalJSON writes the form that Base64 names.
func (m Matrix) MarshalJSON() ([]byte, error) {
	rows := make([]Vector, m.Rows())
	for i := range rows {
		rows[i] = Vector{m.Values[i*m.Columns : (i+1)*m.Columns], m.Base64}
	}
	return json.Marshal(rows)
}

// UnmarshalJSON reads either form of each row.
func (m *Matrix) UnmarshalJSON(data []byte) error {
	*m = Matrix{}
	decoder := json.NewDecoder(bytes.NewReader(data))
	switch open, err := decoder.Token(); {
	case err != nil:
		return err
	case open == nil: // null: none
		return nil
	case open != json.Delim('['):
		return errors.New("a list of vectors is expected")
	}
	m.Values = []float32{}
	for row := (Vector{}); decoder.More(); {
		if err := decoder.Decode(&row); err != nil {
			return err
		}
		if m.Columns == 0 {
			m.Columns = len(row.Values)
		}
		if len(row.Values) != m.Columns || m.Columns == 0 {
			return fmt.Errorf("vector %d has %d numbers; the first has %d", m.Rows()+1, len(row.Values), m.Columns)
		}
		m.Values, m.Base64 = append(m.Values, row.Values...), row.Base64
	}
	return nil
}
