package pdf

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"sluice/document"
)

// hostile are pages made to be slow, as large as one may be. Work that grows with
// the square of a page does not get through the test.
var hostile = map[string]func(p *page){
	"rules without an end": func(p *page) {
		for i := range 40_000 {
			p.rules = append(p.rules, rule(float64(i%20), float64(10*i), 300, 1.5-float64(i%2)))
		}
		p.words(50_000, 1, "x")
	},
	"many regions": func(p *page) {
		for i := range 20_000 {
			p.rules = append(p.rules, rule(0, float64(10*i), 100+float64(3*(i%1000)), 1))
		}
		p.words(50_000, 2, "x")
	},
	"a fine grid": func(p *page) {
		for i := range 300 {
			p.rules = append(p.rules, rule(0, float64(10*i), 3000, 1), document.Box{Left: float64(10 * i), Right: float64(10*i) + 1, Bottom: 3000})
		}
		p.words(50_000, 3, "x")
	},
	"one row of a grid that has no rules in it": func(p *page) {
		for i := range 1500 {
			p.rules = append(p.rules, document.Box{Left: float64(10 * i), Right: float64(10*i) + 1, Top: 20, Bottom: 40})
		}
		p.rules = append(p.rules, rule(0, 0, 15_000, 1), rule(0, 20, 15_000, 1), rule(0, 40, 15_000, 1))
		p.rules = append(p.rules, document.Box{Right: 1, Bottom: 40})
		p.words(50_000, 50_000, "words of a row")
	},
	"two columns":                  func(p *page) { p.words(100_000, 2, "a cell") },
	"two columns and many of one":  func(p *page) { p.words(2000, 1000, "a"); p.words(60_000, 2, "a") },
	"a cell of many lines":         func(p *page) { p.words(4, 2, "a"); p.words(90_000, 1, strings.Repeat("x", 5)) },
	"three rows":                   func(p *page) { p.words(90_000, 30_000, "a") },
	"a paragraph of parted words":  func(p *page) { p.words(90_000, 1, "a-") },
	"page numbers":                 func(p *page) { p.words(60_000, 1, "12") },
	"footnotes without marks":      func(p *page) { p.words(60_000, 1, string(markOpen)+"7"+string(markClose)+" and more") },
	"a staircase of narrow things": func(p *page) { p.stairs(2000) },
	"turned": func(p *page) {
		p.words(20_000, 1, "a line that is turned round, ")
		for i := range p.runs {
			p.runs[i].turned, p.runs[i].text = true, p.runs[i].text+fmt.Sprint(strings.Repeat(string(rune('a'+i%26)), i%200))
			p.runs[i].box.Top, p.runs[i].box.Bottom = 0, 8
		}
	},
}

func rule(left, top, right, height float64) document.Box {
	return document.Box{Left: left, Top: top, Right: right, Bottom: top + height}
}

// words adds so many runs, so many in a row, below what there is.
func (p *page) words(n, each int, text string) {
	top := 10 * float64(len(p.runs))
	for i := range n {
		one := at(float64(i%each)*200, top+10*float64(i/each), text)
		one.box.Right = one.box.Left + 100
		p.runs = append(p.runs, one)
	}
}

func (p *page) stairs(n int) {
	for i := range n {
		p.runs = append(p.runs, at(float64(9*i), float64(9*i), strings.Repeat("x", 20)))
	}
}

func TestHostilePages(t *testing.T) {
	for name, draw := range hostile {
		t.Run(name, func(t *testing.T) {
			p := &page{number: 1, width: 1e6, height: 1e6}
			draw(p)
			doc, err := assemble(t.Context(), []*page{p})
			require.NoError(t, err)
			require.NoError(t, document.Check(doc))
			require.Less(t, len(doc.Text), 64<<20)
		})
	}
}

// A context that has ended stops the layout.
func TestLayoutIsCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := assemble(ctx, []*page{{number: 1, width: 100, height: 100}})
	require.ErrorIs(t, err, context.Canceled)
}
