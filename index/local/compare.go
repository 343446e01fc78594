package local

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"hash/maphash"
	"iter"
	"slices"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"sluice/index"
	"sluice/index/text"
)

// Compare reports, by document, where the index in dir differs from what it is
// to hold: rows, vectors, their codes, and the postings that the analyzer makes
// of the texts. What it has besides is reported too, but for the ordinals to
// skip; skip may grow while documents are read. The index must have passed Check
// and be in nobody's use.
func Compare(ctx context.Context, dir string, files vfs.FS, analyzer text.Analyzer, documents iter.Seq2[index.Document, error],
	skip *roaring.Bitmap, report func(ordinal uint32, fault string)) error {
	m, err := readManifest(files, dir)
	if err != nil {
		return err
	}
	if m.analyzer != analyzer.Identity() {
		return fmt.Errorf("%s was made with analyzer %s instead of %s: %w", dir, m.analyzer, analyzer.Identity(), index.ErrRebuild)
	}
	options, err := Options{FS: files, Dimensions: int(m.dims), Analyzer: analyzer}.withDefaults()
	if err != nil {
		return err
	}
	c := comparison{analyzer: analyzer, seed: maphash.MakeSeed(), seen: roaring.New(), skip: skip, report: report}
	defer func() { releaseAll(c.parts) }()
	space := options.space()
	for _, entry := range m.segments {
		p, err := openPart(dir, options, space, entry)
		if err != nil {
			return err
		}
		if err := c.add(p); err != nil {
			return err
		}
	}
	for d, err := range documents {
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return err
		}
		c.document(d)
	}
	c.others()
	return nil
}

// comparison is one run of Compare.
type comparison struct {
	analyzer text.Analyzer
	seed     maphash.Seed
	parts    []part
	sums     [][]uint64 // by part and slot: of the hashes of its postings
	seen     *roaring.Bitmap
	skip     *roaring.Bitmap
	report   func(ordinal uint32, fault string)
}

// add takes over a part, and compares its codes with its vectors.
func (c *comparison) add(p part) error {
	c.parts = append(c.parts, p)
	sums, err := c.postings(p.seg)
	c.sums = append(c.sums, sums)
	if p.seg.codes == nil || err != nil {
		return err
	}
	vector := func(row int) []float32 { return p.seg.vector(uint32(row)) }
	p.seg.codes.index.Check(vector, func(row int, fault string) {
		slot := uint32(row)
		c.report(p.seg.ordinalOf(slot), fmt.Sprintf("row %d: %s", p.seg.row(slot), fault))
	})
	return nil
}

// postings returns, for each slot, the sum of the hashes of its postings.
func (c *comparison) postings(s *segment) ([]uint64, error) {
	sums := make([]uint64, s.rows())
	var b block
	var d decoded
	for i := range s.terms() {
		term, list := s.term(i)
		for j := range list.blocks() {
			if err := b.open(list, j); err != nil {
				return nil, err
			}
			if err := b.decode(&d); err != nil {
				return nil, err
			}
			places, err := list.places(j)
			if err != nil {
				return nil, err
			}
			for k, slot := range d.slots {
				end := bytes.IndexByte(places, 0) + 1
				sums[slot] += c.hash(term, d.freqs[k], places[:end])
				places = places[end:]
			}
		}
	}
	return sums, nil
}

func (c *comparison) hash(term []byte, freq uint32, places []byte) uint64 {
	var h maphash.Hash
	h.SetSeed(c.seed)
	var sizes [8]byte
	binary.LittleEndian.PutUint32(sizes[:], freq)
	binary.LittleEndian.PutUint32(sizes[4:], uint32(len(term)))
	h.Write(sizes[:]) //nolint:errcheck // never fails
	h.Write(term)     //nolint:errcheck
	h.Write(places)   //nolint:errcheck
	return h.Sum64()
}

// analyzed is the same sum of a row analyzed anew, and its length.
func (c *comparison) analyzed(r index.Row) (sum uint64, length uint32) {
	inverted := inverter{analyzer: c.analyzer, ids: map[string]int{}}
	length = inverted.add(0, r)
	for term, i := range inverted.ids {
		list := &inverted.lists[i]
		list.close()
		sum += c.hash([]byte(term), list.postings[0].freq, list.places)
	}
	return sum, length
}

func (c *comparison) document(want index.Document) {
	if c.skip.Contains(want.Ordinal) || len(want.Rows) == 0 {
		return
	}
	c.seen.Add(want.Ordinal)
	for i, p := range c.parts {
		if at, ok := p.seg.find(want.Ordinal); ok && !p.isDeleted(want.Ordinal) {
			c.rows(p.seg, c.sums[i], p.seg.document(at), want)
			return
		}
	}
	c.report(want.Ordinal, "it is not in the index")
}

func (c *comparison) rows(s *segment, sums []uint64, have document, want index.Document) {
	if int(have.hi-have.lo) != len(want.Rows) {
		c.report(want.Ordinal, fmt.Sprintf("the index has %d rows of it instead of %d", have.hi-have.lo, len(want.Rows)))
		return
	}
	for i, r := range want.Rows {
		slot := have.lo + uint32(i)
		fault := func(what string) { c.report(want.Ordinal, fmt.Sprintf("row %d: %s", r.Row, what)) }
		if s.row(slot) != r.Row {
			fault(fmt.Sprintf("the index has row %d in its place", s.row(slot)))
		}
		if !slices.Equal(s.vector(slot), r.Vector) {
			fault("the index has another vector")
		}
		if sum, length := c.analyzed(r); sum != sums[slot] || length != s.length(slot) {
			fault("its postings are not those of its text")
		}
	}
}

// others reports documents that are in the index alone.
func (c *comparison) others() {
	for _, p := range c.parts {
		for i := range p.seg.documents() {
			ordinal := p.seg.ordinal(i)
			if !p.isDeleted(ordinal) && !c.skip.Contains(ordinal) && !c.seen.Contains(ordinal) {
				c.report(ordinal, "it is in the index, and not in the store")
			}
		}
	}
}
