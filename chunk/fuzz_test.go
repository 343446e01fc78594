package chunk

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"sluice/document"
)

func FuzzChunk(f *testing.F) {
	formats := own
	for i, format := range formats {
		golden, err := os.ReadFile(filepath.Join("testdata", "golden", format))
		require.NoError(f, err)
		f.Add(uint(i), uint(1), string(golden))
		f.Add(uint(i), uint(100), "# t\n\n- {a. }\n{日}\n\n```\n{b }")
	}
	f.Fuzz(func(t *testing.T, format, repeat uint, source string) {
		name := formats[format%uint(len(formats))]
		doc, err := document.Parse(name, []byte(expandOnce(source, int(repeat%300))))
		if errors.Is(err, document.ErrNotUTF8) {
			return
		}
		require.NoError(t, err)
		chunker := For(name)
		chunks := chunker.Chunk(doc)
		require.NoError(t, check(doc, chunks))
		require.Equal(t, chunks, chunker.Chunk(doc), "the chunker is no pure function")
	})
}

// expandOnce is expand for sources of any size: it does not multiply itself.
func expandOnce(s string, n int) string {
	if len(s) > 4<<10 {
		return s
	}
	return expand(s, n)
}
