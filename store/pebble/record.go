package pebble

import (
	"encoding/binary"
	"fmt"
	"maps"
	"slices"

	"sluice/filter"
	"sluice/store"
)

// meta holds the counters of the whole store.
type meta struct {
	epoch          uint64 // of the last change
	trimmed        uint64 // changes up to this epoch are forgotten
	lastCollection uint32
}

func (m meta) encode() []byte {
	b := binary.AppendUvarint(nil, m.epoch)
	b = binary.AppendUvarint(b, m.trimmed)
	return binary.AppendUvarint(b, uint64(m.lastCollection))
}

func decodeMeta(body []byte) (meta, error) {
	d := decoder{body: body}
	m := meta{epoch: d.uvarint(), trimmed: d.uvarint(), lastCollection: d.uint32()}
	return m, d.end()
}

// counters are the next free ordinal and row of a collection. They are 64 bits
// wide because the last number in use may be the last there is.
type counters struct{ ordinal, row uint64 }

func (c counters) encode() []byte {
	return binary.AppendUvarint(binary.AppendUvarint(nil, c.ordinal), c.row)
}

func decodeCounters(body []byte) (counters, error) {
	d := decoder{body: body}
	c := counters{ordinal: d.uvarint(), row: d.uvarint()}
	return c, d.end()
}

func encodeGenerations(all []store.Generation) []byte {
	b := binary.AppendUvarint(nil, uint64(len(all)))
	for _, g := range all {
		b = append(binary.AppendUvarint(b, uint64(g.ID)), byte(g.Role))
		b = appendString(appendString(b, g.Chunker), g.Model)
		b = appendTime(appendString(b, string(g.Job)), g.Created)
	}
	return b
}

func decodeGenerations(body []byte) ([]store.Generation, error) {
	d := decoder{body: body}
	all := make([]store.Generation, d.length())
	for i := range all {
		all[i] = store.Generation{ID: d.uint32(), Role: store.Role(d.bytes(1)[0]), Chunker: d.string(), Model: d.string()}
		all[i].Job = append([]byte(nil), d.bytes(d.length())...)
		all[i].Created = d.time()
	}
	return all, d.end()
}

// encodeNumber encodes an ordinal or the number of a collection.
func encodeNumber(n uint32) []byte { return binary.AppendUvarint(nil, uint64(n)) }

func decodeNumber(body []byte) (uint32, error) {
	d := decoder{body: body}
	n := d.uint32()
	return n, d.end()
}

func encodeCollection(c store.Collection) []byte {
	b := appendString(nil, c.Tenant)
	b = appendString(b, c.Name)
	b = appendString(b, c.Settings.Analyzer)
	b = binary.AppendUvarint(b, uint64(c.Settings.CodeBits))
	b = appendTime(b, c.Created)
	if !c.Settings.Brings() && c.Settings.Chunker == "" {
		return b
	}
	b = binary.AppendUvarint(b, uint64(c.Settings.Own.Dense))
	b = binary.AppendUvarint(b, uint64(c.Settings.Own.Multi))
	if c.Settings.Chunker == "" {
		return b
	}
	return appendString(b, c.Settings.Chunker)
}

func decodeCollection(id uint32, body []byte) (store.Collection, error) {
	d := decoder{body: body}
	c := store.Collection{ID: id, Tenant: d.string(), Name: d.string()}
	c.Settings = store.Settings{Analyzer: d.string(), CodeBits: int(d.uint32())}
	c.Created = d.time()
	if len(d.body) > 0 {
		c.Settings.Own = store.Own{Dense: int(d.uint32()), Multi: int(d.uint32())}
	}
	if len(d.body) > 0 {
		c.Settings.Chunker = d.string()
	}
	if err := d.end(); err != nil {
		return c, err
	}
	if err := c.Settings.Validate(); err != nil {
		return c, fmt.Errorf("%w: %w", store.ErrCorrupt, err)
	}
	return c, nil
}

