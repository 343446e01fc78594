package answer

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sluice/gpu"
	"sluice/retrieve"
	"sluice/store"
)

const meals = "The meal allowance is 60 EUR per day inside the EU."

func travel() map[string]page {
	return map[string]page{
		"travel":  {title: "Travel Policy", text: meals + " Alcohol is not reimbursed.\n\nClaims submitted later than 90 days are rejected."},
		"parking": {title: "Parking", text: "Parking costs 5 EUR a day.", relevance: []float64{.1}},
	}
}

func TestAnswer(t *testing.T) {
	h := newHouse(t, travel(), says(sentences("S2", "The meal allowance is 60 EUR a day.", "Alcohol isn't reimbursed.")))
	var searching []string
	r := request("ann", "What is the meal allowance?")
	r.Searching = func(queries []string) { searching = queries }
	got, err := h.Answer(t.Context(), r)
	require.NoError(t, err)
	require.Equal(t, Answered, got.Outcome)
	require.Equal(t, []Sentence{{"The meal allowance is 60 EUR a day.", []string{"S2"}}, {"Alcohol isn't reimbursed.", []string{"S2"}}}, got.Sentences)
	require.Len(t, got.Passages, 1, "what is cited, no more")
	require.Equal(t, "travel", got.Passages[0].Key)
	require.True(t, strings.HasSuffix(got.Passages[0].Text, "rejected."), "neighbours are one passage")
	require.Equal(t, []string{"What is the meal allowance?"}, got.Queries)
	require.Empty(t, got.Degraded)
	require.Empty(t, got.Dropped)
	require.Equal(t, "m", got.Model)
	require.Equal(t, 1, got.Usage.Calls)
	require.InDelta(t, (100*2+10*10)/1e6, got.Usage.Cost, 1e-12)
	require.Equal(t, []string{"answer"}, h.counted.asked)
	require.Len(t, h.counted.answered, 1)
	require.Equal(t, got.Queries, searching)
}

// Every reason for which a sentence falls, beside one that stands.
func TestSentencesThatFall(t *testing.T) {
	stands := Sentence{meals, []string{"S2"}}
	for reason, fallen := range map[string]string{
		Uncited:    `{"text": "The meal allowance is 60 EUR.", "citations": []}, {"text": "The meal allowance is 60 EUR.", "citations": ["S3"]}, {"text": "The meal allowance is 60 EUR.", "citations": ["S2", "S9"]}`,
		Malformed:  `{"text": "The meal allowance\u0000 is 60 EUR.", "citations": ["S2"]}, {"text": "The \u202emeal allowance is 60 EUR.", "citations": ["S2"]}, {"text": "` + strings.Repeat("meal ", 500) + `", "citations": ["S2"]}, {"text": "The meal allowance is 60 EUR.", "citations": [` + strings.Repeat(`"S2",`, 9) + `"S2"]}`,
		"number":   `{"text": "The meal allowance is 61 EUR per day.", "citations": ["S2"]}`,
		"unit":     `{"text": "The meal allowance is 60 USD per day.", "citations": ["S2"]}`,
		"date":     `{"text": "The meal allowance is 60 EUR since 12 March 2026.", "citations": ["S2"]}`,
		"name":     `{"text": "The meal allowance is 60 EUR, says Zorblatt.", "citations": ["S2"]}`,
		"negation": `{"text": "Alcohol is reimbursed.", "citations": ["S2"]}`,
		"question": `{"text": "Is the meal allowance 60 EUR per day?", "citations": ["S2"]}`,
		"words":    `{"text": "Dogs are welcome.", "citations": ["S2"]}, {"text": "", "citations": ["S2"]}`,
		Irrelevant: `{"text": "Parking costs 5 EUR a day.", "citations": ["S1"]}`,
	} {
		h := newHouse(t, travel(), says(`{"sentences": [{"text": "`+meals+`", "citations": ["S2"]}, `+fallen+`]}`))
		got := h.ask("What is the meal allowance?")
		require.Equal(t, []Sentence{stands}, got.Sentences, reason)
		require.Equal(t, map[string]int{reason: strings.Count(fallen, `"text"`)}, got.Dropped, reason)
	}
}

