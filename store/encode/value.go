// Package encode is the encoding of what every home of the store keeps as bytes:
// access rows, policies, chunks with their text, and vectors. docs/formats/store.md states it.
//
// Unsigned numbers are uvarints, signed ones zigzag varints; strings and lists
// stand behind their length; times are seconds and nanoseconds since 1970.
package encode

import (
	"encoding/binary"
	"fmt"
	"math"
	"time"

	"sluice/store"
)

// AppendString appends a string behind its length.
func AppendString[S ~string](b []byte, s S) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

// AppendStrings appends a list of strings behind its length.
func AppendStrings[S ~string](b []byte, list []S) []byte {
	b = binary.AppendUvarint(b, uint64(len(list)))
	for _, s := range list {
		b = AppendString(b, s)
	}
	return b
}

// AppendTime appends a time; its zone is lost.
func AppendTime(b []byte, t time.Time) []byte {
	return binary.AppendUvarint(binary.AppendVarint(b, t.Unix()), uint64(t.Nanosecond()))
}

// AppendBool appends a byte, 0 or 1.
func AppendBool(b []byte, v bool) []byte {
	if v {
		return append(b, 1)
	}
	return append(b, 0)
}

// Decoder reads a body. After the first thing that does not fit, Err is set and
// all that follows is zero.
type Decoder struct {
	Body []byte
	Err  error
}

// Fail records that something does not fit.
func (d *Decoder) Fail(what string) {
	if d.Err == nil {
		d.Err = fmt.Errorf("%w: %s", store.ErrCorrupt, what)
	}
	d.Body = nil
}

// End returns the error of the whole decoding, of bytes that are left too.
func (d *Decoder) End() error {
	if len(d.Body) > 0 {
		d.Fail(fmt.Sprintf("%d bytes too many", len(d.Body)))
	}
	return d.Err
}

// Uvarint reads an unsigned number.
func (d *Decoder) Uvarint() uint64 { return number(d, binary.Uvarint) }

// Varint reads a signed number.
func (d *Decoder) Varint() int64 { return number(d, binary.Varint) }

func number[T uint64 | int64](d *Decoder, read func([]byte) (T, int)) T {
	v, n := read(d.Body)
	if n <= 0 {
		d.Fail("a number is cut off")
		return 0
	}
	d.Body = d.Body[n:]
	return v
}

// Uint32 reads an unsigned number that must be less than 1<<32.
func (d *Decoder) Uint32() uint32 {
	v := d.Uvarint()
	if v > math.MaxUint32 {
		d.Fail("a number is too large")
	}
	return uint32(v)
}

// Length reads the length of a list or string; each element has at least one byte.
func (d *Decoder) Length() int {
	n := d.Uvarint()
	if n > uint64(len(d.Body)) {
		d.Fail("a length is beyond the end")
		return 0
	}
	return int(n)
}

// Bytes reads n bytes. They are the body's.
func (d *Decoder) Bytes(n int) []byte {
	if n > len(d.Body) {
		d.Fail("the end is missing")
		return make([]byte, n)
	}
	b := d.Body[:n]
	d.Body = d.Body[n:]
	return b
}

// Text reads a string.
func (d *Decoder) Text() string { return string(d.Bytes(d.Length())) }

// Bool reads a bool.
func (d *Decoder) Bool() bool { return d.Bytes(1)[0] != 0 }

// Hash reads 32 bytes.
func (d *Decoder) Hash() [32]byte { return [32]byte(d.Bytes(32)) }

// Time reads a time, in UTC.
func (d *Decoder) Time() time.Time {
	seconds, nanoseconds := d.Varint(), d.Uvarint()
	if nanoseconds >= uint64(time.Second) {
		d.Fail("a time is out of range")
		return time.Time{}
	}
	return time.Unix(seconds, int64(nanoseconds)).UTC()
}

// Strings reads a list of strings; an empty one is nil.
func Strings[S ~string](d *Decoder) []S {
	n := d.Length()
	if n == 0 {
		return nil
	}
	list := make([]S, 0, n)
	for range n {
		list = append(list, S(d.Text()))
	}
	return list
}
