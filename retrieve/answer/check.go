package answer

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"sluice/gpu"
	"sluice/retrieve/answer/ground"
)

// Why sentences are dropped, beside the faults of package ground.
const (
	Malformed    = "malformed"
	Uncited      = "citation" // cites nothing, or what there is not
	Irrelevant   = "relevance"
	OffSubject   = "subject" // cites what has none of the names that are asked about
	NoAmount     = "amount"  // cites what has no amount of money, which is asked for
	NotEntailed  = "entailment"
	NotReadable  = "revoked" // cites what the principal may not read any more
	leastEntails = 0.5
	// sameName is the cosine from which two names are taken for the same thing (Europe,
	// EU; America, US), by all-MiniLM-L6-v2. Measured: docs/answers.md.
	sameName   = 0.45
	maxNames   = 256 // of the question, and of the passages, that are compared
	entailment = "entailment"
)

// standing is a sentence that its citations say.
type standing struct {
	Sentence
	parts map[string]string // what each passage says, where none says all of it
}

// checked returns the sentences that stand, and counts the others by why not.
func (q *answering) checked(ctx context.Context, said []Sentence) ([]Sentence, error) {
	var kept []standing
	for i, s := range said {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		s, reason := q.check(i, s)
		if reason != "" {
			q.response.Dropped[reason]++
			continue
		}
		kept = append(kept, s)
	}
	entailed, err := q.entailed(ctx, kept)
	if err != nil {
		return nil, err
	}
	var standing []Sentence
	for _, s := range entailed {
		standing = append(standing, s.Sentence)
	}
	return standing, nil
}

// check is why the i-th sentence does not stand, "" if it does. Then its
// citations are those of the passages that say it, each by itself, or else each a
// part of it.
func (q *answering) check(i int, s Sentence) (_ standing, reason string) {
	s.Text = strings.Join(strings.Fields(s.Text), " ")
	if i >= maxSentences || len(s.Text) > maxText || len(s.Citations) > maxCitations || !clean(s.Text) {
		return standing{}, Malformed
	}
	if slices.ContainsFunc(s.Citations, func(c string) bool { return q.gone[idOf(c)] }) {
		return standing{}, NotReadable
	}
	cited := q.cited(s)
	say, reason := q.saying(q.language.Claim(ground.Part{Text: s.Text}), cited)
	var parts map[string]string
	if len(say) == 0 {
		say, parts = q.sayingParts(s.Text, cited)
	}
	if len(say) == 0 {
		return standing{}, reason
	}
	return standing{Sentence{s.Text, say}, parts}, ""
}

// saying are the ids of the passages that say a claim, or why the last does not.
func (q *answering) saying(claim *ground.Claim, cited []Passage) (say []string, reason string) {
	reason = Uncited
	for _, p := range cited {
		if fault := q.faultOf(claim, p); fault != "" {
			reason = fault
		} else {
			say = append(say, p.ID)
		}
	}
	return say, reason
}

// sayingParts are the ids of the passages that say a sentence between them, in
// order, and what each says; none if a part of it is said by no passage.
func (q *answering) sayingParts(text string, cited []Passage) (say []string, parts map[string]string) {
	parts = map[string]string{}
	for _, part := range q.language.Parts(text) {
		ids, _ := q.saying(q.language.Claim(part), cited)
		if len(ids) == 0 {
			return nil, nil
		}
		for _, id := range ids {
			parts[id] = strings.TrimSpace(parts[id] + " " + part.Text)
		}
	}
	for _, p := range cited {
		if parts[p.ID] != "" {
			say = append(say, p.ID)
		}
	}
	return say, parts
}

// faultOf is why a passage does not say a claim, or nothing that is asked for.
func (q *answering) faultOf(claim *ground.Claim, p Passage) string {
	if faults := q.source(p).FaultsOf(claim, q.words); len(faults) > 0 {
		return string(faults[0])
	}
	return q.beside[p.ID]
}

// besideTheQuestion is why each passage says nothing that is asked for.
func (q *answering) besideTheQuestion() map[string]string {
	beside, money := map[string]string{}, ground.AsksMoney(q.response.Queries[0])
	for _, p := range q.context {
		beside[p.ID] = q.besideOf(p, money)
	}
	return beside
}

func (q *answering) besideOf(p Passage, money bool) string {
	source := q.source(p)
	switch {
	case len(q.subjects) > 0 && !slices.ContainsFunc(q.subjects, source.Mentions):
		return OffSubject
	case money && !source.HasMoney():
		return NoAmount
	case p.related && p.relevance < q.Relevance:
		return Irrelevant
	}
	return ""
}