// A citation stands by itself: what one passage says is not said by another that
// is cited beside it, and two do not say together what neither does.
func TestCitationsStandAlone(t *testing.T) {
	h := newHouse(t, travel(), says(sentences("S1 [S2]", meals, "The meal allowance is 5 EUR per day inside the EU.")))
	h.Relevance = 0
	got := h.ask("What is the meal allowance?")
	require.Equal(t, []Sentence{{meals, []string{"S2"}}}, got.Sentences)
	require.Equal(t, map[string]int{"number": 1}, got.Dropped)
}

// A sentence of several parts cites the passages that say them, if each is said.
func TestPartsOfSeveralPassages(t *testing.T) {
	both, not := "The meal allowance is 60 EUR a day, and parking costs 5 EUR a day.", "The meal allowance is 60 EUR a day, and parking costs 6 EUR a day."
	h := newHouse(t, travel(), says(`{"sentences": [{"text": "`+both+`", "citations": ["S2", "S1"]}, {"text": "`+not+`", "citations": ["S1", "S2"]}, {"text": "`+both+`", "citations": ["S2"]}]}`))
	h.Relevance = 0
	got := h.ask("What does it cost?")
	require.Equal(t, []Sentence{{both, []string{"S2", "S1"}}}, got.Sentences)
	require.Equal(t, map[string]int{"number": 2}, got.Dropped)
	model := &entails{word: "costs 5"}
	h.Entailment = model
	require.Equal(t, map[string]int{"number": 2, NotEntailed: 1}, h.ask("What does it cost?").Dropped, "one part is not entailed")
	h.Entailment = &entails{word: "EUR"}
	require.Equal(t, []Sentence{{both, []string{"S2", "S1"}}}, h.ask("What does it cost?").Sentences)
}

// A name that begins a part is a name still: the part does not begin the sentence.
func TestPartsHideNoName(t *testing.T) {
	named := "The meal allowance is 60 EUR a day, and Zorblatt parking costs 5 EUR a day."
	h := newHouse(t, travel(), says(sentences("S2 [S1]", named)))
	h.Relevance = 0
	got := h.ask("What does it cost?")
	require.Empty(t, got.Sentences)
	require.Equal(t, map[string]int{"name": 1}, got.Dropped)
}

// Sentences are not checked for who has left: the checks of long ones take a while.
func TestChecksEndWithTheirContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	q := &answering{response: Response{Dropped: map[string]int{}}}
	_, err := q.checked(ctx, []Sentence{{meals, nil}})
	require.ErrorIs(t, err, context.Canceled)
	require.Empty(t, q.response.Dropped)
}

func TestTooManySentences(t *testing.T) {
	h := newHouse(t, travel(), says(sentences("S2", strings.Split(strings.TrimSuffix(strings.Repeat(meals+"|", 50), "|"), "|")...)))
	got := h.ask("What is the meal allowance?")
	require.Len(t, got.Sentences, maxSentences)
	require.Equal(t, map[string]int{Malformed: 10}, got.Dropped)
}

// A refusal says why, and carries nothing.
func TestRefusals(t *testing.T) {
	for name, c := range map[string]struct {
		pages           map[string]page
		question, reply string
		reason          string
		calls           int
	}{
		"nothing found":      {nil, "What is the meal allowance?", sentences("S1", "Ha."), NothingFound, 0},
		"a name":             {travel(), "What is the meal allowance at Zorblatt?", sentences("S2", meals), NotMentioned, 0},
		"a code":             {travel(), "What is the meal allowance under HR7?", sentences("S2", meals), NotMentioned, 0},
		"a rank":             {travel(), "What is the meal allowance of directors?", sentences("S2", meals), NotMentioned, 0},
		"the model declines": {travel(), "What is the meal allowance?", `{"sentences": []}`, Declined, 1},
		"nothing stands":     {travel(), "What is the meal allowance?", sentences("S7", meals), Unsupported, 1},
		"no amount":          {map[string]page{"a": {title: "A", text: "The plan has 3 seats."}}, "What does the plan cost?", sentences("S1", "The plan has 3 seats."), Unsupported, 1},
		"not the subject":    {map[string]page{"a": {title: "A", text: "Gold has 3 seats."}, "b": {title: "B", text: "Chairs are blue."}}, "What is Gold?", sentences("S2", "Chairs are blue."), Unsupported, 1},
	} {
		h := newHouse(t, c.pages, says(c.reply))
		got := h.ask(c.question)
		require.Equal(t, NoAnswer, got.Outcome, name)
		require.Equal(t, c.reason, got.Reason, name)
		require.Empty(t, got.Passages, name)
		require.Empty(t, got.Sentences, name)
		require.Len(t, h.shown(), c.calls, name)
		require.Equal(t, c.calls > 0, got.Usage.Context > 0, name)
	}
}

