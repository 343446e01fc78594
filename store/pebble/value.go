package pebble

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"math"
	"time"

	"sluice/store"
)

// valueVersion is the first byte of every value.
const valueVersion = 1

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// seal frames a body: version byte, body, CRC-32C over key, version and body.
// With the key in it the checksum also finds a value under the wrong key.
func seal(key []byte, body ...[]byte) []byte {
	size := 1 + crc32.Size
	for _, b := range body {
		size += len(b)
	}
	value := append(make([]byte, 0, size), valueVersion)
	for _, b := range body {
		value = append(value, b...)
	}
	return binary.LittleEndian.AppendUint32(value, checksum(key, value))
}

// unseal returns the body of a value, or ErrCorrupt.
func unseal(key, value []byte) ([]byte, error) {
	end := len(value) - crc32.Size
	if end < 1 {
		return nil, fmt.Errorf("%w: the value of %x has %d bytes", store.ErrCorrupt, key, len(value))
	}
	if got, want := checksum(key, value[:end]), binary.LittleEndian.Uint32(value[end:]); got != want {
		return nil, fmt.Errorf("%w: the checksum of %x is %08x instead of %08x", store.ErrCorrupt, key, got, want)
	}
	if value[0] != valueVersion {
		return nil, fmt.Errorf("%w: the value of %x has version %d", store.ErrNewerFormat, key, value[0])
	}
	return value[1:end], nil
}

func checksum(key, value []byte) uint32 {
	return crc32.Update(crc32.Checksum(key, castagnoli), castagnoli, value)
}

// The encoding of bodies: unsigned varints, signed (zigzag) varints, strings and
// lists behind their length, times as seconds and nanoseconds since 1970.

func appendString[S ~string](b []byte, s S) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

func appendStrings[S ~string](b []byte, list []S) []byte {
	b = binary.AppendUvarint(b, uint64(len(list)))
	for _, s := range list {
		b = appendString(b, s)
	}
	return b
}

func appendTime(b []byte, t time.Time) []byte {
	return binary.AppendUvarint(binary.AppendVarint(b, t.Unix()), uint64(t.Nanosecond()))
}

func appendBool(b []byte, v bool) []byte {
	if v {
		return append(b, 1)
	}
	return append(b, 0)
}

// decoder reads a body. After the first thing that does not fit, err is set and
// all that follows is zero.
type decoder struct {
	body []byte
	err  error
}

func (d *decoder) fail(what string) {
	if d.err == nil {
		d.err = fmt.Errorf("%w: %s", store.ErrCorrupt, what)
	}
	d.body = nil
}

// end returns the error of the whole decoding.
func (d *decoder) end() error {
	if len(d.body) > 0 {
		d.fail(fmt.Sprintf("%d bytes too many", len(d.body)))
	}
	return d.err
}

func (d *decoder) uvarint() uint64 { return number(d, binary.Uvarint) }
func (d *decoder) varint() int64   { return number(d, binary.Varint) }

func number[T uint64 | int64](d *decoder, read func([]byte) (T, int)) T {
	v, n := read(d.body)
	if n <= 0 {
		d.fail("a number is cut off")
		return 0
	}
	d.body = d.body[n:]
	return v
}

func (d *decoder) uint32() uint32 {
	v := d.uvarint()
	if v > math.MaxUint32 {
		d.fail("a number is too large")
	}
	return uint32(v)
}

// length reads the length of a list or string; each element has at least one byte.
func (d *decoder) length() int {
	n := d.uvarint()
	if n > uint64(len(d.body)) {
		d.fail("a length is beyond the end")
		return 0
	}
	return int(n)
}

func (d *decoder) bytes(n int) []byte {
	if n > len(d.body) {
		d.fail("the end is missing")
		return make([]byte, n)
	}
	b := d.body[:n]
	d.body = d.body[n:]
	return b
}

func (d *decoder) string() string { return string(d.bytes(d.length())) }
func (d *decoder) bool() bool     { return d.bytes(1)[0] != 0 }
func (d *decoder) hash() [32]byte { return [32]byte(d.bytes(32)) }

func (d *decoder) time() time.Time {
	seconds, nanoseconds := d.varint(), d.uvarint()
	if nanoseconds >= uint64(time.Second) {
		d.fail("a time is out of range")
		return time.Time{}
	}
	return time.Unix(seconds, int64(nanoseconds)).UTC()
}

func decodeStrings[S ~string](d *decoder) []S {
	n := d.length()
	if n == 0 {
		return nil
	}
	list := make([]S, 0, n)
	for range n {
		list = append(list, S(d.string()))
	}
	return list
}
