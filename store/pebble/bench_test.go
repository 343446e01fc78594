package pebble

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"sluice/store"
)

// typicalVersion is a document of 3 chunks × 384 dimensions and 3 KB of text.
func typicalVersion(key string) store.Version {
	v := testVersion(key, strings.Repeat("A sentence about "+key+", as found in documents. ", 64), 3)
	v.Dimensions = 384
	v.Vectors = make([]float32, 3*384)
	for i := range v.Vectors {
		v.Vectors[i] = rand.Float32() - 0.5
	}
	return v
}

func benchStore(b *testing.B, documents int) (*Store, uint32) {
	s, err := Open(b.TempDir(), Options{})
	require.NoError(b, err)
	b.Cleanup(func() { require.NoError(b, s.Close()) })
	c, _, err := s.CreateCollection(b.Context(), "t", "c", store.Settings{})
	require.NoError(b, err)
	commitMany(b, s, c.ID, documents)
	require.NoError(b, s.db.Flush())
	return s, c.ID
}

func commitMany(b *testing.B, s *Store, collection uint32, n int) {
	keys := make(chan string)
	done := make(chan error)
	for range 16 {
		go func() {
			var err error
			for key := range keys {
				if err == nil {
					_, err = s.Commit(b.Context(), collection, typicalVersion(key))
				}
			}
			done <- err
		}()
	}
	for i := range n {
		keys <- fmt.Sprint("document ", i)
	}
	close(keys)
	for range 16 {
		require.NoError(b, <-done)
	}
}

func BenchmarkCommit(b *testing.B) {
	for _, writers := range []int{1, 16} {
		b.Run(fmt.Sprint("writers=", writers), func(b *testing.B) {
			s, collection := benchStore(b, 0)
			var n atomic.Int64
			v := typicalVersion("")
			b.SetParallelism(max(1, writers/2)) // times GOMAXPROCS = 2 where this is measured
			if writers == 1 {
				for b.Loop() {
					v.Key = fmt.Sprint(n.Add(1))
					_, err := s.Commit(b.Context(), collection, v)
					require.NoError(b, err)
				}
				return
			}
			b.RunParallel(func(pb *testing.PB) {
				v := v
				for pb.Next() {
					v.Key = fmt.Sprint(n.Add(1))
					if _, err := s.Commit(b.Context(), collection, v); err != nil {
						b.Error(err)
					}
				}
			})
		})
	}
}

// A hundred records, from the tables and from the cache.
func BenchmarkRecords100(b *testing.B) {
	for name, limit := range map[string]int{"tables": 0, "cache": recordCacheSize} {
		b.Run(name, func(b *testing.B) {
			s, collection := benchStore(b, 20_000)
			s.records.limit = limit
			_, err := s.Records(b.Context(), collection, all(20_000))
			require.NoError(b, err)
			ordinals := make([]uint32, 100)
			b.ReportAllocs()
			for b.Loop() {
				for i := range ordinals {
					ordinals[i] = rand.Uint32N(20_000)
				}
				got, err := s.Records(b.Context(), collection, ordinals)
				if err != nil || len(got) < 90 {
					b.Fatal(len(got), err)
				}
			}
		})
	}
}

func BenchmarkContent(b *testing.B) {
	for _, vectors := range []bool{false, true} {
		b.Run(fmt.Sprint("vectors=", vectors), func(b *testing.B) {
			s, collection := benchStore(b, 20_000)
			b.ReportAllocs()
			for b.Loop() {
				_, err := s.Content(b.Context(), collection, rand.Uint32N(20_000), vectors)
				require.NoError(b, err)
			}
		})
	}
}

func BenchmarkLookup(b *testing.B) {
	s, collection := benchStore(b, 20_000)
	b.ReportAllocs()
	for b.Loop() {
		_, err := s.Lookup(b.Context(), collection, fmt.Sprint("document ", rand.Uint32N(20_000)))
		require.NoError(b, err)
	}
}

func BenchmarkScan20000(b *testing.B) {
	s, collection := benchStore(b, 20_000)
	for b.Loop() {
		n := 0
		for _, err := range s.Scan(b.Context(), collection, 0) {
			require.NoError(b, err)
			n++
		}
		require.Equal(b, 20_000, n)
	}
}