// A name that is there by another name of the same thing is no reason to refuse.
func TestNamesThatMeanTheSame(t *testing.T) {
	h := newHouse(t, travel(), says(sentences("S2", meals)))
	require.Equal(t, Answered, h.ask("What is the meal allowance in Germany?").Outcome)
}

func TestWithoutAModelTheEvidenceAlone(t *testing.T) {
	got := newHouse(t, travel(), nil).ask("What is the meal allowance?", Turn{"Before?", "Yes."})
	require.Equal(t, Evidence, got.Outcome)
	require.Len(t, got.Passages, 2)
	require.Equal(t, []string{"S1", "S2"}, []string{got.Passages[0].ID, got.Passages[1].ID})
	require.Equal(t, []string{"What is the meal allowance?"}, got.Queries)
	require.Empty(t, got.Degraded)
	require.Zero(t, got.Usage)
}

// Whatever the server of the model does, the evidence comes, and says so.
func TestModelsThatFail(t *testing.T) {
	raw := func(text string) func(int, string, http.ResponseWriter) {
		return func(_ int, _ string, w http.ResponseWriter) { fmt.Fprint(w, text) }
	}
	status := func(code int) func(int, string, http.ResponseWriter) {
		return func(_ int, _ string, w http.ResponseWriter) { w.WriteHeader(code) }
	}
	for name, c := range map[string]struct {
		say   func(int, string, http.ResponseWriter)
		calls int
	}{
		"no JSON":      {says("I think that it is 60."), attempts},
		"another JSON": {says(`{"answer": "60"}`), attempts},
		"a list":       {says(`[]`), attempts},
		"null":         {says(`null`), attempts},
		"wrong types":  {says(`{"sentences": [{"text": 60, "citations": "S1"}]}`), attempts},
		"half of it":   {says(`{"sentences": [{"text": "` + meals + `", "citations": ["S2"]}`), attempts},
		"and more":     {says(sentences("S2", meals) + `{}`), attempts},
		"deep":         {says(strings.Repeat("[", 1<<18)), attempts},
		"no choice":    {raw(`{"choices": []}`), attempts},
		"a page":       {raw(`<html>Bad gateway</html>`), attempts},
		"nothing":      {raw(``), attempts},
		"huge":         {raw(strings.Repeat(" ", 3<<20)), attempts},
		"failing":      {status(500), attempts},
		"refusing":     {status(401), 1},
		"moved":        {func(_ int, _ string, w http.ResponseWriter) { w.Header().Set("Location", "/x"); w.WriteHeader(307) }, 1},
		"dying":        {func(int, string, http.ResponseWriter) { panic(http.ErrAbortHandler) }, attempts},
		"dying half-way": {func(_ int, _ string, w http.ResponseWriter) {
			fmt.Fprint(w, `{"choices": [`)
			w.(http.Flusher).Flush()
			panic(http.ErrAbortHandler)
		}, attempts},
	} {
		h := newHouse(t, travel(), c.say)
		got := h.ask("What is the meal allowance?")
		require.Equal(t, Evidence, got.Outcome, name)
		require.Equal(t, []string{"answer_unavailable"}, got.Degraded, name)
		require.Len(t, got.Passages, 2, name)
		require.Len(t, h.shown(), c.calls, name)
		require.Equal(t, c.calls, got.Usage.Calls, name)
	}
}

// One failure is made good by asking again; a code fence is no failure.
func TestModelsThatRecover(t *testing.T) {
	for name, say := range map[string]func(int, string, http.ResponseWriter){
		"garbage": turns("garbage", sentences("S2", meals)),
		"status": func(n int, _ string, w http.ResponseWriter) {
			if n == 0 {
				w.Header().Set("Retry-After", "0")
				w.WriteHeader(429)
				return
			}
			reply(w, sentences("S2", meals))
		},
		"fence": says("```json\n" + sentences("S2", meals) + "\n```"),
	} {
		got := newHouse(t, travel(), say).ask("What is the meal allowance?")
		require.Equal(t, Answered, got.Outcome, name)
		require.Empty(t, got.Degraded, name)
	}
}

