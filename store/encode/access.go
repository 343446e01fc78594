package encode

import (
	"bytes"
	"encoding/binary"
	"maps"
	"slices"

	"sluice/filter"
)

// SameAccess reports normal access rows that are equal.
func SameAccess(a, b filter.Access) bool {
	return bytes.Equal(AppendAccess(nil, a), AppendAccess(nil, b))
}

// AppendAccess encodes a normal access row; equal rows have equal bytes.
func AppendAccess(b []byte, a filter.Access) []byte {
	b = AppendBool(b, a.Readers.Undeclared)
	b = AppendStrings(b, a.Readers.List)
	b = binary.AppendUvarint(b, uint64(len(a.Attributes)))
	for _, name := range slices.Sorted(maps.Keys(a.Attributes)) {
		b = appendAttribute(AppendString(b, name), a.Attributes[name])
	}
	b = AppendStrings(b, a.Applicability.Regions)
	b = AppendTime(b, a.Applicability.ValidFrom)
	return AppendTime(b, a.Applicability.ValidUntil)
}

// Access reads an access row.
func (d *Decoder) Access() filter.Access {
	return filter.Access{
		Readers:    filter.Readers{Undeclared: d.Bool(), List: Strings[filter.Reader](d)},
		Attributes: d.attributes(),
		Applicability: filter.Applicability{
			Regions:    Strings[string](d),
			ValidFrom:  d.Time(),
			ValidUntil: d.Time(),
		},
	}
}

func (d *Decoder) attributes() filter.Attributes {
	n := d.Length()
	if n == 0 {
		return nil
	}
	attributes := make(filter.Attributes, n)
	for range n {
		name := d.Text()
		attributes[name] = d.attribute()
	}
	return attributes
}

// Types of attribute values.
const (
	attributeString = 's'
	attributeBool   = 'b'
	attributeInt    = 'i'
	attributeSet    = 'l'
)

func appendAttribute(b []byte, value any) []byte {
	switch value := value.(type) {
	case string:
		return AppendString(append(b, attributeString), value)
	case bool:
		return AppendBool(append(b, attributeBool), value)
	case int64:
		return binary.AppendVarint(append(b, attributeInt), value)
	default: // NormalAccess lets nothing else through
		return AppendStrings(append(b, attributeSet), value.([]string))
	}
}

func (d *Decoder) attribute() any {
	switch d.Bytes(1)[0] {
	case attributeString:
		return d.Text()
	case attributeBool:
		return d.Bool()
	case attributeInt:
		return d.Varint()
	case attributeSet:
		return Strings[string](d)
	}
	d.Fail("an attribute has an unknown type")
	return nil
}
