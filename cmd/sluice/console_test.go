package main

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"sluice/client"
	"sluice/eval/scripted"
	"sluice/needs"
	"sluice/server/console/browsertest"
	"sluice/statistics"
)

var pictures = flag.String("pictures", "", "folder to write the pictures of docs/console.md to")

// visitor is somebody at the console of a demo.
type visitor struct {
	*browsertest.Tab
	t    *testing.T
	url  string // of the daemon
	data string // its directory
}

// TestConsole starts the demo, and opens the console in a browser of its own for
// each of the tests below.
func TestConsole(t *testing.T) {
	t.Parallel()
	needs.Model(t)
	data := filepath.Join(t.TempDir(), "data")
	p := launch(t, "demo", "--corpus", groundedAccess, "--data", data, "--listen", "127.0.0.1:0")
	url := p.await(&p.out, `Serving on (\S+); Ctrl-C stops`)
	for name, test := range map[string]func(*testing.T, *visitor){
		"searches": consoleSearches, "keyboard": consoleNeedsNoMouse, "impersonation": consoleImpersonates, "answers": consoleAnswers,
		"policies": consoleTriesPolicies, "reindex": consoleReindexes, "hostile": consoleShowsHostileDocumentsAsText,
	} {
		t.Run(name, func(t *testing.T) {
			v := &visitor{Tab: browsertest.Open(t), t: t, url: url, data: data}
			v.Show(1100, 800, false)
			v.Visit(v.url + "/console")
			test(t, v)
		})
	}
}

func quoted(text string) string {
	b, _ := json.Marshal(text)
	return string(b)
}

// shows waits until the page says something.
func (v *visitor) shows(text string) {
	v.t.Helper()
	v.Await(`document.body.innerText.includes(` + quoted(text) + `)`)
}

// press clicks the button, link or summary of that name.
func (v *visitor) press(name string) {
	v.t.Helper()
	find := `[...document.querySelectorAll("button, a, summary")].find((e) => e.checkVisibility() && e.innerText.trim().startsWith(` + quoted(name) + `))`
	v.Await(find + ` !== undefined`)
	browsertest.Evaluate[bool](v.Tab, `(`+find+`).click() ?? true`)
}

// enter puts text into the control with that label.
func (v *visitor) enter(label, text string) {
	v.t.Helper()
	find := `[...document.querySelectorAll("label")].find((l) => l.innerText === ` + quoted(label) + `)?.control`
	v.Await(find + ` != null`)
	browsertest.Evaluate[bool](v.Tab, `((c) => { c.value = `+quoted(text)+`; return true })(`+find+`)`)
}

// be goes back to the choice of the demo and becomes somebody else.
func (v *visitor) be(name string) {
	v.t.Helper()
	v.Await(`document.querySelector("h1").innerText !== "Sluice"`)
	if browsertest.Evaluate[bool](v.Tab, `document.querySelector("#who button") !== null`) {
		v.press("Change")
	}
	v.press(name)
	v.Await(`document.querySelector("#who").innerText.startsWith(` + quoted(name) + `)`)
	v.loaded()
}

func (v *visitor) open(fragment string) {
	v.t.Helper()
	browsertest.Evaluate[bool](v.Tab, `new Promise((done) => {
		addEventListener("hashchange", () => done(true), { once: true });
		location.hash === `+quoted(fragment)+` ? done(true) : location.hash = `+quoted(fragment)+`;
	})`)
	v.loaded()
}

// loaded waits until the page is all there.
func (v *visitor) loaded() {
	v.t.Helper()
	v.Await(`!document.querySelector("main").hasAttribute("aria-busy")`)
}

func (v *visitor) search(query string) {
	v.t.Helper()
	v.open("#/search")
	v.enter("Question", query)
	browsertest.Evaluate[bool](v.Tab, `(document.querySelector("form[role=search]").requestSubmit(), true)`)
	v.Await(`document.querySelector(".results") !== null`)
}

// sound checks the page as it stands: nothing for axe to find, wide and light,
// narrow and dark; no script has failed; no policy was broken.
func (v *visitor) sound(what string) {
	v.t.Helper()
	for _, width := range []int64{360, 1100} {
		v.Show(width, 800, width == 360)
		require.Empty(v.t, v.Axe(), "%s, %d wide", what, width)
		require.True(v.t, browsertest.Evaluate[bool](v.Tab, `document.documentElement.scrollWidth <= innerWidth`), "%s is wider than %d", what, width)
	}
	require.Empty(v.t, v.faults(), what)
}

