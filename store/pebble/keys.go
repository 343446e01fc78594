package pebble

import (
	"encoding/binary"
	"fmt"

	"sluice/store"
)

// The first byte of a key says what it holds; docs/formats/store.md lists them.
// Numbers are big-endian, so that keys sort by them.
const (
	tagCollection = 'C' // collection                → Collection
	tagDocument   = 'D' // collection, document key  → ordinal
	tagFeed       = 'F' // epoch                     → Change
	tagCounters   = 'K' // collection                → counters
	tagCodes      = 'L' // collection, row           → token codes of a row, for late interaction
	tagMeta       = 'M' //                           → meta
	tagName       = 'N' // tenant, collection name   → collection
	tagPolicies   = 'P' //                           → PolicySource
	tagRecord     = 'R' // collection, ordinal       → Record
	tagContent    = 'T' // collection, ordinal       → chunks and text
	tagVectors    = 'V' // collection, ordinal       → vectors
)

func metaKey() []byte     { return []byte{tagMeta} }
func policiesKey() []byte { return []byte{tagPolicies} }

func collectionKey(id uint32) []byte { return binary.BigEndian.AppendUint32([]byte{tagCollection}, id) }
func countersKey(id uint32) []byte   { return binary.BigEndian.AppendUint32([]byte{tagCounters}, id) }
func feedKey(epoch uint64) []byte    { return binary.BigEndian.AppendUint64([]byte{tagFeed}, epoch) }

// nameKey holds the tenant behind its length, so that no two pairs share a key.
func nameKey(tenant, name string) []byte {
	key := binary.BigEndian.AppendUint32([]byte{tagName}, uint32(len(tenant)))
	return append(append(key, tenant...), name...)
}

func documentKey(collection uint32, key string) []byte {
	k := make([]byte, 0, 5+len(key))
	return append(binary.BigEndian.AppendUint32(append(k, tagDocument), collection), key...)
}

// ordinalKey is the key of a document's record, content or vectors; with a row
// in place of the ordinal, of the row's token codes.
func ordinalKey(tag byte, collection, ordinal uint32) []byte {
	k := append(make([]byte, 0, 9), tag)
	return binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(k, collection), ordinal)
}

// splitOrdinalKey undoes ordinalKey.
func splitOrdinalKey(key []byte) (collection, ordinal uint32, err error) {
	if len(key) != 9 {
		return 0, 0, fmt.Errorf("%w: key %x has %d bytes, not 9", store.ErrCorrupt, key, len(key))
	}
	return binary.BigEndian.Uint32(key[1:]), binary.BigEndian.Uint32(key[5:]), nil
}

// splitDocumentKey undoes documentKey.
func splitDocumentKey(key []byte) (collection uint32, document string, err error) {
	if len(key) < 5 {
		return 0, "", fmt.Errorf("%w: key %x has %d bytes, fewer than 5", store.ErrCorrupt, key, len(key))
	}
	return binary.BigEndian.Uint32(key[1:]), string(key[5:]), nil
}
