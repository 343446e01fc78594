package bench

import (
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"sluice/kernels/ref"
)

func TestSentences(t *testing.T) {
	dir := t.TempDir()
	text := "# A heading that is long enough\n\nOne sentence of this\nparagraph is here. Another sentence follows it.\n" +
		"- An item of a list is a paragraph.\n\nAnother sentence follows it.\n\nShort.\n"
	require.NoError(t, os.WriteFile(filepath.Join(dir, "a.md"), []byte(text), 0o644))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "b.json"), []byte(`"This is not a text file at all."`), 0o644))
	got, err := readSentences(dir)
	require.NoError(t, err)
	require.Equal(t, []string{"A heading that is long enough", "One sentence of this paragraph is here.",
		"Another sentence follows it.", "An item of a list is a paragraph."}, got)
}

// filled makes vectors of random ones instead of sentences.
func filled(sentences, rows int) *Vectors {
	const dims = 16
	rng := rand.New(rand.NewPCG(1, 1))
	base := make([]float32, sentences*dims)
	for i := range base {
		base[i] = float32(rng.NormFloat64())
	}
	for i := range sentences {
		ref.Normalize(base[i*dims : (i+1)*dims])
	}
	v := &Vectors{Dims: dims}
	v.fill(base, rows)
	return v
}

func TestFill(t *testing.T) {
	v := filled(2000, 5000)
	require.Equal(t, 2000, v.Sentences)
	require.Equal(t, v.Rows, filled(2000, 5000).Rows, "the same every time")
	for i := v.Sentences; i < 5000; i++ {
		best := float32(-1)
		for j := range v.Sentences {
			best = max(best, ref.Dot(v.Row(i), v.Row(j)))
		}
		require.GreaterOrEqual(t, best, float32(0.7999))
		require.InDelta(t, 1, ref.Dot(v.Row(i), v.Row(i)), 1e-5)
	}
	require.Len(t, filled(2000, 500).topic, 500)
}

func TestAllowed(t *testing.T) {
	v := filled(2000, 20_000)
	for _, correlated := range []bool{false, true} {
		rows := v.Allowed(0.1, correlated, 1)
		require.Len(t, slices.Compact(slices.Clone(rows)), 2000)
		require.True(t, slices.IsSorted(rows))
		require.Equal(t, rows, v.Allowed(0.1, correlated, 1))
		require.NotEqual(t, rows, v.Allowed(0.1, correlated, 2))
		require.Len(t, v.Allowed(1e-9, correlated, 1), 10)
		require.Len(t, v.Allowed(1, correlated, 1), 20_000)
		seen := map[uint16]bool{}
		for _, row := range rows {
			seen[v.topic[row]] = true
		}
		share := float64(len(seen)) / topics
		require.Equal(t, correlated, math.Abs(share-0.1) < 0.05, "share of topics: %v", share)
	}
}

// writeSentences makes a folder with a text of so many random sentences.
func writeSentences(t *testing.T, count int) string {
	t.Helper()
	rng := rand.New(rand.NewPCG(1, 1))
	var text []byte
	for range count {
		for range 8 {
			for range 1 + rng.IntN(6) {
				text = append(text, byte('a'+rng.IntN(26)))
			}
			text = append(text, ' ')
		}
		text = append(text, "and an end.\n\n"...)
	}
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "a.txt"), text, 0o644))
	return dir
}

// TestLoadVectors makes the vectors with a tiny model and finds them in the cache.
func TestLoadVectors(t *testing.T) {
	o := VectorOptions{Model: tinyModel, Corpora: writeSentences(t, 1200), Cache: t.TempDir(), Rows: 1500, Queries: 10}
	made, err := LoadVectors(t.Context(), o)
	require.NoError(t, err)
	require.Len(t, made.Queries, 10*made.Dims)
	require.Len(t, made.Rows, 1500*made.Dims)
	cached, err := LoadVectors(t.Context(), o)
	require.NoError(t, err)
	require.Equal(t, made, cached)
	o.Queries = 1000
	_, err = LoadVectors(t.Context(), o)
	require.ErrorContains(t, err, "too few")
}