// cited are the passages that a sentence cites, each once; none if one of them
// does not exist.
func (q *answering) cited(s Sentence) (cited []Passage) {
	for _, c := range s.Citations {
		id := idOf(c)
		at := slices.IndexFunc(q.context, func(p Passage) bool { return p.ID == id })
		if at < 0 {
			return nil
		}
		if !slices.ContainsFunc(cited, func(p Passage) bool { return p.ID == id }) {
			cited = append(cited, q.context[at])
		}
	}
	return cited
}

func idOf(citation string) string { return strings.Trim(citation, "[] ") }

// clean reports text without characters that are not seen, or that turn the
// direction of others.
func clean(text string) bool {
	return utf8.ValidString(text) && !strings.ContainsFunc(text, func(r rune) bool {
		return unicode.IsControl(r) || unicode.Is(unicode.Cf, r) && r != '\u200d' && r != '\u200c'
	})
}

// entailed keeps what a cited passage entails by itself, as far as a model can
// tell, and the citations of those that do. Of a sentence in parts each passage
// entails its own.
func (q *answering) entailed(ctx context.Context, said []standing) ([]standing, error) {
	if q.Entailment == nil || len(said) == 0 {
		return said, nil
	}
	var pairs []gpu.Pair
	for _, s := range said {
		for _, p := range q.cited(s.Sentence) {
			pairs = append(pairs, gpu.Pair{First: p.shown.whole(), Second: cmp.Or(s.parts[p.ID], s.Text)})
		}
	}
	judged, err := q.Entailment.Classify(ctx, gpu.ScoreRequest{Pairs: pairs, Truncation: gpu.Truncation{LongestFirst: true}})
	if err != nil {
		if ctx.Err() == nil {
			q.degraded("entailment_unavailable")
		}
		return said, ctx.Err()
	}
	return q.entailing(said, judged), nil
}

// entailing are the sentences by a model's judgements, one for each citation.
func (q *answering) entailing(said []standing, judged []gpu.Classification) (kept []standing) {
	label := slices.IndexFunc(q.Entailment.Info().Labels, IsEntailment)
	for _, s := range said {
		cited := s.Citations
		s.Citations = nil
		for i, id := range cited {
			if judged[i].Probabilities()[label] >= leastEntails {
				s.Citations = append(s.Citations, id)
			}
		}
		judged = judged[len(cited):]
		if len(s.Citations) == len(cited) || len(s.Citations) > 0 && s.parts == nil {
			kept = append(kept, s)
		} else {
			q.response.Dropped[NotEntailed]++
		}
	}
	return kept
}

// IsEntailment reports the label of a classifier that checks answers.
func IsEntailment(label string) bool { return strings.EqualFold(label, entailment) }

// unmentioned reports that a name or a rank that is asked about is in no
// passage, nor, of a name, one that means the same. The others become the
// subjects of what is answered.
func (q *answering) unmentioned(ctx context.Context) bool {
	var names, ranks []string
	for _, query := range q.response.Queries {
		names, ranks = append(names, ground.Names(query, q.language)...), append(ranks, ground.Ranks(query)...)
	}
	var alike [][]string
	if len(names) > 0 {
		alike = q.alike(ctx, names[:min(len(names), maxNames)])
	}
	for i, name := range slices.Concat(names, ranks) {
		var same []string
		if i < len(alike) {
			same = alike[i]
		}
		if slices.ContainsFunc(q.context, func(p Passage) bool { return q.source(p).Mentions(name) }) {
			q.subjects = append(append(q.subjects, name), same...)
		} else if len(same) == 0 {
			return true
		}
	}
	return false
}

// alike returns, for each name, those of the passages that mean the same; none
// where that cannot be told.
func (q *answering) alike(ctx context.Context, names []string) [][]string {
	var whole strings.Builder
	for _, p := range q.context {
		whole.WriteString(p.shown.whole() + "\n")
	}
	there := ground.Capitals(whole.String())
	there = there[:min(len(there), maxNames)]
	alike := make([][]string, len(names))
	embedded, err := q.Embedder.Embed(ctx, gpu.Request{Texts: slices.Concat(names, there)})
	if err != nil {
		return alike
	}
	for i := range names {
		for j, e := range embedded[len(names):] {
			if dot(embedded[i].Vector, e.Vector) >= sameName {
				alike[i] = append(alike[i], there[j])
			}
		}
	}
	return alike
}

// dot is the cosine of vectors of length 1.
func dot(a, b []float32) (sum float64) {
	for i := range a {
		sum += float64(a[i]) * float64(b[i])
	}
	return sum
}
