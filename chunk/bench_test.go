package chunk

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"sluice/document"
)

// BenchmarkParseAndChunk reports pages of 500 words a second, on one core.
func BenchmarkParseAndChunk(b *testing.B) {
	for name, load := range map[string]func(testing.TB) []source{
		"KEPs": keps,
		"HTML": func(t testing.TB) []source { return multiCorpus(t, "html", "html") },
	} {
		b.Run(name, func(b *testing.B) {
			sources := load(b)
			words := 0
			for _, s := range sources {
				words += len(strings.Fields(string(s.raw)))
			}
			b.ReportAllocs()
			for b.Loop() {
				for _, s := range sources {
					doc, err := document.Parse(s.format, s.raw)
					require.NoError(b, err)
					chunker, err := For(s.format)
					require.NoError(b, err)
					chunker.Chunk(doc)
				}
			}
			b.ReportMetric(float64(words)/500*float64(b.N)/b.Elapsed().Seconds(), "pages/s")
		})
	}
}
