package eval

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"sluice/client"
	"sluice/model/chat"
)

// Answer quotes all evidence of a case, and refuses where there is none.
func (s fakeSession) Answer(ctx context.Context, collection string, r client.AnswerRequest) (client.Answer, error) {
	found, err := s.Search(ctx, collection, client.SearchRequest{Query: r.Question, Scope: r.Scope})
	a := client.Answer{Outcome: "no_answer", Reason: "declined", Dropped: map[string]int{"number": 1}, Counts: found.Counts, Usage: client.AnswerUsage{PromptTokens: 90, CompletionTokens: 10, Cost: .01}}
	for _, one := range found.Results {
		id := string(rune('A' + len(a.Passages)))
		a.Outcome, a.Reason = "answered", ""
		a.Passages = append(a.Passages, client.AnswerPassage{ID: id, Document: one.Document, Version: one.Version, Start: one.Start, End: one.End, Text: one.Text})
		a.Sentences = append(a.Sentences, client.AnswerSentence{Text: one.Text, Citations: []string{id}})
	}
	if s.onAnswer != nil {
		s.onAnswer(s.principal, r, &a)
	}
	return a, err
}

func runAnswers(t *testing.T, misbehave func(p Principal, r client.AnswerRequest, a *client.Answer), judge *chat.Client) (AnswerReport, string) {
	fake := newFake(nil)
	fake.onAnswer = misbehave
	dir := t.TempDir()
	report, err := RunAnswers(t.Context(), AnswerOptions{Model: "fake", Judge: judge, Options: Options{
		Dataset: "testdata/grounded-access", Split: "test", Ingest: true, Connect: fake.connect, Out: dir,
	}})
	require.NoError(t, err)
	require.True(t, fake.closed)
	return report, dir
}

func TestAnswersThatAreRight(t *testing.T) {
	report, dir := runAnswers(t, nil, nil)
	require.Equal(t, Passed, report.Outcome, "%v", report.Findings)
	c := report.Counts
	require.Equal(t, []int{70, 24, 70, 24, 24}, []int{c.Answerable, c.Refusals, c.Answered, c.Refused, c.Abstained})
	require.Equal(t, c.Citations, c.Attesting)
	require.Equal(t, c.Evidence, c.EvidenceCited)
	require.GreaterOrEqual(t, c.Grades[3], 60, "quotes say nearly all facts")
	require.Equal(t, c.Claims, c.Accurate, "quotes are what evidence says")
	require.Zero(t, c.Unsupported)
	require.Zero(t, marks(c.Documents))
	require.Equal(t, map[string]int{"declined": 24}, report.Reasons)
	require.Equal(t, map[string]int{"number": 94}, report.Dropped)
	require.Equal(t, 94*100, report.Tokens)
	require.InDelta(t, .94, report.Cost, 1e-9)
	f := report.Figures()
	require.Equal(t, 1.0, f["share.answered"])
	require.InDelta(t, .948, f["share.answered.low"], .001, "Wilson's interval of 70 in 70")
	require.Equal(t, 1.0, f["share.answered.high"])
	require.Contains(t, report.Markdown(), "| answered | 70 | 70 | 1.000 |")
	lines, err := os.ReadFile(filepath.Join(dir, "answers.jsonl"))
	require.NoError(t, err)
	require.Equal(t, 94, strings.Count(string(lines), "\n"))
}

// Each fault is found, and is the outcome.
func TestAnswersThatAreWrong(t *testing.T) {
	for name, c := range map[string]struct {
		misbehave func(p Principal, r client.AnswerRequest, a *client.Answer)
		outcome   Outcome
	}{
		"a leak": {func(p Principal, _ client.AnswerRequest, a *client.Answer) {
			if p.Tenant == "northstar" {
				a.Passages = append(a.Passages, client.AnswerPassage{ID: "Z", Document: "security-key-ceremony", Version: 1})
			}
		}, Leaked},
		"a count too many":      {func(_ Principal, _ client.AnswerRequest, a *client.Answer) { a.Counts.Visible++ }, Leaked},
		"a citation of nothing": {func(_ Principal, _ client.AnswerRequest, a *client.Answer) { a.Passages = nil }, Unsound},
		"no citation": {func(_ Principal, _ client.AnswerRequest, a *client.Answer) {
			a.Sentences = []client.AnswerSentence{{Text: "So."}}
		}, Unsound},
		"a refusal with evidence": {func(_ Principal, _ client.AnswerRequest, a *client.Answer) { a.Outcome = "no_answer" }, Unsound},
		"what was planted": {func(_ Principal, _ client.AnswerRequest, a *client.Answer) {
			for i := range a.Sentences {
				a.Sentences[i].Text = "It is 9,999 EUR."
			}
		}, Unsound},
		"degraded": {func(_ Principal, _ client.AnswerRequest, a *client.Answer) {
			a.Degraded = []string{"answer_unavailable"}
		}, SomeDegraded},
	} {
		report, _ := runAnswers(t, c.misbehave, nil)
		require.Equal(t, c.outcome, report.Outcome, name)
	}
}

func TestFacts(t *testing.T) {
	for fact, want := range map[string]bool{
		"3,000 requests per minute": true, "3000 request per minutes": true, "300 requests per minute": false,
		"the Enterprise plan allows requests": true, "the Enterprise plan is blue and red": false,
	} {
		require.Equal(t, want, says("The Enterprise plan allows 3,000 requests per minute.", fact), fact)
	}
	require.Equal(t, []int{0, 1, 1, 2, 3}, []int{grade(0, 4), grade(1, 4), grade(2, 4), grade(3, 4), grade(4, 4)})
}

