package main

import (
	"math/rand/v2"
	"strings"

	"sluice/bench"
	"sluice/eval"
)

// asked is one search of a mix.
type asked struct{ principal, query string }

const mixSearches = 4096 // searches of a mix that is drawn

// mix is the data set's questions, each by its principal, or what was asked for.
func (c benchServeCommand) mix(dataset *eval.Dataset) (all []asked) {
	for _, one := range dataset.Cases {
		all = append(all, asked{one.Principal, one.Query})
	}
	if c.Skew == 0 && len(c.QueryWords) == 0 {
		return all
	}
	random := rand.New(rand.NewPCG(1, 2))
	principal := bench.Zipf(len(dataset.Principals), c.Skew, random)
	var text strings.Builder
	for _, d := range dataset.Documents {
		text.WriteString(d.Text + "\n")
	}
	drawn := make([]asked, mixSearches)
	for i := range drawn {
		drawn[i] = all[random.IntN(len(all))]
		if c.Skew > 0 {
			drawn[i].principal = dataset.Principals[principal()].Name
		}
	}
	if len(c.QueryWords) > 0 {
		words := bench.Words(text.String(), c.QueryWords, random)
		for i := range drawn {
			drawn[i].query = words()
		}
	}
	return drawn
}

// excerpts are consecutive runs of so many words of the documents.
func excerpts(dataset *eval.Dataset, words int) (texts []string) {
	for _, d := range dataset.Documents {
		for all := strings.Fields(d.Text); len(all) >= words; all = all[words:] {
			texts = append(texts, strings.Join(all[:words], " "))
		}
	}
	return texts
}
