package fidelity

import (
	"fmt"
	"strings"
	"unicode"
)

// maxWords bounds a text: time grows with the product of two.
const maxWords = 50_000

// sameCaption is how alike a caption is that counts as found.
const sameCaption = 0.8

// anchorWords are how many first words tell a block.
const anchorWords = 5

// wordsOf are the letters and digits of a text in lower case.
func wordsOf(text string) []string {
	return strings.FieldsFunc(strings.ToLower(text), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsNumber(r) })
}

// integrity is the text integrity: 1 − the distance of both sequences of words in
// insertions and deletions over the words of both, that is, twice their longest
// common subsequence over the words of both. It fails with ErrTooLarge.
func integrity(want, got []string) (float64, error) {
	if n := max(len(want), len(got)); n > maxWords {
		return 0, fmt.Errorf("%w: a text of %d words, the most is %d", ErrTooLarge, n, maxWords)
	}
	if len(want)+len(got) == 0 {
		return 1, nil
	}
	return 2 * float64(common(numbered(want, got))) / float64(len(want)+len(got)), nil
}

// numbered gives equal words of both equal numbers.
func numbered(a, b []string) (x, y []int) {
	numbers := map[string]int{}
	number := func(words []string) []int {
		all := make([]int, len(words))
		for i, w := range words {
			if _, known := numbers[w]; !known {
				numbers[w] = len(numbers)
			}
			all[i] = numbers[w]
		}
		return all
	}
	return number(a), number(b)
}

// common is the length of the longest common subsequence.
func common(a, b []int) int {
	row := make([]int, len(b)+1)
	for _, x := range a {
		diagonal := 0
		for j, y := range b {
			above := row[j+1]
			if x == y {
				row[j+1] = diagonal + 1
			} else {
				row[j+1] = max(above, row[j])
			}
			diagonal = above
		}
	}
	return row[len(b)]
}

// captions is F1 of the captions: one is found if one of those read, each once,
// has an integrity of sameCaption beside it.
func captions(want, got []string) float64 {
	taken, found := make([]bool, len(got)), 0
	for _, w := range want {
		for j, g := range got {
			if alike, err := integrity(wordsOf(w), wordsOf(g)); err == nil && !taken[j] && alike >= sameCaption {
				taken[j] = true
				found++
				break
			}
		}
	}
	return 2 * float64(found) / float64(len(want)+len(got))
}

// order is the share of the pairs of blocks that are read in the order that is
// wanted, (1 + Kendall's τ) / 2. A block is told by its first words, and counts
// if both texts have these once; of fewer than two such blocks nothing is known.
func order(blocks []string, want, got []string) (share float64, known bool) {
	all, kept := anchors(blocks, want, got), 0
	for i, later := range all {
		for _, earlier := range all[:i] {
			if earlier.at < later.at {
				kept++
			}
		}
	}
	pairs := len(all) * (len(all) - 1) / 2
	return float64(kept) / float64(max(pairs, 1)), pairs > 0
}

// anchor is the first words of a block, and where they are read.
type anchor struct {
	words string
	at    int
}

// anchors of the blocks that can be told, in the order that is wanted.
func anchors(blocks []string, want, got []string) (all []anchor) {
	wanted, read := places(want), places(got)
	for _, block := range blocks {
		words := wordsOf(block)
		if len(words) < anchorWords {
			continue
		}
		first := strings.Join(words[:anchorWords], " ")
		if len(wanted[first]) == 1 && len(read[first]) == 1 {
			all = append(all, anchor{first, read[first][0]})
		}
	}
	return all
}

// places of each run of anchorWords.
func places(words []string) map[string][]int {
	all := map[string][]int{}
	for i := range max(len(words)-anchorWords+1, 0) {
		anchor := strings.Join(words[i:i+anchorWords], " ")
		all[anchor] = append(all[anchor], i)
	}
	return all
}