// factsOf are so many facts of a text, of which the first are matched.
func factsOf(all, matched int) (facts []JudgedFact) {
	for i := range all {
		facts = append(facts, JudgedFact{fmt.Sprintf("fact %d", i), i < matched})
	}
	return facts
}

// The judge extracts and matches; what no judge can have found is not believed.
func TestJudge(t *testing.T) {
	n := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		v := Verdict{Reference: factsOf(4, 2), Answer: factsOf(3, 3)}
		switch n++; n {
		case 2, 3:
			v.Answer = nil
		case 4:
			v.Reference = factsOf(maxFacts+1, 0)
		case 5:
			v.Answer[0].Fact = " "
		case 6:
			v = Verdict{Reference: factsOf(4, 4), Answer: factsOf(3, 0)}
		}
		said, _ := json.Marshal(v)
		if n == 1 {
			said = []byte("garbage")
		}
		json.NewEncoder(w).Encode(map[string]any{"choices": []any{map[string]any{"message": map[string]string{"content": "```json\n" + string(said) + "\n```"}}}})
	}))
	defer server.Close()
	report, dir := runAnswers(t, nil, chat.New(server.URL, "judge", ""))
	c := report.Counts
	require.Equal(t, 2, c.JudgeFailed, "the first two answers, asked for twice each; of the third, the second reply is possible")
	require.Equal(t, 68, c.Judged)
	require.Equal(t, []int{68 * 4, 67*2 + 4, 68 * 3, 67 * 3, 1}, []int{c.Wanted, c.WantedSaid, c.Said, c.SaidRightly, c.Inventing})
	precision, recall := 67.0/68, 138.0/272
	f := report.Figures()
	require.InDelta(t, 2*precision*recall/(precision+recall), f["judge.f1"], 1e-9)
	require.Equal(t, "judge", report.Judge)
	require.InDelta(t, 1.0/68, f["share.judge.hallucinating.answers"], 1e-9)
	require.Positive(t, marks(c.JudgedDocuments))
	require.Less(t, marks(c.JudgedDocuments), 3, "those of one answer")
	lines, err := os.ReadFile(filepath.Join(dir, "answers.jsonl"))
	require.NoError(t, err)
	require.Equal(t, 68, strings.Count(string(lines), `"verdict":{"reference":[{"fact":"fact 0","matched":true}`), "what was matched can be read")
}

// A sentence is held against what it cites, by document and by answer, and
// against the evidence.
func TestHallucinations(t *testing.T) {
	n := 0
	report, _ := runAnswers(t, func(_ Principal, _ client.AnswerRequest, a *client.Answer) {
		if n++; a.Outcome != "answered" || n%10 != 0 {
			return
		}
		a.Sentences = append(a.Sentences, client.AnswerSentence{Text: "The moon costs 77 EUR.", Citations: a.Sentences[0].Citations})
	}, nil)
	c := report.Counts
	require.Positive(t, c.Unsupported)
	require.Equal(t, c.Claims-c.Accurate, c.Unsupported, "one made-up sentence each, all others are quotes")
	require.Equal(t, 70, c.Answers)
	require.LessOrEqual(t, marks(c.Documents), c.Unsupported)
	require.Positive(t, marks(c.Documents))
	require.Greater(t, len(c.Documents), c.Unsupported)
	f := report.Figures()
	require.InDelta(t, float64(c.Unsupported)/70, f["share.hallucinating.answers"], 1e-9)
	require.InDelta(t, float64(marks(c.Documents))/float64(len(c.Documents)), f["share.hallucinating.documents"], 1e-9)
	require.Less(t, f["share.accurate"], 1.0)
}

// A true sentence of a passage without evidence is no accurate answer, and no
// hallucination either.
func TestAccuracyIsOfTheEvidence(t *testing.T) {
	report, _ := runAnswers(t, func(_ Principal, _ client.AnswerRequest, a *client.Answer) {
		if a.Outcome != "answered" {
			return
		}
		p := a.Passages[0]
		p.ID, p.Start, p.End, p.Text = "Z", 1<<30, 1<<30+1, "Elsewhere it says that walruses are heavy."
		a.Passages = append(a.Passages, p)
		a.Sentences = []client.AnswerSentence{{Text: "Walruses are heavy.", Citations: []string{"Z"}}}
	}, nil)
	require.Zero(t, report.Counts.Accurate)
	require.Equal(t, 70, report.Counts.Claims)
	require.Zero(t, report.Counts.Unsupported)
}

// Every answer is counted in one group, by the context that its model was shown.
func TestAnswersByContext(t *testing.T) {
	lengths, n := []int{0, 1, 500, 501, 2000, 2001, 4000, 4001, 1 << 30}, 0
	report, _ := runAnswers(t, func(_ Principal, _ client.AnswerRequest, a *client.Answer) {
		a.Usage.ContextTokens = lengths[n%len(lengths)]
		if n++; a.Usage.ContextTokens > 4000 && a.Outcome == "answered" {
			a.Sentences[0].Text = "The moon costs 77 EUR."
		}
	}, nil)
	cases, sum := map[string]int{}, 0
	for _, g := range report.Contexts {
		cases[g.UpTo] = g.cases()
		sum += g.Counts.Claims
	}
	require.Equal(t, map[string]int{"0": 11, "500": 22, "1000": 11, "2000": 10, "4000": 20, "more": 20}, cases)
	require.Equal(t, report.Counts.Claims, sum)
	f := report.Figures()
	require.Zero(t, f["context.4000.share.hallucinating.answers"])
	require.Equal(t, 1.0, f["context.more.share.hallucinating.answers"])
	require.Equal(t, f["share.answered"], f["context.500.share.answered"])
	require.Contains(t, report.Markdown(), "\n| more | 20 | 1.000 (")
}
