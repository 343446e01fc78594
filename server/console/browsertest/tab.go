package browsertest

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"sluice/needs"
)

// patience bounds each step: what takes longer has failed.
const patience = time.Minute

// Tab is one page in a browser of its own.
type Tab struct {
	t   testing.TB
	end context.CancelFunc // of the browser
	ctx context.Context
	dir string

	mu       sync.Mutex
	faults   []string
	requests []string
}

// Open starts a browser, which ends with the test.
func Open(t testing.TB) *Tab {
	t.Helper()
	tab := &Tab{t: t, dir: needs.Installed(t, "browser", "browser")}
	ctx, end := allocator(context.Background(), tab.dir)
	tab.end = end
	t.Cleanup(end)
	tab.ctx, end = chromedp.NewContext(ctx, chromedp.WithListener(tab.listen))
	t.Cleanup(end)
	tab.check(chromedp.Do(tab.ctx)) // the browser lives as long as the context of the first call
	return tab
}

// Close ends the browser before the test ends.
func (tab *Tab) Close() { tab.end() }

// Do runs steps of chromedp.
func (tab *Tab) Do(steps ...chromedp.Action[chromedp.Void]) {
	tab.t.Helper()
	ctx, cancel := context.WithTimeout(tab.ctx, patience)
	defer cancel()
	tab.check(chromedp.Do(ctx, steps...))
}

// Visit loads a page.
func (tab *Tab) Visit(address string) {
	tab.t.Helper()
	tab.Do(chromedp.Navigate(address))
}

// Await waits until a JavaScript expression is true.
func (tab *Tab) Await(expression string) {
	tab.t.Helper()
	Evaluate[bool](tab, `new Promise(done => {
		const look = () => (`+expression+`) ? done(true) : setTimeout(look, 10);
		look();
	})`)
}

// Evaluate returns the value of a JavaScript expression, awaited if a promise.
func Evaluate[T any](tab *Tab, expression string) T {
	tab.t.Helper()
	ctx, cancel := context.WithTimeout(tab.ctx, patience)
	defer cancel()
	value, err := chromedp.Run(ctx, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
	if err != nil {
		tab.t.Fatalf("evaluating %s: %v%s", expression, err, tab.state())
	}
	return value
}

// Show sets the size of the window, and whether the visitor wants dark colours.
func (tab *Tab) Show(width, height int64, dark bool) {
	tab.t.Helper()
	scheme := "light"
	if dark {
		scheme = "dark"
	}
	tab.Do(chromedp.EmulateViewport(width, height), chromedp.Func(func(ctx context.Context, target *chromedp.Target) error {
		_, err := cdp.Call(ctx, target, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
			Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}},
		})
		return err
	}))
}

// Press presses keys, as kb names them, on whatever has the focus.
func (tab *Tab) Press(keys string) {
	tab.t.Helper()
	tab.Do(chromedp.KeyEvent(keys))
}

// Picture is a PNG of the window.
func (tab *Tab) Picture() []byte {
	tab.t.Helper()
	ctx, cancel := context.WithTimeout(tab.ctx, patience)
	defer cancel()
	picture, err := chromedp.Run(ctx, chromedp.CaptureScreenshot())
	tab.check(err)
	return picture
}

// Violation is a rule of axe that a page breaks.
type Violation struct {
	Rule  string   `json:"id"`
	Help  string   `json:"help"`
	Nodes []string `json:"nodes"` // their HTML
}

// Axe returns what axe finds wrong with the page as it stands.
func (tab *Tab) Axe() []Violation {
	tab.t.Helper()
	script, err := os.ReadFile(filepath.Join(tab.dir, "node_modules", "axe-core", "axe.min.js"))
	tab.check(err)
	Evaluate[bool](tab, string(script)+"; true")
	return Evaluate[[]Violation](tab, `axe.run().then(found => found.violations.map(v => (
		{id: v.id, help: v.help, nodes: v.nodes.map(n => n.html)})))`)
}

// Faults are the exceptions of the page's scripts, and what the browser logged
// as an error, such as a breach of the page's Content-Security-Policy.
func (tab *Tab) Faults() []string {
	tab.mu.Lock()
	defer tab.mu.Unlock()
	return append([]string{}, tab.faults...)
}

// Requests are the addresses asked for so far, without data: addresses.
func (tab *Tab) Requests() []string {
	tab.mu.Lock()
	defer tab.mu.Unlock()
	return append([]string{}, tab.requests...)
}

func (tab *Tab) listen(event any) {
	tab.mu.Lock()
	defer tab.mu.Unlock()
	switch e := event.(type) {
	case *runtime.EventExceptionThrown:
		tab.faults = append(tab.faults, text(e.ExceptionDetails))
	case *log.EventEntryAdded:
		if e.Entry.Level == log.EntryLevelError {
			tab.faults = append(tab.faults, fmt.Sprintf("%s: %s %s", e.Entry.Source, e.Entry.Text, e.Entry.URL))
		}
	case *network.EventRequestWillBeSent:
		if u, err := url.Parse(e.Request.URL); err != nil || u.Scheme != "data" {
			tab.requests = append(tab.requests, e.Request.URL)
		}
	}
}

func text(details *runtime.ExceptionDetails) string {
	b, _ := json.Marshal(details) // it was decoded from JSON
	return string(b)
}

func (tab *Tab) check(err error) {
	tab.t.Helper()
	if err != nil {
		tab.t.Fatalf("%v%s", err, tab.state())
	}
}

// state tells of the page to whoever has to find out what went wrong.
func (tab *Tab) state() string {
	ctx, cancel := context.WithTimeout(tab.ctx, patience)
	defer cancel()
	says, err := chromedp.Run(ctx, chromedp.Evaluate[string]("document.body.innerText"))
	if err != nil {
		says = err.Error()
	}
	return fmt.Sprintf("\nfaults: %q\nthe page says: %s", tab.Faults(), says)
}
