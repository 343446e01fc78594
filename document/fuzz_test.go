package document

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func FuzzNormalize(f *testing.F) {
	for _, s := range []string{"", "\uFEFF a\r\n\x00b\u2028", "\r\uFEFF\n", "a\xff", "\u00a0x\u0085"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		once, err := Normalize(raw)
		if err != nil {
			require.ErrorIs(t, err, ErrNotUTF8)
			return
		}
		twice, err := Normalize([]byte(once))
		require.NoError(t, err)
		require.Equal(t, once, twice)
	})
}

func FuzzParseMarkdown(f *testing.F) {
	fuzzParse(f, "markdown", "- > 1. a\n\n\t# b\n  ---\n", "a\n-\n|a|\n|-|\n=", "---\na: b\n---\n\tx", ">\t-\t\t```\nb")
}

func FuzzParseHTML(f *testing.F) {
	fuzzParse(f, "html", "<ul><dd><blockquote><li><h1><pre></ul>x<table><tr>y</td>", "<h2>a<div hidden><div></h2>", "<pre>\n  x<br>")
}

func FuzzParseText(f *testing.F) {
	fuzzParse(f, "text", "a\n\n b\r\rc", "\u3000\n\na")
}

// fuzzParse checks the invariants on whatever the parser makes of its input,
// beginning with the golden inputs.
func fuzzParse(f *testing.F, format string, seeds ...string) {
	golden, err := os.ReadFile(filepath.Join("testdata", "golden", format))
	require.NoError(f, err)
	f.Add(golden)
	for _, s := range seeds {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		doc, err := Parse(format, raw)
		if err != nil {
			require.ErrorIs(t, err, ErrNotUTF8)
			return
		}
		require.NoError(t, Check(doc))
		if text, _ := Normalize(raw); format != "html" {
			require.Equal(t, text, doc.Text)
		}
	})
}
