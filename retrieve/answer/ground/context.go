package ground

import "math"

// Context is what sentences are judged in: the words of the question, and how
// rare words are in the sources that were shown. The zero value asks nothing, and
// all words are alike to it.
type Context struct {
	asked map[string]bool
	shown float64
	in    map[string]float64 // sources that have a term
}

// NewContext is that of answers to a question out of sources.
func NewContext(question string, sources []*Source, l *Language) Context {
	c := Context{asked: map[string]bool{}, shown: float64(len(sources)), in: map[string]float64{}}
	for _, sentence := range sentences(bounded(question)) {
		for term := range l.read(sentence).terms {
			c.asked[term] = true
		}
	}
	for _, s := range sources {
		for term := range s.in {
			c.in[term]++
		}
	}
	return c
}

// weightParts are those of a weight of 1. Sums of whole parts are exact, so that the
// order in which a map yields its terms judges no sentence.
const weightParts = 1 << 20

// weight of a term: its inverse document frequency in what was shown, smoothed so
// that one source makes no word worthless.
func (c Context) weight(term string) float64 {
	return math.Round(weightParts*(1+math.Log((c.shown+1)/(c.in[term]+1)))) / weightParts
}
