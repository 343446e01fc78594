package pebble

import (
	"encoding/binary"
	"fmt"

	"sluice/store"
)

// The first byte of a key says what it holds; docs/formats/store.md lists them.
// Numbers are big-endian, so that keys sort by them.
const (
	tagParsed     = 'A' // generation, ordinal       → what other chunkers can work on
	tagCollection = 'C' // collection                → Collection
	tagDocument   = 'D' // generation, document key  → ordinal
	tagEmbedding  = 'E' // hash                      → time, cached embedding
	tagFeed       = 'F' // epoch                     → Change
	tagGeneration = 'G' // collection                → Generations
	tagCounters   = 'K' // generation                → counters
	tagCodes      = 'L' // generation, row           → token codes of a row, for late interaction
	tagMeta       = 'M' //                           → meta
	tagName       = 'N' // tenant, collection name   → collection
	tagPolicies   = 'P' //                           → PolicySource
	tagQueries    = 'Q' // collection                → query set
	tagRecord     = 'R' // generation, ordinal       → Record
	tagContent    = 'T' // generation, ordinal       → chunks and text
	tagVectors    = 'V' // generation, ordinal       → vectors
)

// The parts of a document under its ordinal, and all that a generation has.
var (
	tagsOfDocument   = []byte{tagRecord, tagContent, tagVectors, tagParsed}
	tagsOfGeneration = append([]byte{tagDocument, tagCodes}, tagsOfDocument...)
)

func metaKey() []byte     { return []byte{tagMeta} }
func policiesKey() []byte { return []byte{tagPolicies} }

func collectionKey(id uint32) []byte  { return numberKey(tagCollection, id) }
func countersKey(id uint32) []byte    { return numberKey(tagCounters, id) }
func generationsKey(id uint32) []byte { return numberKey(tagGeneration, id) }
func queriesKey(id uint32) []byte     { return numberKey(tagQueries, id) }

func numberKey(tag byte, id uint32) []byte { return binary.BigEndian.AppendUint32([]byte{tag}, id) }

func embeddingKey(key store.EmbeddingKey) []byte { return append([]byte{tagEmbedding}, key[:]...) }

func feedKey(epoch uint64) []byte { return binary.BigEndian.AppendUint64([]byte{tagFeed}, epoch) }

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