// A model that does not answer in its time costs no more than that; one that
// wants to be asked later than that is not asked again.
func TestSlowModels(t *testing.T) {
	stop := make(chan struct{})
	h := newHouse(t, travel(), func(int, string, http.ResponseWriter) { <-stop })
	defer close(stop)
	h.Timeout = 50 * time.Millisecond
	got := h.ask("What is the meal allowance?")
	require.Equal(t, Evidence, got.Outcome)
	require.Equal(t, []string{"answer_unavailable"}, got.Degraded)

	h = newHouse(t, travel(), func(_ int, _ string, w http.ResponseWriter) {
		w.Header().Set("Retry-After", "3000")
		w.WriteHeader(503)
	})
	h.Timeout = 200 * time.Millisecond
	require.Equal(t, Evidence, h.ask("What is the meal allowance?").Outcome)
	require.Len(t, h.shown(), 1)

	h = newHouse(t, travel(), func(int, string, http.ResponseWriter) { <-stop })
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err := h.Answer(ctx, request("ann", "What is the meal allowance?"))
	require.ErrorIs(t, err, context.DeadlineExceeded, "the caller's own deadline is an error")
}

// A question of a conversation is searched in words of its own, and as it was asked.
func TestRewriting(t *testing.T) {
	h := newHouse(t, travel(), turns(`{"query": "meal allowance inside the EU"}`, sentences("S2", meals)))
	got := h.ask("And inside it?", Turn{"What about the EU?", "It is a union."})
	require.Equal(t, Answered, got.Outcome)
	require.Equal(t, []string{"meal allowance inside the EU", "And inside it?"}, got.Queries)
	require.Equal(t, "meal allowance inside the EU", h.library.searched[0].Query)
	require.Equal(t, "And inside it?", h.library.searched[1].Query)
	require.Contains(t, h.shown()[0], "What about the EU?")
	require.Contains(t, h.shown()[1], "meal allowance inside the EU", "the model answers the question that is understood by itself")
	require.Equal(t, []string{"rewrite", "answer"}, h.counted.asked)

	for _, bad := range []string{"none", `{"query": ""}`, `{"query": "` + strings.Repeat("x", 2000) + `"}`, `{"query": "a\u0000b"}`, `{"query": 3}`} {
		h := newHouse(t, travel(), turns(bad, bad, sentences("S2", meals)))
		got := h.ask("What is the meal allowance?", Turn{"Hello?", ""})
		require.Equal(t, Answered, got.Outcome, bad)
		require.Equal(t, []string{"rewrite_unavailable"}, got.Degraded, bad)
		require.Equal(t, []string{"What is the meal allowance?"}, got.Queries, bad)
	}
}

// The names of the question count however the model rewrites it.
func TestRewritingHidesNoName(t *testing.T) {
	h := newHouse(t, travel(), turns(`{"query": "meal allowance"}`, sentences("S2", meals)))
	require.Equal(t, NotMentioned, h.ask("And at Zorblatt?", Turn{"What is the meal allowance?", ""}).Reason)
}

func TestReranking(t *testing.T) {
	pages := map[string]page{}
	for i := range 25 {
		pages[fmt.Sprintf("d%02d", i)] = page{title: "T", text: fmt.Sprintf("Page %d has words.", i)}
	}
	h := newHouse(t, pages, turns(`{"order": ["S5", "S5", "S99", "S3"]}`, sentences("S1", "Page 4 has words.")))
	h.Rerank = true
	got := h.ask("What has words?")
	require.Equal(t, []Sentence{{"Page 4 has words.", []string{"S1"}}}, got.Sentences)
	require.Equal(t, "d04", got.Passages[0].Key)
	require.Equal(t, 25, strings.Count(h.shown()[0], `\"id\"`))
	require.Equal(t, keptOrdered, strings.Count(h.shown()[1], `\"id\"`))
	require.Less(t, strings.Index(h.shown()[1], "Page 2 has"), strings.Index(h.shown()[1], "Page 0 has"))

	h = newHouse(t, pages, turns("garbage", "garbage", sentences("S1", "Page 0 has words.")))
	h.Rerank = true
	got = h.ask("What has words?")
	require.Equal(t, Answered, got.Outcome)
	require.Equal(t, []string{"rerank_unavailable"}, got.Degraded)
}

