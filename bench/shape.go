// Package bench measures this program and its peers on the same work, in turns.
package bench

import (
	"fmt"
	"math"
	"math/rand/v2"
)

// Shape is a batch of token sequences.
type Shape struct {
	Name    string
	Lengths []int
}

// Even is sequences of one length, named as in "32x128".
func Even(sequences, length int) Shape {
	s := Shape{Name: fmt.Sprintf("%dx%d", sequences, length)}
	for range sequences {
		s.Lengths = append(s.Lengths, length)
	}
	return s
}

// Mixed is sequences whose lengths vary as those of a corpus do: log-normal
// with a median of 60 tokens, unsorted, cut at 256.
func Mixed(sequences int) Shape {
	r := rand.New(rand.NewPCG(1, 1))
	s := Shape{Name: "mixed"}
	for range sequences {
		s.Lengths = append(s.Lengths, min(max(int(60*math.Exp(0.8*r.NormFloat64())), 4), 256))
	}
	return s
}

// Tokens is the number of tokens, padding not counted.
func (s Shape) Tokens() (n int) {
	for _, length := range s.Lengths {
		n += length
	}
	return n
}

// ids draws the sequences from a vocabulary.
func (s Shape) ids(vocabulary int) [][]int32 {
	r := rand.New(rand.NewPCG(2, uint64(len(s.Lengths))))
	sequences := make([][]int32, len(s.Lengths))
	for i, length := range s.Lengths {
		for range length {
			sequences[i] = append(sequences[i], int32(r.IntN(vocabulary)))
		}
	}
	return sequences
}
