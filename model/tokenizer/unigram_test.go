package tokenizer

import (
	"encoding/json"
	"math"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"
)

// bestScore tries every way to cut word into pieces.
func bestScore(scores map[string]float64, unknown float64, word string) float64 {
	if word == "" {
		return 0
	}
	best := math.Inf(-1)
	_, size := utf8.DecodeRuneInString(word)
	if _, ok := scores[word[:size]]; !ok {
		best = unknown + bestScore(scores, unknown, word[size:])
	}
	for n := 1; n <= len(word); n++ {
		if score, ok := scores[word[:n]]; ok {
			best = max(best, score+bestScore(scores, unknown, word[n:]))
		}
	}
	return best
}

func TestUnigramIsTheBestWay(t *testing.T) {
	word := rapid.StringOfN(rapid.SampledFrom([]rune("abcé▁")), 1, 8, -1)
	rapid.Check(t, func(t *rapid.T) {
		scores := rapid.MapOfN(word, rapid.Float64Range(-20, -1), 1, 20).Draw(t, "scores")
		delete(scores, "<unk>")
		vocab, lowest := [][2]any{{"<unk>", 0}}, 0.0
		for piece, score := range scores {
			vocab, lowest = append(vocab, [2]any{piece, score}), min(lowest, score)
		}
		data, err := json.Marshal(map[string]any{"type": "Unigram", "unk_id": 0, "vocab": vocab})
		if err != nil {
			t.Fatal(err)
		}
		u, v, err := readUnigram(component{"Unigram", data})
		if err != nil {
			t.Fatal(err)
		}
		text := word.Draw(t, "text")
		want := bestScore(scores, lowest-unknownPenalty, text)
		if got := scoreOf(t, u, v, text); math.Abs(got-want) > 1e-9 {
			t.Fatalf("%q: score %v, want %v", text, got, want)
		}
	})
}

// scoreOf is the score of the pieces of text, which must be those of the
// vocabulary, or unknown and not next to another unknown one.
func scoreOf(t *rapid.T, u *unigram, v *vocabulary, text string) float64 {
	var w workspace
	sum, end, last := 0.0, 0, int32(-1)
	for _, p := range u.tokenize(&w, nil, text) {
		piece := text[p.start:p.end]
		switch {
		case int(p.start) != end || p.id == u.unknown && last == u.unknown:
			t.Fatalf("%q: piece %q (%d) at %d", text, piece, p.id, p.start)
		case p.id == u.unknown:
			sum += u.unknownScore * float64(utf8.RuneCountInString(piece))
		case v.tokens[p.id] != piece:
			t.Fatalf("%q: piece %q is %q", text, piece, v.tokens[p.id])
		default:
			sum += u.scores[p.id]
		}
		end, last = int(p.end), p.id
	}
	if end != len(text) {
		t.Fatalf("%q: pieces end at %d", text, end)
	}
	return sum
}

// TestRoundedTwice: the last digit of these is other than that of the nearest
// float64.
func TestRoundedTwice(t *testing.T) {
	for number, want := range map[string]float64{
		"0": 0, "-0.0": math.Copysign(0, -1), "12": 12, "-2.5": -2.5, "1e3": 1000, "2.5E-2": 0.025, "1E+2": 100,
		"0.30000000000000004":        30000000000000004.0 / 1e17,
		"123456789012345678901":      1.2345678901234567e20,
		"0.123456789012345678901234": 12345678901234567890.0 / 1e20,
	} {
		if got := roundedTwice(number); got != want || math.Signbit(got) != math.Signbit(want) {
			t.Errorf("%s: %v, want %v", number, got, want)
		}
	}
}