// What is taken away while the model thinks counts in nothing: the answer is, but
// for what the model took, the one of a library that never had it.
func TestRevocationLeavesNoTrace(t *testing.T) {
	lobby := map[string]page{"a": {title: "A", text: "Visitors wear a badge and wait in the lobby. Gold has 3 seats."}}
	var secrets []string
	for i := range 8 {
		secrets = append(secrets, fmt.Sprintf("z%d", i))
	}
	for name, c := range map[string]struct {
		secret, question, said, outcome string
	}{
		"all there is":     {"Visitors wait in the lobby.", "What do guests do?", "Visitors wait in the lobby.", NoAnswer},
		"weights of words": {"Visitors wait in the lobby.", "What do guests do?", "Visitors in hats wait in the lobby.", Answered},
		"names":            {"Zorblatt visitors wait.", "What do guests of Zorblatt do?", "Visitors wear a badge.", NoAnswer},
		"subjects":         {"Zorblatt is like Gold.", "What is Gold, or Zorblatt?", "Gold has 3 seats.", NoAnswer},
		"money":            {"Visitors pay 3 EUR.", "What do guests pay, and what is the price?", "Visitors wear a badge.", NoAnswer},
		"nothing":          {"Visitors wait in the lobby.", "What do guests do?", "Dogs are welcome.", NoAnswer},
		"said nothing":     {"Zorblatt visitors wait.", "What do guests of Zorblatt do?", "", NoAnswer},
	} {
		answer := func(say func(h *house) func(int, string, http.ResponseWriter), secrets ...string) Response {
			pages := maps.Clone(lobby)
			if name == "all there is" {
				clear(pages)
			}
			for _, key := range secrets {
				pages[key] = page{title: "Z", text: c.secret}
			}
			var h *house
			h = newHouse(t, pages, func(n int, body string, w http.ResponseWriter) { say(h)(n, body, w) })
			got := h.ask(c.question)
			got.Usage, got.Search, got.Model = Usage{}, retrieve.Response{}, ""
			return got
		}
		finish := func(w http.ResponseWriter) {
			if c.said == "" {
				reply(w, `{"sentences": []}`)
			} else {
				reply(w, sentences("S1", c.said))
			}
		}
		plain := func(*house) func(int, string, http.ResponseWriter) {
			return func(_ int, _ string, w http.ResponseWriter) { finish(w) }
		}
		revoking := func(h *house) func(int, string, http.ResponseWriter) {
			return func(_ int, _ string, w http.ResponseWriter) {
				h.library.change(func(pages map[string]page) {
					for _, key := range secrets {
						pages[key] = page{title: "Z", text: c.secret, readers: []string{"bob"}}
					}
				})
				finish(w)
			}
		}
		never := answer(plain)
		require.Equal(t, c.outcome, never.Outcome, name)
		require.Equal(t, never, answer(revoking, secrets...), name)
	}
}

// What is taken away while the model orders passages is not shown to it again: the
// answer is that of a library that never had it.
func TestRevocationWhileOrdering(t *testing.T) {
	for name, order := range map[string]string{"ordered": `{"order": ["S2"]}`, "not ordered": "garbage"} {
		secret := page{title: "Z", text: "Visitors wait in the secret room."}
		pages := func() map[string]page {
			return map[string]page{"a": {title: "A", text: "Visitors wear a badge."}, "b": {title: "B", text: "Visitors wait in the lobby."}}
		}
		answer := func(pages map[string]page, ordering func(l *library)) (Response, string) {
			var h *house
			h = newHouse(t, pages, func(_ int, prompt string, w http.ResponseWriter) {
				if strings.Contains(prompt, "Order passages") {
					ordering(h.library)
					reply(w, order)
					return
				}
				reply(w, sentences("S1", "Visitors wait in the lobby."))
			})
			h.Rerank = true
			got := h.ask("What do visitors do?")
			got.Search, got.Usage.Prompt, got.Usage.Completion, got.Usage.Cost = retrieve.Response{}, 0, 0, 0
			shown := h.shown()
			return got, shown[len(shown)-1]
		}
		never, _ := answer(pages(), func(*library) {})
		had := pages()
		had["0"] = secret
		got, shown := answer(had, func(l *library) { l.change(func(p map[string]page) { delete(p, "0") }) })
		require.NotContains(t, shown, "secret", name)
		if name == "not ordered" {
			require.Equal(t, never, got)
		}
		_, shown = answer(map[string]page{"0": secret}, func(l *library) { l.change(func(p map[string]page) { clear(p) }) })
		require.Contains(t, shown, "Order passages", "it is not asked for an answer from nothing")
	}
}

