package pebble

import (
	"bytes"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sluice/filter"
	"sluice/store"
	"sluice/store/encode"
)

// FuzzDecode decodes anything as everything: never a panic, and what is decoded
// without an error encodes to something that decodes to the same.
func FuzzDecode(f *testing.F) {
	full := store.Record{Key: "k", Version: 3, Title: "t", Format: "f", Chunker: "c/1", Model: "m", FirstRow: 5, Rows: 2, Coded: true, Epoch: 9,
		Updated: time.Unix(1, 2).UTC(), Access: filter.Access{Readers: filter.Readers{List: []filter.Reader{"user:a"}},
			Attributes: filter.Attributes{"s": "x", "b": true, "i": int64(-1), "l": []string{"p"}}}}
	codec, err := encode.NewCodec()
	require.NoError(f, err)
	f.Add(encodeRecord(full))
	f.Add(encodeCollection(store.Collection{Tenant: "t", Name: "n"}))
	f.Add(encodeCollection(store.Collection{Tenant: "t", Name: "n", Settings: store.Settings{CodeBits: 8, Own: store.Own{Dense: 300, Multi: 128}}}))
	f.Add(encode.Policies(store.PolicySource{Schema: "s", Policies: map[string]string{"a": "b"}}))
	f.Add(encodeChange(store.Change{Kind: 1, Collection: 2, Ordinal: 300}))
	f.Add(meta{1, 2, 3}.encode())
	f.Add(append(writtenBy(full).encode(), codec.Text("some text", testVersion("k", "some text", 2).Chunks)...))
	f.Add(append(writtenBy(full).encode(), encode.Vectors(2, []float32{1, 2, 3, 4})...))
	f.Fuzz(func(t *testing.T, body []byte) {
		if r, err := decodeRecord(1, 2, body); err == nil {
			again, err := decodeRecord(1, 2, encodeRecord(r))
			require.NoError(t, err)
			require.Equal(t, r, again)
		}
		if c, err := decodeCollection(1, body); err == nil {
			again, err := decodeCollection(1, encodeCollection(c))
			require.NoError(t, err)
			require.Equal(t, c, again)
		}
		if p, err := encode.DecodePolicies(body); err == nil {
			again, err := encode.DecodePolicies(encode.Policies(p))
			require.NoError(t, err)
			require.Equal(t, p, again)
		}
		if c, err := decodeChange(7, body); err == nil {
			again, err := decodeChange(7, encodeChange(c))
			require.NoError(t, err)
			require.Equal(t, c, again)
		}
		_, _ = decodeMeta(body)
		_, _ = decodeCounters(body)
		_, _ = decodeNumber(body)
		content := store.Content{Record: full}
		if decodeContent(codec, &content, body) == nil {
			require.Len(t, content.Chunks, int(full.Rows))
		}
		if decodeVectors(&content, body) == nil {
			require.Len(t, content.Vectors, content.Dimensions*int(full.Rows))
		}
	})
}

func TestUnseal(t *testing.T) {
	key, body := []byte("key"), []byte("body")
	value := seal(key, body[:2], body[2:])
	got, err := unseal(key, value)
	require.NoError(t, err)
	require.Equal(t, body, got)
	_, err = unseal([]byte("kez"), value)
	require.ErrorIs(t, err, store.ErrCorrupt)
	for n := range value {
		_, err := unseal(key, value[:n])
		require.ErrorIs(t, err, store.ErrCorrupt)
		for bit := range 8 {
			damaged := bytes.Clone(value)
			damaged[n] ^= 1 << bit
			_, err := unseal(key, damaged)
			require.ErrorIs(t, err, store.ErrCorrupt)
		}
	}
}
