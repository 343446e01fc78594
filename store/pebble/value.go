package pebble

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"

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
