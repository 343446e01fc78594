package encode

import (
	"encoding/binary"

	"sluice/store"
)

// Generations encodes the generations of a collection; equal ones have equal bytes.
func Generations(all []store.Generation) []byte {
	b := binary.AppendUvarint(nil, uint64(len(all)))
	for _, g := range all {
		b = append(binary.AppendUvarint(b, uint64(g.ID)), byte(g.Role))
		b = AppendString(AppendString(b, g.Chunker), g.Model)
		b = AppendTime(AppendString(b, string(g.Job)), g.Created)
	}
	return b
}

// DecodeGenerations reads what Generations wrote.
func DecodeGenerations(body []byte) ([]store.Generation, error) {
	d := Decoder{Body: body}
	all := make([]store.Generation, d.Length())
	for i := range all {
		all[i] = store.Generation{ID: d.Uint32(), Role: store.Role(d.Bytes(1)[0]), Chunker: d.Text(), Model: d.Text()}
		all[i].Job = append([]byte(nil), d.Bytes(d.Length())...)
		all[i].Created = d.Time()
	}
	return all, d.End()
}
