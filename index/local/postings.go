package local

import (
	"encoding/binary"
)

const (
	blockPostings   = 128
	blockHeaderSize = 6
)

// posting says that a slot's text has a term so many times.
type posting struct {
	slot uint32
	freq uint32
}

// postingList is the encoded list of one term, ascending by slot, in blocks of
// up to blockPostings. A block's header is its last slot (u32) and the size of
// its body (u16); the body is a pair of varints a posting: how many slots lie
// between it and the one before, and the frequency.
type postingList struct {
	count uint32
	data  []byte
}

// appendPostings encodes postings in ascending order of slot.
func appendPostings(dst []byte, list []posting) []byte {
	next := uint32(0)
	for len(list) > 0 {
		block := list[:min(blockPostings, len(list))]
		list = list[len(block):]
		header := len(dst)
		dst = binary.LittleEndian.AppendUint32(dst, block[len(block)-1].slot)
		dst = append(dst, 0, 0)
		for _, p := range block {
			dst = binary.AppendUvarint(dst, uint64(p.slot-next))
			dst = binary.AppendUvarint(dst, uint64(p.freq))
			next = p.slot + 1
		}
		binary.LittleEndian.PutUint16(dst[header+4:], uint16(len(dst)-header-blockHeaderSize))
	}
	return dst
}

// within appends the postings inside the spans, which ascend. Blocks outside
// every span are skipped without being decoded.
func (l postingList) within(spans []span, dst []posting) ([]posting, error) {
	next := uint32(0)
	for rest := l.data; len(rest) > 0; {
		last, body, tail, err := splitBlock(rest, next)
		if err != nil {
			return dst, err
		}
		for len(spans) > 0 && spans[0].hi <= next {
			spans = spans[1:]
		}
		if len(spans) == 0 {
			return dst, nil
		}
		if spans[0].lo <= last {
			if dst, err = decodeBlock(body, next, last, spans, dst); err != nil {
				return dst, err
			}
		}
		rest, next = tail, last+1
	}
	return dst, nil
}

// splitBlock takes the first block off. next is the smallest slot it may hold.
func splitBlock(data []byte, next uint32) (last uint32, body, tail []byte, err error) {
	if len(data) < blockHeaderSize {
		return 0, nil, nil, damaged("cut posting block")
	}
	last = binary.LittleEndian.Uint32(data)
	size := int(binary.LittleEndian.Uint16(data[4:]))
	data = data[blockHeaderSize:]
	if size == 0 || size > len(data) || last < next || last+1 == 0 {
		return 0, nil, nil, damaged("posting block header")
	}
	return last, data[:size], data[size:], nil
}

func decodeBlock(body []byte, next, last uint32, spans []span, dst []posting) ([]posting, error) {
	for len(body) > 0 {
		gap, n := uvarint(body)
		freq, m := uvarint(body[n:])
		if n == 0 || m == 0 || freq == 0 || gap > last-next {
			return dst, damaged("posting")
		}
		body = body[n+m:]
		slot := next + gap
		for len(spans) > 0 && spans[0].hi <= slot {
			spans = spans[1:]
		}
		if len(spans) == 0 {
			return dst, nil
		}
		if spans[0].lo <= slot {
			dst = append(dst, posting{slot, freq})
		}
		if slot == last && len(body) > 0 {
			return dst, damaged("postings after the block's last")
		}
		next = slot + 1
	}
	if next != last+1 {
		return dst, damaged("posting block ends early")
	}
	return dst, nil
}

// uvarint reads a varint of 32 bits; n is 0 if there is none.
func uvarint(b []byte) (v uint32, n int) {
	if len(b) > 0 && b[0] < 0x80 { // nearly all are small
		return uint32(b[0]), 1
	}
	long, n := binary.Uvarint(b)
	if n <= 0 || long > 1<<32-1 {
		return 0, 0
	}
	return uint32(long), n
}
