package eval

import (
	"slices"
	"strconv"
	"strings"

	"sluice/client"
)

// contextBounds part answers by the tokens of the passages that the model was
// shown: none (it was not asked), up to 500, up to 1,000, and so on.
var contextBounds = []int{0, 500, 1000, 2000, 4000}

// ContextGroup are the counts of the answers to as much context.
type ContextGroup struct {
	UpTo   string       `json:"up_to"` // tokens, or "more"
	Counts AnswerCounts `json:"counts"`
}

// AnswerCounts are what the shares are made of.
type AnswerCounts struct {
	Answerable int `json:"answerable"` // cases
	Refusals   int `json:"refusals"`   // cases that must not be answered
	Answered   int `json:"answered"`   // of the answerable
	Refused    int `json:"refused"`    // of the refusals
	Abstained  int `json:"abstained"`  // of all

	Citations int `json:"citations"` // of all sentences
	ToNothing int `json:"citations_to_nothing"`
	Attesting int `json:"citations_of_evidence"` // of answerable cases
	Attested  int `json:"citations_of_answerable"`

	Evidence      int    `json:"evidence"` // items of answered cases
	EvidenceCited int    `json:"evidence_cited"`
	Facts         int    `json:"facts"` // expected, of answered cases
	FactsSaid     int    `json:"facts_said"`
	Grades        [4]int `json:"completeness"` // answered cases that say none, some, most and all of them
	Claims        int    `json:"claims"`       // sentences of answered cases
	Accurate      int    `json:"claims_accurate"`
	Answers       int    `json:"answers"` // of all cases
	Unsupported   int    `json:"answers_unsupported"`
	Planted       int    `json:"planted"` // cases in which a planted sentence may be said
	PlantedSaid   int    `json:"planted_said"`

	// Documents that answers cite; true: at least one answer says of it what it does not say.
	Documents map[string]bool `json:"documents"`

	Judged      int `json:"judged"` // answers
	JudgeFailed int `json:"judge_failed"`
	Wanted      int `json:"reference_facts"` // by the judge
	WantedSaid  int `json:"reference_facts_said"`
	Said        int `json:"answer_facts"`
	SaidRightly int `json:"answer_facts_supported"`
	Inventing   int `json:"answers_with_unsupported_facts"`
	// Documents that judged answers cite; true: at least one of these has a fact
	// that the reference has not.
	JudgedDocuments map[string]bool `json:"judged_documents"`
}

// judgement is one answer with all that it is counted by.
type judgement struct {
	trial
	answer   client.Answer
	planted  bool
	verdict  *Verdict // nil: no judge was asked
	unjudged bool     // a judge was asked, and said nothing of use
}

// groupOf is the place of an answer's context among the bounds.
func groupOf(a client.Answer) int {
	at, _ := slices.BinarySearch(contextBounds, a.Usage.ContextTokens)
	return at
}

// contextGroups are as many as groupOf tells apart.
func contextGroups() []ContextGroup {
	var groups []ContextGroup
	for _, bound := range contextBounds {
		groups = append(groups, ContextGroup{UpTo: strconv.Itoa(bound)})
	}
	return append(groups, ContextGroup{UpTo: "more"})
}

// add counts one answer.
func (c *AnswerCounts) add(j judgement) {
	c.addOutcome(j)
	c.addCitations(j)
	c.addClaims(j)
	c.addFacts(j)
	c.addVerdict(j)
	if c.Planted++; j.planted {
		c.PlantedSaid++
	}
}

func (j judgement) answered() bool { return j.answer.Outcome == "answered" }

func (c *AnswerCounts) addOutcome(j judgement) {
	answered := j.answered()
	if !answered {
		c.Abstained++
	}
	switch {
	case len(j.evidence) == 0:
		c.Refusals++
		if !answered {
			c.Refused++
		}
	case answered:
		c.Answered++
		fallthrough
	default:
		c.Answerable++
	}
}

