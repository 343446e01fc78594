package pebble

import (
	"encoding/binary"
	"fmt"

	"sluice/store"
	"sluice/store/encode"
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
	d := encode.Decoder{Body: body}
	m := meta{epoch: d.Uvarint(), trimmed: d.Uvarint(), lastCollection: d.Uint32()}
	return m, d.End()
}

// counters are the next free ordinal and row of a collection. They are 64 bits
// wide because the last number in use may be the last there is.
type counters struct{ ordinal, row uint64 }

func (c counters) encode() []byte {
	return binary.AppendUvarint(binary.AppendUvarint(nil, c.ordinal), c.row)
}

func decodeCounters(body []byte) (counters, error) {
	d := encode.Decoder{Body: body}
	c := counters{ordinal: d.Uvarint(), row: d.Uvarint()}
	return c, d.End()
}

// encodeNumber encodes an ordinal or the number of a collection.
func encodeNumber(n uint32) []byte { return binary.AppendUvarint(nil, uint64(n)) }

func decodeNumber(body []byte) (uint32, error) {
	d := encode.Decoder{Body: body}
	n := d.Uint32()
	return n, d.End()
}

func encodeCollection(c store.Collection) []byte {
	b := encode.AppendString(nil, c.Tenant)
	b = encode.AppendString(b, c.Name)
	b = encode.AppendString(b, c.Settings.Analyzer)
	b = binary.AppendUvarint(b, uint64(c.Settings.CodeBits))
	b = encode.AppendTime(b, c.Created)
	if !c.Settings.Brings() && c.Settings.Chunker == "" {
		return b
	}
	b = binary.AppendUvarint(b, uint64(c.Settings.Own.Dense))
	b = binary.AppendUvarint(b, uint64(c.Settings.Own.Multi))
	if c.Settings.Chunker == "" {
		return b
	}
	return encode.AppendString(b, c.Settings.Chunker)
}

func decodeCollection(id uint32, body []byte) (store.Collection, error) {
	d := encode.Decoder{Body: body}
	c := store.Collection{ID: id, Tenant: d.Text(), Name: d.Text()}
	c.Settings = store.Settings{Analyzer: d.Text(), CodeBits: int(d.Uint32())}
	c.Created = d.Time()
	if len(d.Body) > 0 {
		c.Settings.Own = store.Own{Dense: int(d.Uint32()), Multi: int(d.Uint32())}
	}
	if len(d.Body) > 0 {
		c.Settings.Chunker = d.Text()
	}
	if err := d.End(); err != nil {
		return c, err
	}
	if err := c.Settings.Validate(); err != nil {
		return c, fmt.Errorf("%w: %w", store.ErrCorrupt, err)
	}
	return c, nil
}

// encodeRecord leaves out what the key says: collection and ordinal.
func encodeRecord(r store.Record) []byte {
	b := encode.AppendString(nil, r.Key)
	b = binary.AppendUvarint(b, uint64(r.Version))
	b = encode.AppendString(b, r.Title)
	b = encode.AppendString(b, r.Format)
	b = encode.AppendString(b, r.Chunker)
	b = encode.AppendString(b, r.Model)
	b = append(b, r.Identity[:]...)
	b = binary.AppendUvarint(b, uint64(r.FirstRow))
	b = binary.AppendUvarint(b, uint64(r.Rows))
	b = encode.AppendBool(b, r.Coded)
	b = binary.AppendUvarint(b, r.Epoch)
	b = encode.AppendTime(b, r.Updated)
	return encode.AppendAccess(b, r.Access)
}

func decodeRecord(collection, ordinal uint32, body []byte) (store.Record, error) {
	d := encode.Decoder{Body: body}
	r := store.Record{
		Collection: collection,
		Key:        d.Text(),
		Ordinal:    ordinal,
		Version:    d.Uint32(),
		Title:      d.Text(),
		Format:     d.Text(),
		Chunker:    d.Text(),
		Model:      d.Text(),
		Identity:   d.Hash(),
		FirstRow:   d.Uint32(),
		Rows:       d.Uint32(),
		Coded:      d.Bool(),
		Epoch:      d.Uvarint(),
		Updated:    d.Time(),
		Access:     d.Access(),
	}
	return r, d.End()
}

func encodeChange(c store.Change) []byte {
	b := []byte{byte(c.Kind)}
	b = binary.AppendUvarint(b, uint64(c.Collection))
	return binary.AppendUvarint(b, uint64(c.Ordinal))
}

func decodeChange(epoch uint64, body []byte) (store.Change, error) {
	d := encode.Decoder{Body: body}
	c := store.Change{Epoch: epoch, Kind: store.ChangeKind(d.Bytes(1)[0]), Collection: d.Uint32(), Ordinal: d.Uint32()}
	return c, d.End()
}