// What is taken away while sentences are judged has them judged anew.
func TestRevocationWhileJudging(t *testing.T) {
	h := newHouse(t, travel(), says(`{"sentences": [{"text": "`+meals+`", "citations": ["S2"]}, {"text": "Dogs are welcome.", "citations": ["S1"]}]}`))
	h.Entailment = &entails{word: "EUR", judging: func() { h.library.change(func(p map[string]page) { delete(p, "travel") }) }}
	got := h.ask("What is the meal allowance?")
	require.Equal(t, NoAnswer, got.Outcome)
	require.Equal(t, map[string]int{NotReadable: 1, "words": 1}, got.Dropped)
}

// What is taken away while the model thinks is not in the answer, however it ends.
func TestRevocationUnderWay(t *testing.T) {
	for name, change := range map[string]func(pages map[string]page){
		"readers": func(p map[string]page) {
			p["travel"] = page{title: "Travel Policy", text: p["travel"].text, readers: []string{"bob"}}
		},
		"deleted": func(p map[string]page) { delete(p, "travel") },
		"changed": func(p map[string]page) {
			p["travel"] = page{title: "Travel Policy", text: p["travel"].text, version: 2}
		},
	} {
		var h *house
		h = newHouse(t, travel(), func(_ int, _ string, w http.ResponseWriter) {
			h.library.change(change)
			reply(w, sentences("S2", meals))
		})
		model := &entails{}
		h.Entailment = model
		got := h.ask("What is the meal allowance?")
		require.Equal(t, NoAnswer, got.Outcome, name)
		require.Empty(t, model.got, name)
		require.Equal(t, map[string]int{NotReadable: 1}, got.Dropped, name)
		require.Empty(t, got.Passages, name)

		h = newHouse(t, travel(), func(_ int, _ string, w http.ResponseWriter) { h.library.change(change); w.WriteHeader(401) })
		got = h.ask("What is the meal allowance?")
		require.Equal(t, Evidence, got.Outcome, name)
		require.Len(t, got.Passages, 1, name)
		require.Equal(t, "parking", got.Passages[0].Key, name)
	}
}

// entails is a classifier that lets pass what contains its word, from a premise that
// contains another.
type entails struct {
	premise, word string
	err           error
	got           []gpu.Pair
	judging       func() // what happens meanwhile; nil: nothing
}

func (e *entails) Info() gpu.Info { return gpu.Info{Labels: []string{"contradiction", "ENTAILMENT"}} }

func (e *entails) Classify(_ context.Context, r gpu.ScoreRequest) ([]gpu.Classification, error) {
	e.got = append(e.got, r.Pairs...)
	if e.judging != nil {
		e.judging()
	}
	var all []gpu.Classification
	for _, p := range r.Pairs {
		logits := []float32{3, -3}
		if strings.Contains(p.First, e.premise) && strings.Contains(p.Second, e.word) {
			logits = []float32{-3, 3}
		}
		all = append(all, gpu.Classification{Logits: logits})
	}
	return all, e.err
}

