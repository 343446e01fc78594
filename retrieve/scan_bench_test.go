package retrieve

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"sluice/index/late"
	"sluice/store"
)

// A scan of every page that may be read: a document of ten pages, a page of so
// many token vectors of 128 dimensions, a query of 16.
func BenchmarkLateScan(b *testing.B) {
	for _, shape := range []struct{ pages, tokens, bits int }{{1000, 180, 1}, {1000, 180, 8}, {1000, 1030, 1}, {1000, 1030, 8}} {
		b.Run(fmt.Sprintf("pages=%d/tokens=%d/bits=%d", shape.pages, shape.tokens, shape.bits), func(b *testing.B) {
			h := newHouse(b)
			name := "pages"
			c, _, err := h.store.CreateCollection(b.Context(), tenant, name, store.Settings{Analyzer: "english", CodeBits: shape.bits, Own: store.Own{Multi: 128}})
			require.NoError(b, err)
			h.id = c.ID
			random := rand.New(rand.NewPCG(1, 1))
			coder := late.NewCoder(late.Kind{Dimensions: 128, Bits: shape.bits})
			for i := range shape.pages / 10 {
				_, err := h.store.Commit(b.Context(), c.ID, randomPages(random, coder, fmt.Sprint(i), 10, shape.tokens))
				require.NoError(b, err)
			}
			h.awaitAll()
			request := Request{Principal: person("me"), Collection: name, Vectors: normals(random, 16*128), Columns: 128, K: 10}
			b.ResetTimer()
			for b.Loop() {
				r, err := h.engine.Search(context.Background(), request)
				require.NoError(b, err)
				require.Len(b, r.Results, 10)
			}
			b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N*shape.pages), "µs/page")
		})
	}
}

func normals(random *rand.Rand, n int) []float32 {
	x := make([]float32, n)
	for i := range x {
		x[i] = float32(random.NormFloat64())
	}
	return x
}

func randomPages(random *rand.Rand, coder *late.Coder, key string, pages, tokens int) store.Version {
	v := version(key, readable(), make([]string, pages)...)
	v.Model, v.Dimensions, v.Vectors = store.Settings{Own: store.Own{Multi: 1}}.Model(""), coder.Dimensions, normals(random, pages*coder.Dimensions)
	for range pages {
		v.Codes = append(v.Codes, coder.Encode(normals(random, tokens*coder.Dimensions), make([]bool, tokens)))
	}
	return v
}
