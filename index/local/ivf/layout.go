package ivf

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"math"
	"unsafe"

	"sluice/kernels/ref"
)

// ErrDamaged: the bytes are not what an index's Bytes were.
var ErrDamaged = errors.New("damaged vector codes")

// ErrNewer: the bytes are of a later format.
var ErrNewer = errors.New("vector codes of a later format")

const (
	magic      = "SLUICIVF"
	format     = 1
	headerSize = 128
	none       = math.MaxUint32 // in ids: no row
)

// The sections after the header in the order they lie in, each a multiple of
// 64 bytes. docs/formats/index.md describes them.
const (
	rowSection = iota
	centroidCodeSection
	centroidSection
	normSection
	startSection
	idSection
	codeSection
	sectionCount
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Index is the codes of an immutable set of vectors, all views of one run of
// bytes. Its methods are safe for concurrent use.
type Index struct {
	space *Space
	data  []byte
	shape

	bytes         []byte    // by row: the rotated vector in steps, 128 added
	centroidCodes []byte    // blocks of 16: codes of the centroids around their mean
	centroids     []byte    // by list: the rotated centroid in steps of centroidStep, 128 added
	norms         []float32 // by list: the centroid's squared length
	starts        []uint32  // by list and one more: its first block
	ids           []uint32  // by lane of a block: the row, or none
	codes         []byte    // by block
}

// shape is what the header says.
type shape struct {
	rows, lists, blocks int
	step, centroidStep  float32
	longest             float32 // length of a row
	worst               float32 // distance of a row from what its bytes say
	owner               uint32
}

// Rows is the number of rows.
func (x *Index) Rows() int { return x.rows }

// Listed reports whether there are lists, so that Search need not look at
// every allowed row.
func (x *Index) Listed() bool { return x.lists > 0 }

// Owner is the number that Build was given.
func (x *Index) Owner() uint32 { return x.owner }

// Bytes is all of the index, to be written to a file.
func (x *Index) Bytes() []byte { return x.data }

func (s *Space) sizes(h shape) (sizes [sectionCount]int) {
	block := ref.CodeBlock(s.padded)
	sizes[rowSection] = h.rows * s.padded
	if h.lists > 0 {
		sizes[centroidCodeSection] = (h.lists + ref.CodeLanes - 1) / ref.CodeLanes * block
		sizes[centroidSection] = h.lists * s.padded
		sizes[normSection] = roundUp(4 * h.lists)
		sizes[startSection] = roundUp(4 * (h.lists + 1))
		sizes[idSection] = h.blocks * 4 * ref.CodeLanes
		sizes[codeSection] = h.blocks * block
	}
	return sizes
}

func roundUp(n int) int { return (n + 63) &^ 63 }

// view cuts data, of the right size, into sections.
func (s *Space) view(data []byte, h shape) *Index {
	x := &Index{space: s, data: data, shape: h}
	sections := s.sections(data, h)
	x.bytes = sections[rowSection]
	x.centroidCodes, x.centroids = sections[centroidCodeSection], sections[centroidSection]
	x.codes = sections[codeSection]
	if h.lists > 0 {
		x.norms = as[float32](sections[normSection])[:h.lists]
		x.starts = as[uint32](sections[startSection])[:h.lists+1]
		x.ids = as[uint32](sections[idSection])
	}
	return x
}

func (s *Space) sections(data []byte, h shape) (sections [sectionCount][]byte) {
	at := headerSize
	for i, size := range s.sizes(h) {
		sections[i] = data[at : at+size : at+size]
		at += size
	}
	return sections
}

func (s *Space) size(h shape) int {
	total := headerSize
	for _, size := range s.sizes(h) {
		total += size
	}
	return total
}

// as views little-endian numbers of 4 bytes. Every platform the project
// supports is little-endian.
func as[T float32 | uint32](b []byte) []T {
	return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(b))), len(b)/4)
}

// seal writes the header, checksums last.
func (x *Index) seal() {
	h := x.data[:headerSize]
	copy(h, magic)
	for i, v := range []uint32{format, uint32(x.space.dims), uint32(x.rows), uint32(x.lists), uint32(x.blocks), x.owner,
		math.Float32bits(x.step), math.Float32bits(x.centroidStep), math.Float32bits(x.longest), math.Float32bits(x.worst)} {
		binary.LittleEndian.PutUint32(h[8+4*i:], v)
	}
	for i, section := range x.space.sections(x.data, x.shape) {
		binary.LittleEndian.PutUint32(h[64+4*i:], crc32.Checksum(section, castagnoli))
	}
	binary.LittleEndian.PutUint32(h[headerSize-4:], crc32.Checksum(h[:headerSize-4], castagnoli))
}

// Open views what Bytes gave, after it has verified every checksum and that
// nothing points outside. data must not change afterwards.
func (s *Space) Open(data []byte) (*Index, error) {
	h, err := s.readHeader(data)
	if err != nil {
		return nil, err
	}
	for i, section := range s.sections(data, h) {
		if crc32.Checksum(section, castagnoli) != binary.LittleEndian.Uint32(data[64+4*i:]) {
			return nil, fmt.Errorf("checksum of section %d: %w", i, ErrDamaged)
		}
	}
	x := s.view(data, h)
	return x, x.check()
}

func (s *Space) readHeader(data []byte) (h shape, err error) {
	if len(data) < headerSize || string(data[:8]) != magic {
		return h, fmt.Errorf("no header: %w", ErrDamaged)
	}
	word := func(i int) uint32 { return binary.LittleEndian.Uint32(data[8+4*i:]) }
	if word(0) > format {
		return h, fmt.Errorf("format %d, this version knows %d: %w", word(0), format, ErrNewer)
	}
	if crc32.Checksum(data[:headerSize-4], castagnoli) != binary.LittleEndian.Uint32(data[headerSize-4:]) {
		return h, fmt.Errorf("checksum of the header: %w", ErrDamaged)
	}
	float := func(i int) float32 { return math.Float32frombits(word(i)) }
	h = shape{rows: int(word(2)), lists: int(word(3)), blocks: int(word(4)), owner: word(5),
		step: float(6), centroidStep: float(7), longest: float(8), worst: float(9)}
	if word(0) != format || int(word(1)) != s.dims || len(data) != s.size(h) {
		return h, fmt.Errorf("size or dimensions: %w", ErrDamaged)
	}
	return h, nil
}

// check makes sure that lists lie inside the blocks and ids inside the rows.
func (x *Index) check() error {
	for list := range x.lists {
		if x.starts[list] > x.starts[list+1] {
			return fmt.Errorf("list %d: %w", list, ErrDamaged)
		}
	}
	if x.lists > 0 && (x.starts[0] != 0 || int(x.starts[x.lists]) != x.blocks) {
		return fmt.Errorf("blocks of the lists: %w", ErrDamaged)
	}
	for _, id := range x.ids {
		if id != none && int(id) >= x.rows {
			return fmt.Errorf("row %d in a list: %w", id, ErrDamaged)
		}
	}
	return nil
}