func TestEntailment(t *testing.T) {
	h := newHouse(t, travel(), says(sentences("S2", meals, "Alcohol is not reimbursed.")))
	model := &entails{word: "Alcohol"}
	h.Entailment = model
	got := h.ask("What is the meal allowance?")
	require.Equal(t, []Sentence{{"Alcohol is not reimbursed.", []string{"S2"}}}, got.Sentences)
	require.Equal(t, map[string]int{NotEntailed: 1}, got.Dropped)
	require.Contains(t, model.got[0].First, meals, "the passage is the premise")
	require.Equal(t, meals, model.got[0].Second)

	same := map[string]page{"a": {title: "A", text: meals}, "b": {title: "B", text: "Zebras. " + meals}, "c": {title: "C", text: meals}}
	h = newHouse(t, same, says(sentences("S1 S2 S3", meals, "The meal allowance is 60 EUR.")))
	h.Entailment = &entails{premise: "Zebras"}
	got = h.ask("What is the meal allowance?")
	require.Equal(t, []Sentence{{meals, []string{"S2"}}, {"The meal allowance is 60 EUR.", []string{"S2"}}}, got.Sentences, "each passage by itself")

	h = newHouse(t, travel(), says(sentences("S2", meals, "Alcohol is not reimbursed.")))
	h.Entailment = model
	model.err = errBroken
	got = h.ask("What is the meal allowance?")
	require.Len(t, got.Sentences, 2)
	require.Equal(t, []string{"entailment_unavailable"}, got.Degraded)
}

// The budget of the context is kept, and said to be.
func TestContextIsBounded(t *testing.T) {
	pages := map[string]page{"a": {title: "A", text: strings.Repeat("many words ", 100)}, "b": {title: "B", text: "Few words."}}
	h := newHouse(t, pages, says(sentences("S1", "Few words.")))
	h.Tokens = 100
	got := h.ask("What few words?")
	require.Equal(t, []string{"context_cut"}, got.Degraded)
	require.Equal(t, Answered, got.Outcome)
	require.NotContains(t, h.shown()[0], "many words")
	require.Equal(t, len("B\nB\nFew words.")/bytesPerToken+passageTokens, got.Usage.Context)
}

func TestWhatSearchesLeaveOutIsSaid(t *testing.T) {
	h := newHouse(t, travel(), says(sentences("S2", meals)))
	h.library.degraded = []string{"late_unavailable"}
	require.Equal(t, []string{"late_unavailable"}, h.ask("What is the meal allowance?", Turn{"a", "b"}).Degraded[1:])
	h.library.err = store.ErrNotFound
	_, err := h.Answer(t.Context(), request("ann", "What?"))
	require.ErrorIs(t, err, store.ErrNotFound)
}

func TestRequestsThatAreRefused(t *testing.T) {
	h := newHouse(t, travel(), says(sentences("S2", meals)))
	for name, r := range map[string]Request{
		"empty":   request("ann", " \n"),
		"long":    request("ann", strings.Repeat("x", 9<<10)),
		"turns":   request("ann", "What?", make([]Turn, MaxTurns+1)...),
		"history": request("ann", "What?", Turn{strings.Repeat("x", MaxHistory), "y"}),
	} {
		_, err := h.Answer(t.Context(), r)
		require.ErrorIs(t, err, store.ErrInvalid, name)
	}
	require.Empty(t, h.shown())
}

// Two principals at once, many times: the model sees of each what they may read.
func TestPrincipalsAtOnce(t *testing.T) {
	pages := map[string]page{
		"ann":    {title: "For ann", text: "The code of ann is 1111.", readers: []string{"ann"}},
		"bob":    {title: "For bob", text: "The code of bob is 2222.", readers: []string{"bob"}},
		"common": {title: "For all", text: "The code of all is 3333."},
	}
	codes := map[string][2]string{"ann": {"1111", "2222"}, "bob": {"2222", "1111"}}
	h := newHouse(t, pages, func(_ int, _ string, w http.ResponseWriter) {
		reply(w, sentences("S1 S2", "The code of ann is 1111.", "The code of bob is 2222.", "The code of all is 3333."))
	})
	var group sync.WaitGroup
	for who, code := range codes {
		for range 25 {
			group.Go(func() {
				got, err := h.Answer(context.Background(), request(who, "what is the code of "+who+"?"))
				if err != nil || len(got.Sentences) != 2 || !strings.Contains(got.Sentences[0].Text+got.Sentences[1].Text, code[0]) {
					t.Errorf("%s: %v %v", who, got.Sentences, err)
				}
				for _, p := range got.Passages {
					if strings.Contains(p.Text, code[1]) {
						t.Errorf("%s is shown %s", who, p.Text)
					}
				}
			})
		}
	}
	group.Wait()
	for _, prompt := range h.shown() {
		for who, code := range codes {
			if strings.Contains(prompt, "what is the code of "+who+"?") {
				require.Contains(t, prompt, code[0])
				require.NotContains(t, prompt, code[1])
			}
		}
	}
}
