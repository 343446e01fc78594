package local

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"sort"
	"sync/atomic"
	"unsafe"

	"sluice/filter"
	"sluice/filter/lru"
	"sluice/index"
)

const (
	segmentMagic  = "SLUICSEG"
	segmentFormat = 2

	headerSize   = 16
	alignment    = 64 // of every section, for the vectors' sake
	documentSize = 16
	rowSize      = 8
	termSize     = 16
	entrySize    = 24 // of one section in the footer
	footerSize   = int(sectionCount)*entrySize + 4
)

// The sections of a segment in the order they lie in.
type section int

const (
	vectorSection section = iota
	postingSection
	documentSection
	rowSection
	termSection
	stringSection
	sectionCount
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// segment is an immutable run of documents, in memory (fresh) or mapped from
// its file (sealed); both have the same bytes, described in docs/formats/index.md.
//
// Rows are numbered 0…n−1 inside a segment (slots), documents by ordinal and a
// document's rows one after the other.
type segment struct {
	id      uint64 // 0: fresh
	data    []byte
	unmap   func()
	refs    atomic.Int64 // one per snapshot that holds it; starts with its maker's
	dims    int
	sum     uint32 // the footer's checksum: it names the content
	section [sectionCount][]byte
	vectors []float32
	lengths []uint32 // by slot: terms, by field weight
	table   termTable
	codes   *codes // nil: none
	held    Held   // nil: none

	distrusted atomic.Bool // held gave a wrong answer

	sets *lru.Cache[filter.Set, admitted]
}

// openSegment reads a segment's tables and verifies all checksums but those
// of vectors and postings, which Check reads. Damage is index.ErrRebuild.
func openSegment(data []byte) (*segment, error) {
	s := &segment{data: data}
	if err := s.readHeader(); err != nil {
		return nil, err
	}
	if err := s.readFooter(); err != nil {
		return nil, err
	}
	for i := documentSection; i < sectionCount; i++ {
		if _, _, sum := s.entry(i); crc32.Checksum(s.section[i], castagnoli) != sum {
			return nil, damaged("checksum of section %d", i)
		}
	}
	if err := s.checkSizes(); err != nil {
		return nil, err
	}
	s.vectors = asFloats(s.section[vectorSection])
	s.lengths = asUint32s(s.section[rowSection][s.rows()*4:])
	s.table = newTermTable(s)
	s.sets = lru.New[filter.Set, admitted](max(admittedBudgetPerRow*s.rows(), leastAdmittedBudget))
	s.refs.Store(1)
	return s, nil
}

func (s *segment) readHeader() error {
	if len(s.data) < headerSize+footerSize || string(s.data[:8]) != segmentMagic {
		return damaged("no segment header")
	}
	switch format := binary.LittleEndian.Uint32(s.data[8:]); {
	case format > segmentFormat:
		return fmt.Errorf("segment format %d: %w", format, index.ErrNewerFormat)
	case format < segmentFormat:
		return fmt.Errorf("segment format %d is no longer read: %w", format, index.ErrRebuild)
	}
	s.dims = int(binary.LittleEndian.Uint32(s.data[12:]))
	return nil
}

// readFooter finds the sections.
func (s *segment) readFooter() error {
	footer := s.footer()
	s.sum = binary.LittleEndian.Uint32(footer[footerSize-4:])
	if crc32.Update(crc32.Checksum(s.data[:headerSize], castagnoli), castagnoli, footer[:footerSize-4]) != s.sum {
		return damaged("checksum of header and footer")
	}
	for i := range sectionCount {
		offset, length, _ := s.entry(i)
		if end := uint64(len(s.data) - footerSize); offset > end || length > end-offset {
			return damaged("section %d outside the file", i)
		}
		s.section[i] = s.data[offset : offset+length]
	}
	return nil
}

func (s *segment) footer() []byte { return s.data[len(s.data)-footerSize:] }

// entry is what the footer says of a section.
func (s *segment) entry(i section) (offset, length uint64, sum uint32) {
	b := s.footer()[int(i)*entrySize:]
	return binary.LittleEndian.Uint64(b), binary.LittleEndian.Uint64(b[8:]), binary.LittleEndian.Uint32(b[16:])
}

// checkSizes makes sure that the accessors below stay inside their sections.
func (s *segment) checkSizes() error {
	documents, terms := s.documents(), s.terms()
	rows, postings, text := uint32(0), uint64(0), uint32(0)
	if documents > 0 {
		rows = s.document(documents - 1).hi
	}
	if terms > 0 {
		last := s.section[termSection][(terms-1)*termSize:]
		text, postings = binary.LittleEndian.Uint32(last), binary.LittleEndian.Uint64(last[8:])
	}
	if len(s.section[rowSection]) != int(rows)*rowSize ||
		len(s.section[vectorSection]) != int(rows)*s.dims*4 ||
		uint64(len(s.section[postingSection])) != postings ||
		uint64(len(s.section[stringSection])) != uint64(text) {
		return damaged("sections do not fit each other")
	}
	return nil
}

func damaged(format string, args ...any) error {
	return fmt.Errorf("damaged segment: "+format+": %w", append(args, index.ErrRebuild)...)
}

// document is one entry of the document table: slots [lo, hi).
type document struct {
	ordinal uint32
	lo, hi  uint32
	length  uint64 // terms of all rows up to and with this document's
}

func (s *segment) documents() int { return len(s.section[documentSection]) / documentSize }
func (s *segment) rows() int      { return len(s.section[rowSection]) / rowSize }
func (s *segment) terms() int     { return len(s.section[termSection]) / termSize }

func (s *segment) ordinal(i int) uint32 {
	return binary.LittleEndian.Uint32(s.section[documentSection][i*documentSize:])
}

func (s *segment) document(i int) document {
	entry := s.section[documentSection][i*documentSize:]
	d := document{
		ordinal: binary.LittleEndian.Uint32(entry),
		hi:      binary.LittleEndian.Uint32(entry[4:]),
		length:  binary.LittleEndian.Uint64(entry[8:]),
	}
	if i > 0 {
		d.lo = binary.LittleEndian.Uint32(s.section[documentSection][(i-1)*documentSize+4:])
	}
	return d
}

// lengthBefore returns the number of terms of all documents before the i-th.
func (s *segment) lengthBefore(i int) uint64 {
	if i == 0 {
		return 0
	}
	return s.document(i - 1).length
}

// find returns where the document of that ordinal is in the table.
func (s *segment) find(ordinal uint32) (int, bool) {
	i := s.seek(0, ordinal)
	return i, i < s.documents() && s.ordinal(i) == ordinal
}

// seek returns the first document at or after from with an ordinal ≥ the given
// one. Ordinals mostly grow evenly, so it looks first where the ordinal would
// then be; it takes time logarithmic in how far that is from the truth.
func (s *segment) seek(from int, ordinal uint32) int {
	n := s.documents()
	if from >= n || s.ordinal(from) >= ordinal {
		return from
	}
	first, last := s.ordinal(from), s.ordinal(n-1)
	if last < ordinal {
		return n
	}
	guess := from + int(uint64(ordinal-first)*uint64(n-1-from)/uint64(last-first))
	for step := 1; guess > from && s.ordinal(guess) >= ordinal; step *= 2 {
		guess = max(from, guess-step)
	}
	return gallop(guess, n, func(i int) bool { return s.ordinal(i) >= ordinal })
}

// ordinalOf returns the ordinal of the document that holds the slot. Documents
// are of much the same size, so it looks first where the slot would then be.
func (s *segment) ordinalOf(slot uint32) uint32 {
	guess := int(uint64(slot) * uint64(s.documents()) / uint64(s.rows()))
	for step := 1; guess > 0 && s.document(guess).lo > slot; step *= 2 {
		guess = max(0, guess-step)
	}
	return s.ordinal(gallop(guess, s.documents(), func(i int) bool { return s.document(i).hi > slot }))
}

// row returns the store's row number of a slot.
func (s *segment) row(slot uint32) uint32 {
	return binary.LittleEndian.Uint32(s.section[rowSection][int(slot)*4:])
}

// length returns the number of terms of a slot's fields, by field weight.
func (s *segment) length(slot uint32) uint32 { return s.lengths[slot] }

func (s *segment) vector(slot uint32) []float32 {
	return s.vectors[int(slot)*s.dims : (int(slot)+1)*s.dims]
}

// term returns the i-th term in byte order, and its postings.
func (s *segment) term(i int) (term []byte, list postingList) {
	var text uint32
	var postings uint64
	if i > 0 {
		before := s.section[termSection][(i-1)*termSize:]
		text, postings = binary.LittleEndian.Uint32(before), binary.LittleEndian.Uint64(before[8:])
	}
	entry := s.section[termSection][i*termSize:]
	list.count = binary.LittleEndian.Uint32(entry[4:])
	if end := binary.LittleEndian.Uint64(entry[8:]); postings <= end && end <= uint64(len(s.section[postingSection])) {
		list.data = s.section[postingSection][postings:end] // the footer, if nothing else, is slack
	}
	if end := binary.LittleEndian.Uint32(entry); text <= end && uint64(end) <= uint64(len(s.section[stringSection])) {
		term = s.section[stringSection][text:end]
	}
	return term, list
}

// seekTerm returns the first term that is not before the given one.
func (s *segment) seekTerm(term string) int {
	return sort.Search(s.terms(), func(i int) bool {
		at, _ := s.term(i)
		return string(at) >= term
	})
}

func (s *segment) acquire() { s.refs.Add(1) }

func (s *segment) release() {
	if s.refs.Add(-1) > 0 {
		return
	}
	if s.held != nil {
		s.held.Close()
	}
	if s.unmap != nil {
		s.unmap()
	}
	if s.codes != nil {
		s.codes.free()
	}
}

// gallop returns the first i in [from, n) for which reached holds, else n;
// once it holds it must hold from there on.
func gallop(from, n int, reached func(int) bool) int {
	step := 1
	for from < n && !reached(min(from+step, n)-1) {
		from += step
		step *= 2
	}
	if from >= n {
		return n
	}
	return from + sort.Search(min(step, n-from)-1, func(i int) bool { return reached(from + i) })
}

// asFloats views little-endian bytes as vectors. Every platform the project
// supports is little-endian; Open refuses others.
func asFloats(b []byte) []float32 {
	if len(b) == 0 {
		return nil
	}
	return unsafe.Slice((*float32)(unsafe.Pointer(unsafe.SliceData(b))), len(b)/4)
}

func asUint32s(b []byte) []uint32 {
	if len(b) == 0 {
		return nil
	}
	return unsafe.Slice((*uint32)(unsafe.Pointer(unsafe.SliceData(b))), len(b)/4)
}

func asBytes(v []float32) []byte {
	if len(v) == 0 {
		return nil
	}
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(v))), len(v)*4)
}
