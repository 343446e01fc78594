package pdf

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
	"unicode"

	"github.com/stretchr/testify/require"

	"sluice/document"
)

// BenchmarkMultiCorpus reads the PDFs of a checkout of
// github.com/udayallu/RAG-Multi-Corpus, which SLUICE_RAG_MULTI_CORPUS names, and
// compares their words and tables with those of the Markdown beside them:
// integrity is twice the longest common sequence of words over the words of
// both, tables the mean similarity of the cells of the tables, one by one.
func BenchmarkMultiCorpus(b *testing.B) {
	root := os.Getenv("SLUICE_RAG_MULTI_CORPUS")
	if root == "" {
		b.Skip("SLUICE_RAG_MULTI_CORPUS names no checkout")
	}
	paths, err := filepath.Glob(filepath.Join(root, "datasets", "*", "pdf", "*.pdf"))
	require.NoError(b, err)
	require.NotEmpty(b, paths)
	r := shared(b)
	if _, err := r.Parse(b.Context(), read(b, paths[0])); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		pages, took, cpu := 0, time.Duration(0), time.Duration(0)
		var integrity, similar []float64
		for _, path := range paths {
			raw, started, used := read(b, path), time.Now(), processTime(b)
			doc, err := r.Parse(b.Context(), raw)
			took, cpu = took+time.Since(started), cpu+processTime(b)-used
			require.NoError(b, err, path)
			require.NoError(b, document.Check(doc), path)
			pages += len(doc.Pages)
			source, err := document.Parse("markdown", read(b, strings.TrimSuffix(strings.Replace(path, "/pdf/", "/md/", 1), ".pdf")+".md"))
			require.NoError(b, err)
			integrity = append(integrity, common(wordsOf(source.Text), wordsOf(doc.Text)))
			for i, want := range tablesOf(source.Blocks) {
				score := 0.0
				if found := tablesOf(doc.Blocks); i < len(found) {
					score = common(cellsOf(want), cellsOf(found[i]))
				}
				similar = append(similar, score)
			}
			if n := integrity[len(integrity)-1]; n < 0.95 {
				b.Logf("%.3f %s", n, path)
			}
		}
		b.ReportMetric(float64(pages)/took.Seconds(), "pages/s")
		b.ReportMetric(float64(cpu.Microseconds())/1000/float64(pages), "cpu-ms/page")
		b.ReportMetric(mean(integrity), "integrity")
		b.ReportMetric(mean(similar), "tables")
		b.Logf("%d files, %d pages, %d tables", len(paths), pages, len(similar))
	}
}

// processTime is the CPU time that the process has taken.
func processTime(b *testing.B) time.Duration {
	var u syscall.Rusage
	require.NoError(b, syscall.Getrusage(syscall.RUSAGE_SELF, &u))
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func read(t testing.TB, path string) []byte {
	t.Helper()
	raw, err := os.ReadFile(path)
	require.NoError(t, err)
	return raw
}

func mean(values []float64) float64 {
	sum := 0.0
	for _, v := range values {
		sum += v
	}
	return sum / float64(max(len(values), 1))
}

func wordsOf(text string) []string {
	return strings.FieldsFunc(strings.ToLower(text), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsNumber(r) })
}

func tablesOf(blocks []*document.Block) []*document.Grid {
	var grids []*document.Grid
	for _, b := range blocks {
		if b.Grid != nil {
			grids = append(grids, b.Grid)
		}
		grids = append(grids, tablesOf(b.Children)...)
	}
	return grids
}

// cellsOf lists the cells row by row, with an end for each row.
func cellsOf(g *document.Grid) []string {
	var cells []string
	for _, row := range g.Rows {
		for _, c := range row.Cells {
			cells = append(cells, strings.Join(wordsOf(c), " "))
		}
		cells = append(cells, "\n")
	}
	return cells
}

// common is twice the longest common subsequence over the lengths of both.
func common(a, b []string) float64 {
	row := make([]int, len(b)+1)
	for _, x := range a {
		diagonal := 0
		for j, y := range b {
			above := row[j+1]
			if x == y {
				row[j+1] = diagonal + 1
			} else {
				row[j+1] = max(row[j+1], row[j])
			}
			diagonal = above
		}
	}
	return 2 * float64(row[len(b)]) / float64(max(len(a)+len(b), 1))
}