// encodeRecord leaves out what the key says: collection and ordinal.
func encodeRecord(r store.Record) []byte {
	b := appendString(nil, r.Key)
	b = binary.AppendUvarint(b, uint64(r.Version))
	b = appendString(b, r.Title)
	b = appendString(b, r.Format)
	b = appendString(b, r.Chunker)
	b = appendString(b, r.Model)
	b = append(b, r.Identity[:]...)
	b = binary.AppendUvarint(b, uint64(r.FirstRow))
	b = binary.AppendUvarint(b, uint64(r.Rows))
	b = appendBool(b, r.Coded)
	b = binary.AppendUvarint(b, r.Epoch)
	b = appendTime(b, r.Updated)
	return appendAccess(b, r.Access)
}

func decodeRecord(collection, ordinal uint32, body []byte) (store.Record, error) {
	d := decoder{body: body}
	r := store.Record{
		Collection: collection,
		Key:        d.string(),
		Ordinal:    ordinal,
		Version:    d.uint32(),
		Title:      d.string(),
		Format:     d.string(),
		Chunker:    d.string(),
		Model:      d.string(),
		Identity:   d.hash(),
		FirstRow:   d.uint32(),
		Rows:       d.uint32(),
		Coded:      d.bool(),
		Epoch:      d.uvarint(),
		Updated:    d.time(),
		Access:     d.access(),
	}
	return r, d.end()
}

// appendAccess encodes a normal access row; equal rows have equal bytes.
func appendAccess(b []byte, a filter.Access) []byte {
	b = appendBool(b, a.Readers.Undeclared)
	b = appendStrings(b, a.Readers.List)
	b = binary.AppendUvarint(b, uint64(len(a.Attributes)))
	for _, name := range slices.Sorted(maps.Keys(a.Attributes)) {
		b = appendAttribute(appendString(b, name), a.Attributes[name])
	}
	b = appendStrings(b, a.Applicability.Regions)
	b = appendTime(b, a.Applicability.ValidFrom)
	return appendTime(b, a.Applicability.ValidUntil)
}

func (d *decoder) access() filter.Access {
	return filter.Access{
		Readers:    filter.Readers{Undeclared: d.bool(), List: decodeStrings[filter.Reader](d)},
		Attributes: d.attributes(),
		Applicability: filter.Applicability{
			Regions:    decodeStrings[string](d),
			ValidFrom:  d.time(),
			ValidUntil: d.time(),
		},
	}
}

func (d *decoder) attributes() filter.Attributes {
	n := d.length()
	if n == 0 {
		return nil
	}
	attributes := make(filter.Attributes, n)
	for range n {
		name := d.string()
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
		return appendString(append(b, attributeString), value)
	case bool:
		return appendBool(append(b, attributeBool), value)
	case int64:
		return binary.AppendVarint(append(b, attributeInt), value)
	default: // NormalAccess lets nothing else through
		return appendStrings(append(b, attributeSet), value.([]string))
	}
}

func (d *decoder) attribute() any {
	switch d.bytes(1)[0] {
	case attributeString:
		return d.string()
	case attributeBool:
		return d.bool()
	case attributeInt:
		return d.varint()
	case attributeSet:
		return decodeStrings[string](d)
	}
	d.fail("an attribute has an unknown type")
	return nil
}

func encodeChange(c store.Change) []byte {
	b := []byte{byte(c.Kind)}
	b = binary.AppendUvarint(b, uint64(c.Collection))
	return binary.AppendUvarint(b, uint64(c.Ordinal))
}

func decodeChange(epoch uint64, body []byte) (store.Change, error) {
	d := decoder{body: body}
	c := store.Change{Epoch: epoch, Kind: store.ChangeKind(d.bytes(1)[0]), Collection: d.uint32(), Ordinal: d.uint32()}
	return c, d.end()
}

func encodePolicies(p store.PolicySource) []byte {
	b := appendString(nil, p.Schema)
	b = binary.AppendUvarint(b, uint64(len(p.Policies)))
	for _, file := range slices.Sorted(maps.Keys(p.Policies)) {
		b = appendString(appendString(b, file), p.Policies[file])
	}
	return b
}

func decodePolicies(body []byte) (store.PolicySource, error) {
	d := decoder{body: body}
	p := store.PolicySource{Schema: d.string()}
	n := d.length()
	if n > 0 {
		p.Policies = make(map[string]string, n)
	}
	for range n {
		file := d.string()
		p.Policies[file] = d.string()
	}
	return p, d.end()
}
