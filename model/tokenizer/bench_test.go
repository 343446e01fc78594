package tokenizer

import (
	"strings"
	"testing"
)

// english is the paragraphs and sentences of the golden texts, 94 kB.
func english(t testing.TB) []string {
	type row struct{ Group, Text string }
	var texts []string
	for _, r := range readLines[row](t, "bert_uncased", "ids.jsonl") {
		if strings.HasPrefix(r.Group, "para") || strings.HasPrefix(r.Group, "sent") {
			texts = append(texts, r.Text)
		}
	}
	return texts
}

func BenchmarkEncode(b *testing.B) { benchmarkEncode(b, english(b)) }

// BenchmarkEncodeLong is of all of them as one text.
func BenchmarkEncodeLong(b *testing.B) {
	benchmarkEncode(b, []string{strings.Join(english(b), "\n\n")})
}

func benchmarkEncode(b *testing.B, texts []string) {
	for _, model := range models {
		tok := load(b, model)
		b.Run(model, func(b *testing.B) {
			b.SetBytes(int64(len(strings.Join(texts, ""))))
			b.ReportAllocs()
			var e Encoding
			for b.Loop() {
				for _, text := range texts {
					if err := tok.Encode(&e, text, Options{MaxLength: 256}); err != nil {
						b.Fatal(err)
					}
				}
			}
		})
	}
}

func BenchmarkLoad(b *testing.B) {
	for b.Loop() {
		load(b, "bert_uncased")
	}
}