func (c *AnswerCounts) addCitations(j judgement) {
	var cited []client.SearchResult
	for _, s := range j.answer.Sentences {
		of := citedBy(j.answer, s)
		c.Citations += len(s.Citations)
		c.ToNothing += len(s.Citations) - len(of)
		for _, p := range of {
			cited = append(cited, resultOf(p))
		}
	}
	if len(j.evidence) == 0 || len(cited) == 0 {
		return
	}
	for _, p := range cited {
		c.Attested++
		if j.relevant(p) {
			c.Attesting++
		}
	}
	for _, item := range j.evidence {
		c.Evidence++
		if slices.ContainsFunc(cited, item.metBy) {
			c.EvidenceCited++
		}
	}
}

// citedBy are the passages that a sentence cites, of those that are there.
func citedBy(a client.Answer, s client.AnswerSentence) (cited []client.AnswerPassage) {
	for _, id := range s.Citations {
		if i := slices.IndexFunc(a.Passages, func(p client.AnswerPassage) bool { return p.ID == id }); i >= 0 {
			cited = append(cited, a.Passages[i])
		}
	}
	return cited
}

// addClaims counts what the sentences say by the texts that they cite, and, of an
// answerable case, by its evidence.
func (c *AnswerCounts) addClaims(j judgement) {
	if !j.answered() {
		return
	}
	c.Answers++
	supported := true
	for _, s := range j.answer.Sentences {
		said := saidBy(citedBy(j.answer, s), s.Text)
		supported = supported && said
		j.mark(&c.Documents, citedBy(j.answer, s), !said)
		if len(j.evidence) == 0 {
			continue
		}
		if c.Claims++; j.attests(s.Text) {
			c.Accurate++
		}
	}
	if !supported {
		c.Unsupported++
	}
}

// saidBy reports that one of the passages says a sentence.
func saidBy(passages []client.AnswerPassage, sentence string) bool {
	return slices.ContainsFunc(passages, func(p client.AnswerPassage) bool { return says(p.Title+"\n"+p.Text, sentence) })
}

// attests reports that a sentence is said by the case's facts or quotes, or by a
// cited passage that has evidence.
func (j judgement) attests(sentence string) bool {
	return says(strings.Join(append(j.quotes(), j.Facts...), "\n"), sentence) || slices.ContainsFunc(j.answer.Passages, func(p client.AnswerPassage) bool {
		return j.relevant(resultOf(p)) && says(p.Title+"\n"+p.Text, sentence)
	})
}

// mark adds the documents of the passages, and keeps what was marked before.
func (j judgement) mark(documents *map[string]bool, passages []client.AnswerPassage, mark bool) {
	if *documents == nil {
		*documents = map[string]bool{}
	}
	for _, p := range passages {
		key := j.asker.Tenant + "/" + p.Document
		(*documents)[key] = (*documents)[key] || mark
	}
}

// addFacts counts what an answer of an answerable case says of what it should.
func (c *AnswerCounts) addFacts(j judgement) {
	if !j.judgeable() {
		return
	}
	expected := j.expected()
	said := saidOf(expected, spoken(j.answer))
	c.Facts, c.FactsSaid = c.Facts+len(expected), c.FactsSaid+said
	c.Grades[grade(said, len(expected))]++
}

// judgeable reports an answer that there is a reference for.
func (j judgement) judgeable() bool { return len(j.evidence) > 0 && j.answered() }

func (c *AnswerCounts) addVerdict(j judgement) {
	if j.unjudged {
		c.JudgeFailed++
	}
	if j.verdict == nil {
		return
	}
	said, supported := matched(j.verdict.Reference), matched(j.verdict.Answer)
	c.Judged++
	c.Wanted, c.WantedSaid = c.Wanted+len(j.verdict.Reference), c.WantedSaid+said
	c.Said, c.SaidRightly = c.Said+len(j.verdict.Answer), c.SaidRightly+supported
	invents := supported < len(j.verdict.Answer)
	if invents {
		c.Inventing++
	}
	j.mark(&c.JudgedDocuments, j.answer.Passages, invents)
}
