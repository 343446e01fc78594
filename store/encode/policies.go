package encode

import (
	"encoding/binary"
	"maps"
	"slices"

	"sluice/store"
)

// Policies encodes policies; equal ones have equal bytes.
func Policies(p store.PolicySource) []byte {
	b := AppendString(nil, p.Schema)
	b = binary.AppendUvarint(b, uint64(len(p.Policies)))
	for _, file := range slices.Sorted(maps.Keys(p.Policies)) {
		b = AppendString(AppendString(b, file), p.Policies[file])
	}
	return b
}

// DecodePolicies reads what Policies wrote.
func DecodePolicies(body []byte) (store.PolicySource, error) {
	d := Decoder{Body: body}
	p := store.PolicySource{Schema: d.Text()}
	n := d.Length()
	if n > 0 {
		p.Policies = make(map[string]string, n)
	}
	for range n {
		file := d.Text()
		p.Policies[file] = d.Text()
	}
	return p, d.End()
}
