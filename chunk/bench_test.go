package chunk

import (
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sluice/document"
)

// BenchmarkParseAndChunk reports pages (500 words) for each second, and for each
// second of processor time: machines are shared.
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
			before := processorTime(b)
			for b.Loop() {
				for _, s := range sources {
					doc, err := document.Parse(s.format, s.raw)
					require.NoError(b, err)
					chunker := For(s.format)
					chunker.Chunk(doc)
				}
			}
			pages := float64(words) / 500 * float64(b.N)
			b.ReportMetric(pages/b.Elapsed().Seconds(), "pages/s")
			b.ReportMetric(pages/(processorTime(b)-before).Seconds(), "pages/cpu-s")
		})
	}
}

// processorTime is what this process has used so far.
func processorTime(b *testing.B) time.Duration {
	var usage syscall.Rusage
	require.NoError(b, syscall.Getrusage(syscall.RUSAGE_SELF, &usage))
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}