// faults are the page's. It asks every daemon whether it is a demo, and the browser
// logs a no as one.
func (v *visitor) faults() []string {
	return slices.DeleteFunc(v.Faults(), func(fault string) bool { return strings.HasSuffix(fault, "(Not Found) "+v.url+"/v1/demo") })
}

func (v *visitor) picture(name string) {
	v.t.Helper()
	if *pictures != "" {
		require.NoError(v.t, os.WriteFile(filepath.Join(*pictures, name+".png"), v.Picture(), 0o644))
	}
}

// api is the API as a demo principal.
func (v *visitor) api(name string) *client.Client {
	v.t.Helper()
	api, err := client.New(v.url, client.WithDemoPrincipal(name))
	require.NoError(v.t, err)
	return api
}

// A newcomer chooses who to be and asks; what they see is what they may.
func consoleSearches(t *testing.T, v *visitor) {
	v.shows("This is a demo")
	v.sound("entrance")
	v.be("bob-support")
	v.search(demoQuestion)
	v.sound("search")
	v.shows("Among")
	v.shows("sales-pricing-guide")
	v.picture("search")
	passage := browsertest.Evaluate[string](v.Tab, `document.querySelector("blockquote").textContent`)
	browsertest.Evaluate[bool](v.Tab, `document.querySelector("article h3 a").click() ?? true`)
	v.Await(`document.querySelector("mark") !== null`)
	require.Equal(t, passage, browsertest.Evaluate[string](v.Tab, `document.querySelector("mark").textContent`))
	v.sound("document")

	v.be("alice-engineer")
	v.open("#/search")
	require.Empty(t, browsertest.Evaluate[string](v.Tab, `document.querySelector("input[type=search]").value`), "what another asked is gone")
	v.search(demoQuestion)
	require.NotContains(t, browsertest.Evaluate[string](v.Tab, `document.body.innerText`), "sales-pricing-guide")
	require.Empty(t, browsertest.Evaluate[string](v.Tab, `[...document.querySelectorAll("nav a")].map((a) => a.innerText).filter((n) => n === "Policies").join()`))

	for _, address := range v.Requests() {
		require.True(t, strings.HasPrefix(address, v.url+"/"), "%s leaves the host", address)
		require.NotContains(t, address, "alice-engineer", "who one is does not belong there")
	}
	weight := browsertest.Evaluate[int](v.Tab, `performance.getEntries().filter((e) => e.name.includes("/console")).reduce((n, e) => n + (e.decodedBodySize ?? 0), 0)`)
	require.Greater(t, weight, 10_000)
	require.LessOrEqual(t, weight, 300_000)
	t.Logf("%d bytes; first paint of the browser's first page, then of five more, in ms: %.0f", weight, v.paints(5))
}

// paints are when the page as it stands first painted, and then again when
// reloaded, in milliseconds from the beginning of the navigation.
func (v *visitor) paints(reloads int) []float64 {
	v.t.Helper()
	var all []float64
	for range reloads + 1 {
		const paint = `performance.getEntriesByName("first-contentful-paint")[0]`
		v.Await(paint + ` !== undefined`)
		all = append(all, browsertest.Evaluate[float64](v.Tab, paint+`.startTime`))
		v.Visit(v.url + "/console")
	}
	return all
}

// BenchmarkFirstPaint compares the console with a trivial page of the same daemon,
// each the first page of a browser that has just started, in turns.
func BenchmarkFirstPaint(b *testing.B) {
	h := newHome(b, onePerson)
	d := h.serve()
	defer d.stop()
	pages, paints := []string{"/console", "/healthz"}, map[string][]float64{}
	for round := 0; b.Loop(); round++ {
		for i := range pages {
			page := pages[(i+round)%2] // either goes first as often
			paints[page] = append(paints[page], firstPaint(b, d.url+page))
		}
	}
	var differences []float64
	for i, paint := range paints["/console"] {
		differences = append(differences, paint-paints["/healthz"][i])
	}
	paints["difference"] = differences
	for name, all := range paints {
		b.ReportMetric(statistics.Quantile(.5, all), strings.TrimPrefix(name, "/")+"-ms")
		b.Logf("%s, ms: %.0f", name, all)
	}
}

// firstPaint is when the first page of a new browser first painted, in
// milliseconds from the beginning of its navigation.
func firstPaint(b *testing.B, address string) float64 {
	tab := browsertest.Open(b)
	defer tab.Close()
	tab.Visit(address)
	const paint = `performance.getEntriesByName("first-contentful-paint")[0]`
	tab.Await(paint + ` !== undefined`)
	return browsertest.Evaluate[float64](tab, paint+`.startTime`)
}

