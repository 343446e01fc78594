package local

import (
	"bytes"
	"errors"
	"fmt"
	"hash/crc32"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"sluice/index"
	"sluice/index/local/ivf"
)

// Report says what Check found intact.
type Report struct {
	Epoch     uint64
	Segments  int
	Documents int // that can be found
	Rows      int
}

// Check reads every byte of the index in dir and verifies every checksum and
// cross reference. It changes nothing and can run on a copy of a live index.
// The error joins all that is wrong, each with its file. nil as fs is the
// operating system's.
func Check(dir string, fs vfs.FS) (Report, error) {
	m, options, err := present(dir, fs)
	if err != nil {
		return Report{}, err
	}
	c := checker{dir: dir, options: options, space: options.space(), live: roaring.New(), rows: roaring.New()}
	for _, entry := range m.segments {
		if err := c.segment(entry); err != nil {
			c.problems = append(c.problems, fmt.Errorf("%s: %w", options.FS.PathJoin(dir, segmentName(entry.id)), err))
		}
	}
	report := Report{m.epoch, len(m.segments), int(c.live.GetCardinality()), int(c.rows.GetCardinality())}
	return report, errors.Join(c.problems...)
}

// Inspect opens the index in dir as a start does, without reading all of it,
// and changes nothing.
func Inspect(dir string) (Report, error) {
	m, options, err := present(dir, nil)
	if err != nil {
		return Report{}, err
	}
	space := options.space()
	for _, entry := range m.segments {
		p, err := openPart(dir, options, space, entry)
		if err != nil {
			return Report{}, err
		}
		p.seg.release()
	}
	return Report{Epoch: m.epoch, Segments: len(m.segments)}, nil
}

// present reads the manifest of the index in dir, and the options that follow from it.
func present(dir string, fs vfs.FS) (*manifest, Options, error) {
	options, err := Options{FS: fs}.withDefaults()
	if err != nil && !errors.Is(err, index.ErrInvalid) { // it is told nothing of the content
		return nil, options, err
	}
	m, err := readManifest(options.FS, dir)
	if err == nil && m == nil {
		err = fmt.Errorf("%s holds no index: %w", dir, index.ErrRebuild)
	}
	if err == nil {
		options.Dimensions = int(m.dims)
	}
	return m, options, err
}

type checker struct {
	dir      string
	options  Options
	space    *ivf.Space
	live     *roaring.Bitmap // ordinals seen live in some segment
	rows     *roaring.Bitmap // and their rows
	problems []error
}

func (c *checker) segment(entry segmentEntry) error {
	p, err := openPart(c.dir, c.options, c.space, entry)
	if err != nil {
		return err
	}
	defer p.seg.release()
	return errors.Join(checkLayout(p.seg), checkTables(p.seg), checkVectors(p.seg), checkPostings(p.seg), c.liveOnce(p))
}

// checkLayout verifies the checksums that opening leaves out, and that nothing
// but zeros lies between the sections.
func checkLayout(s *segment) error {
	at := uint64(headerSize)
	for i := range sectionCount {
		offset, length, sum := s.entry(i)
		padded := (at + alignment - 1) / alignment * alignment
		if offset != padded || len(bytes.Trim(s.data[at:padded], "\x00")) > 0 {
			return damaged("section %d is not where it belongs", i)
		}
		if crc32.Checksum(s.section[i], castagnoli) != sum {
			return damaged("checksum of section %d", i)
		}
		at = offset + length
	}
	if at != uint64(len(s.data)-footerSize) {
		return damaged("bytes after the last section")
	}
	return nil
}

// checkTables verifies that documents ascend and their rows and lengths add up.
func checkTables(s *segment) error {
	var before document
	for i := range s.documents() {
		d := s.document(i)
		if i > 0 && d.ordinal <= before.ordinal || d.hi <= d.lo {
			return damaged("document %d is out of order", d.ordinal)
		}
		sum := before.length
		for slot := d.lo; slot < d.hi; slot++ {
			sum += uint64(s.length(slot))
		}
		if sum != d.length {
			return damaged("lengths of document %d", d.ordinal)
		}
		before = d
	}
	return nil
}

func checkVectors(s *segment) error {
	for slot := range uint32(s.rows()) {
		if err := index.CheckVector(s.vector(slot), s.dims); err != nil {
			return damaged("row %d: %v", s.row(slot), err)
		}
	}
	return nil
}

// liveOnce verifies that no document or row is live in two segments.
func (c *checker) liveOnce(p part) error {
	for i := range p.seg.documents() {
		d := p.seg.document(i)
		if p.isDeleted(d.ordinal) {
			continue
		}
		if !c.live.CheckedAdd(d.ordinal) {
			return damaged("document %d is live in another segment too", d.ordinal)
		}
		for slot := d.lo; slot < d.hi; slot++ {
			if !c.rows.CheckedAdd(p.seg.row(slot)) {
				return damaged("row %d is live twice", p.seg.row(slot))
			}
		}
	}
	return nil
}
