package local

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"io"
	"math"
)

// segmentWriter writes one segment front to back: all rows, document by
// document in order of ordinal, then all terms in byte order, then finish.
// The first error sticks and is what finish returns.
type segmentWriter struct {
	out    io.Writer
	err    error
	dims   int
	offset uint64
	header [headerSize]byte
	footer []byte

	sum, start   uint64 // of the section being streamed: checksum, where it began
	slots        uint32
	length       uint64
	postings     uint64
	documents    []byte
	rowTable     []byte
	lengths      []uint32
	termTable    []byte
	strings      []byte
	postingBytes []byte
}

func newSegmentWriter(out io.Writer, dims int) *segmentWriter {
	w := &segmentWriter{out: out, dims: dims}
	copy(w.header[:], segmentMagic)
	binary.LittleEndian.PutUint32(w.header[8:], segmentFormat)
	binary.LittleEndian.PutUint32(w.header[12:], uint32(dims))
	w.write(w.header[:])
	w.begin()
	return w
}

func (w *segmentWriter) write(p []byte) {
	if w.err != nil {
		return
	}
	_, w.err = w.out.Write(p)
	w.sum = uint64(crc32.Update(uint32(w.sum), castagnoli, p))
	w.offset += uint64(len(p))
}

// begin pads to the alignment and starts the next section.
func (w *segmentWriter) begin() {
	var zeros [alignment]byte
	w.write(zeros[:(alignment-w.offset%alignment)%alignment])
	w.start, w.sum = w.offset, 0
}

// end notes the section in the footer.
func (w *segmentWriter) end() {
	w.footer = binary.LittleEndian.AppendUint64(w.footer, w.start)
	w.footer = binary.LittleEndian.AppendUint64(w.footer, w.offset-w.start)
	w.footer = binary.LittleEndian.AppendUint64(w.footer, w.sum)
}

// row adds the next row of the present document. length counts its terms.
func (w *segmentWriter) row(row, length uint32, vector []float32) {
	if w.slots == math.MaxUint32-1 {
		w.fail(fmt.Errorf("a segment holds at most %d rows", w.slots))
		return
	}
	w.write(asBytes(vector))
	w.rowTable = binary.LittleEndian.AppendUint32(w.rowTable, row)
	w.lengths = append(w.lengths, length)
	w.slots++
	w.length += uint64(length)
}

// endDocument gives the rows since the last document to this one.
func (w *segmentWriter) endDocument(ordinal uint32) {
	w.documents = binary.LittleEndian.AppendUint32(w.documents, ordinal)
	w.documents = binary.LittleEndian.AppendUint32(w.documents, w.slots)
	w.documents = binary.LittleEndian.AppendUint64(w.documents, w.length)
}

// endRows closes the vectors; terms follow.
func (w *segmentWriter) endRows() {
	w.end()
	w.begin()
}

// term adds a term with its postings, ascending by slot, and the places of each.
func (w *segmentWriter) term(term []byte, list []posting, places []byte) {
	w.postingBytes = appendList(w.postingBytes[:0], list, places, w.lengths)
	w.write(w.postingBytes)
	if len(w.postingBytes) > math.MaxUint32 {
		w.fail(fmt.Errorf("the postings of %q exceed 4 GiB", term))
		return
	}
	w.postings += uint64(len(w.postingBytes))
	if uint64(len(w.strings)+len(term)) > math.MaxUint32 {
		w.fail(fmt.Errorf("the terms of a segment exceed 4 GiB"))
		return
	}
	w.strings = append(w.strings, term...)
	w.termTable = binary.LittleEndian.AppendUint32(w.termTable, uint32(len(w.strings)))
	w.termTable = binary.LittleEndian.AppendUint32(w.termTable, uint32(len(list)))
	w.termTable = binary.LittleEndian.AppendUint64(w.termTable, w.postings)
}

func (w *segmentWriter) finish() error {
	w.end()
	for _, length := range w.lengths {
		w.rowTable = binary.LittleEndian.AppendUint32(w.rowTable, length)
	}
	for _, table := range [][]byte{w.documents, w.rowTable, w.termTable, w.strings} {
		w.begin()
		w.write(table)
		w.end()
	}
	sum := crc32.Update(crc32.Checksum(w.header[:], castagnoli), castagnoli, w.footer)
	w.write(binary.LittleEndian.AppendUint32(w.footer, sum))
	return w.err
}

func (w *segmentWriter) fail(err error) {
	if w.err == nil {
		w.err = err
	}
}