// Everything can be done from the keyboard.
func consoleNeedsNoMouse(t *testing.T, v *visitor) {
	v.be("bob-support")
	v.open("#/search")
	v.Visit(v.url + "/console")
	v.Await(`document.querySelector("input[type=search]") !== null`)
	v.Press("\t\r") // the first thing is to skip the head
	v.Await(`document.activeElement.id === "main"`)
	v.Press("\t")
	v.Await(`document.activeElement.type === "search"`)
	v.Press(demoQuestion + "\r")
	v.Await(`document.querySelector(".results") !== null`)
	v.shows("sales-pricing-guide")
	v.Await(`document.querySelector("#status").textContent.endsWith("found")`)
	for range 40 {
		v.Press("\t")
		if browsertest.Evaluate[bool](v.Tab, `document.activeElement.closest("article h3") !== null`) {
			break
		}
	}
	v.Press("\r")
	v.Await(`document.querySelector("mark") !== null && document.activeElement.id === "main"`)
}

// An administrator impersonates somebody, and the audit log has both.
func consoleImpersonates(t *testing.T, v *visitor) {
	v.be("northstar-librarian")
	v.press("Impersonate somebody")
	v.enter("Subject", "bob-support")
	browsertest.Evaluate[bool](v.Tab, `([...document.querySelectorAll("form")].at(-1).requestSubmit(), true)`)
	v.shows("You impersonate bob-support")
	v.loaded()
	v.search(demoQuestion)
	v.shows("sales-pricing-guide")
	v.sound("impersonation")
	content, err := os.ReadFile(filepath.Join(v.data, "audit", "audit.ndjson"))
	require.NoError(t, err)
	require.Regexp(t, `"action":"principal.impersonate".*"subject":"northstar-librarian".*"as":"bob-support"`, string(content))

	v.press("Who may read it, and why")
	v.shows("Who may read what, and why")
	v.loaded()
	require.NotContains(t, strings.Join(v.Requests(), "\n"), "/access/explain", "a link asks nothing")
	v.press("Explain")
	v.shows("bob-support may read")
	v.sound("access")
	v.picture("access")
	v.enter("Subject", "alice-engineer")
	v.press("Explain")
	v.shows("alice-engineer may not read")
}

// scriptedAnswer has the page get a made-up answer from what it finds, or none while
// noModel is true. The middle citation is of no passage.
const scriptedAnswer = `(() => {
	const real = window.fetch;
	window.fetch = async (target, options) => {
		if (!target.endsWith("/answer")) return real(target, options);
		if (window.noModel) return new Response("{}", { status: 404 });
		const found = await (await real(target.replace("answer", "search"), { ...options, body: JSON.stringify({ query: JSON.parse(options.body).question }) })).json();
		const sentence = { text: "It costs <b>2,100 EUR</b>.", citations: ["S1", "S9", "S2"] };
		const answer = { outcome: "answered", sentences: [sentence], passages: found.results.slice(0, 2).map((p, i) => ({ ...p, id: "S" + (i + 1) })),
			queries: [], dropped: { number: 1 }, degraded: [], counts: found.counts, model: "script", usage: { prompt_tokens: 1, completion_tokens: 1 } };
		return new Response([{ queries: [] }, { sentence }, { answer }].map((e) => "data: " + JSON.stringify(e) + "\n\n").join(""));
	};
	return (window.noModel = true);
})()`

// An answer's citations lead to what they cite; without a model the evidence is
// alone.
func consoleAnswers(t *testing.T, v *visitor) {
	v.be("bob-support")
	v.open("#/search")
	browsertest.Evaluate[bool](v.Tab, scriptedAnswer)
	v.enter("Question", demoQuestion)
	v.press("Answer")
	v.shows("the passages below are the evidence, alone")
	v.shows("sales-pricing-guide")
	v.sound("no answer")

	browsertest.Evaluate[bool](v.Tab, `!(window.noModel = false)`)
	v.press("Answer")
	v.shows("It costs <b>2,100 EUR</b>. S1S2")
	v.shows("1 sentence left out")
	v.sound("answer")
	v.press("S1")
	v.Await(`document.querySelector("mark")?.textContent.includes("2,100 EUR") === true`)
	require.Empty(t, v.Faults())
}

// remembering is a chat model that keeps what it was asked.
type remembering struct {
	scripted.Model
	mu    sync.Mutex
	asked []string
}

func (m *remembering) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	m.mu.Lock()
	m.asked = append(m.asked, string(body))
	m.mu.Unlock()
	r.Body = io.NopCloser(bytes.NewReader(body))
	m.Model.ServeHTTP(w, r)
}

// conversations are the requests that came with one.
func (m *remembering) conversations() (all []string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, asked := range m.asked {
		if strings.Contains(asked, `\"conversation\"`) {
			all = append(all, asked)
		}
	}
	return all
}

// A question follows from an answer, through a daemon with a chat model: both its
// wordings show, the history goes with it, and is gone when it is to be.
func TestConsoleConversation(t *testing.T) {
	t.Parallel()
	model := &remembering{}
	api := httptest.NewServer(model)
	defer api.Close()
	h := newHome(t, map[string]person{"ann": {tenant: "acme", roles: []string{"admin"}}, "bob": {tenant: "acme", roles: []string{"read"}}},
		settings{"answer": settings{"base_url": api.URL, "model": "scripted"}})
	d := h.serve()
	defer d.stop()
	goldPlan(t, d.as("ann"))

	v := &visitor{Tab: browsertest.Open(t), t: t, url: d.url}
	v.Show(1100, 800, false)
	v.Visit(v.url + "/console")
	enterAs := func(name string) {
		v.enter("Token or API key", h.keys[name])
		v.press("Enter")
		v.Await(`document.querySelector("#who").innerText.startsWith(` + quoted(name) + `)`)
		v.loaded()
	}
	enterAs("ann")
	v.enter("Question", "What does the Gold plan cost per month?")
	v.press("Answer")
	v.shows("The Gold plan costs 2,100 EUR per month. S1")
	require.Empty(t, model.conversations(), "the first question has no history")
	v.enter("Follow-up question", "Can the Gold plan be cancelled?")
	v.press("Ask")
	v.shows("Understood as: What does the Gold plan cost per month? Can the Gold plan be cancelled?")
	v.Await(`[...document.querySelectorAll(".answer h3")].map((e) => e.innerText).includes("Can the Gold plan be cancelled?")`)
	v.Await(`document.querySelectorAll(".answer .cite").length >= 2`)
	require.Len(t, model.conversations(), 1)
	require.Contains(t, model.conversations()[0], "What does the Gold plan cost per month?")
	require.Contains(t, model.conversations()[0], "The Gold plan costs 2,100 EUR per month.", "what was answered goes with it")
	v.sound("conversation")
	v.picture("answer")

	v.press("S1")
	v.Await(`document.querySelector("mark")?.textContent.includes("2,100 EUR") === true`)
	v.press("Back to the search")
	v.shows("Understood as: ")
	v.press("Forget the conversation")
	v.Await(`document.querySelector(".answer") === null && document.activeElement.type === "search"`)
	v.press("Answer")
	v.shows("The Gold plan costs 2,100 EUR per month. S1")
	require.Len(t, model.conversations(), 1, "what is forgotten is sent no more")

	v.press("Change")
	enterAs("bob")
	require.NotContains(t, browsertest.Evaluate[string](v.Tab, `document.body.innerText`), "2,100 EUR", "what was said to another is gone")

	browsertest.Evaluate[bool](v.Tab, heldListing)
	v.press("Collections")
	v.Await(`window.letGo !== undefined`)
	v.press("Change")
	v.shows("Who are you?")
	browsertest.Evaluate[bool](v.Tab, `window.letGo()`)
	require.Equal(t, "Who are you?", browsertest.Evaluate[string](v.Tab, `document.querySelector("h1").innerText`), "what comes after its reader has left is not shown")
	require.Empty(t, v.faults())
}

// heldListing has what lists the collections come late: when letGo is called, which
// ends when the page has had the time to show it.
const heldListing = `(() => {
	const real = window.fetch;
	window.fetch = async (target, options) => {
		const response = await real(target, options);
		if (/collections$/.test(target)) await new Promise((go) => window.letGo = () => { go(); return new Promise((done) => setTimeout(done, 500, true)); });
		return response;
	};
	return true;
})()`

// Policies are tried before they are in force.
func consoleTriesPolicies(t *testing.T, v *visitor) {
	v.be("northstar-librarian")
	v.open("#/policies")
	v.enter("Another file", "none.cedar")
	v.press("Add")
	v.Await(`document.activeElement.getAttribute("aria-label") === "none.cedar"`)
	v.sound("policies")
	browsertest.Evaluate[bool](v.Tab, `(document.activeElement.value = "forbid (principal, action, resource);", true)`)
	browsertest.Evaluate[bool](v.Tab, `([...document.querySelectorAll("textarea")].at(-1).value = "bob-support\nalice-engineer", true)`)
	v.press("Show who gains")
	v.shows("2 principals of 2 would see something else")
	v.sound("outcome")
}

// scriptedJob has the page see a job that runs until it is paused, and again
// when it is resumed: the demo's own are over too soon.
const scriptedJob = `(() => {
	const real = window.fetch;
	let state = "running";
	const generations = () => ({
		generations: [{ id: 9, role: "building", created: new Date(0), job: { state, started: new Date(0), embedded: 0, reused: 1, gates: [], estimate: {}, bound: 0.02 } }],
		progress: state === "running" ? { documents: 1, of: 4, embedded: 0, reused: 1, rate: 2, seconds_left: 1.5 } : undefined,
	});
	window.fetch = async (target, options) => {
		const [, action] = /reindex(?:\/(\w+))?$/.exec(target) ?? [];
		if (!target.includes("/reindex")) return real(target, options);
		if (action === "pause") state = "paused";
		if (action === "resume") state = "running";
		const text = JSON.stringify(generations());
		return new Response(action === "events" ? "data: " + text + "\n\n" : text);
	};
	return true;
})()`

// A collection is rebuilt and rolled back, and each step shows without a reload.
func consoleReindexes(t *testing.T, v *visitor) {
	v.be("northstar-librarian")
	v.press("Collections")
	v.sound("collections")
	v.press("grounded-access")
	v.shows("Generation 1: serving")
	v.press("Reindex")
	v.press("Estimate")
	v.press("Start")
	v.shows(": previous")
	v.sound("generations")
	v.picture("generations")
	v.press("Roll back to it")
	v.press("Keep things as they are")
	v.Await(`document.querySelector("dialog") === null`)
	v.press("Roll back to it")
	browsertest.Evaluate[bool](v.Tab, `document.querySelector("dialog button").click() ?? true`)
	v.shows("Generation 1: serving")

	browsertest.Evaluate[bool](v.Tab, scriptedJob)
	v.press("All collections")
	v.press("grounded-access")
	v.shows("1 of 4 documents, 2.0 a second, 2 s left")
	v.press("Pause")
	v.shows("Job\npaused")
	v.press("Resume")
	v.shows("Job\nrunning")
	v.press("Cancel")
	v.shows("What it has built is thrown away.")
	v.press("Keep things as they are")

	v.press("System")
	v.shows("in use")
	v.sound("system")
	require.InDelta(t, 0.15, browsertest.Evaluate[float64](v.Tab, `import("/console/metrics.js").then(({ families, quantile }) =>
		quantile(families('t_bucket{a="x",le="0.1"} 2\nt_bucket{a="y",le="0.1"} 0\nt_bucket{le="0.2"} 10\nt_bucket{le="+Inf"} 10\n').t_bucket, 6 / 10))`), 1e-9)
	v.press("Reports")
	v.shows("figures")
	v.sound("reports")
}

// What a document says is text, wherever it shows.
func consoleShowsHostileDocumentsAsText(t *testing.T, v *visitor) {
	const attack = `<img src="/x" onerror="document.title='gone'"><script>document.title='gone'</script><a href="javascript:alert(1)">x</a>`
	api := v.api("you")
	_, err := api.CreateCollection(context.Background(), "mine", client.CollectionSettings{})
	require.NoError(t, err)
	_, err = api.Write(context.Background(), "mine", client.Document{
		Key: attack, Title: "T " + attack, Format: "markdown", Text: "# Ünïcode 漢字\n\nFirst.\n\n# Quay\n\nThe quay " + attack, Attributes: map[string]any{"a": attack},
	})
	require.NoError(t, err)
	v.be("you")
	v.search("the quay")
	v.shows("T <img")
	passage := browsertest.Evaluate[string](v.Tab, `document.querySelector("blockquote").textContent`)
	require.Contains(t, passage, "The quay <img")
	v.sound("hostile results")
	browsertest.Evaluate[bool](v.Tab, `document.querySelector("article h3 a").click() ?? true`)
	v.Await(`document.querySelector("mark") !== null`)
	require.Equal(t, passage, browsertest.Evaluate[string](v.Tab, `document.querySelector("mark").textContent`))
	v.sound("hostile document")
	v.press("Who may read it, and why")
	v.enter("Subject", "you")
	v.press("Explain")
	v.shows("you may read <img")
	v.sound("hostile explanation")
	require.Zero(t, browsertest.Evaluate[int](v.Tab, `document.querySelectorAll("main img, main script, main [href^=javascript]").length`))
	for _, address := range v.Requests() {
		require.NotEqual(t, v.url+"/x", address)
	}
}
