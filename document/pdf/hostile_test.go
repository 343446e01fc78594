package pdf

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/bits"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"sluice/document"
)

// hostile are pages made to be slow, as large as one may be.
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
	"many small grids": func(p *page) {
		for i := range 660 {
			x, y := 1000+float64(20*(i%25)), float64(20*(i/25))
			for j := range 3 {
				d := float64(7 * j)
				p.rules = append(p.rules, rule(x, y+d, x+15, 1), document.Box{Left: x + d, Right: x + d + 1, Top: y, Bottom: y + 15})
			}
		}
		p.words(100_000, 1, "x")
	},
	"rules of different ends around all text": func(p *page) {
		for i := range 2000 {
			x := -100 - float64(10*i)
			p.rules = append(p.rules, rule(x, -5, 60+float64(20*i), 1), rule(x, 2e6, 60+float64(20*i), 1))
		}
		p.words(100_000, 1, "x")
	},
	"thick and thin rules below all text": func(p *page) {
		p.words(100_000, 1, "x")
		for i := range 2000 {
			x := -100 - float64(10*i)
			p.rules = append(p.rules, rule(x, 2e6, 60+float64(20*i), 2), rule(x, 2e6+100, 60+float64(20*i), 1))
		}
	},
	"regions of one run": func(p *page) {
		for i := range 1300 {
			y := 10*float64(i) + 4
			for j := range 3 {
				p.rules = append(p.rules, rule(-10, y+3*float64(j)+float64(i)*30, 200+10*float64(i), 1))
			}
		}
		p.words(100_000, 1, "x")
	},
	"many rules at one place": func(p *page) {
		for i := range 200_000 {
			x := float64(10 * (i % 3999))
			p.rules = append(p.rules, rule(x, 0, x+60, 1))
		}
		p.words(1000, 1, "x")
	},
	"one row drawn from the right": func(p *page) {
		p.words(90_000, 90_000, "a")
		slices.Reverse(p.runs)
	},
	"rows with columns between those of the others": func(p *page) {
		p.words(3*16_000, 16_000, "a")
		for i := range p.runs {
			p.runs[i].box.Left += 60 * float64(i/16_000)
			p.runs[i].box.Right = p.runs[i].box.Left + 10
		}
	},
	"headers at one height": func(p *page) {
		p.words(100_000, 100_000, "a header")
		for i := range p.runs {
			p.runs[i].turned, p.runs[i].size = true, 30
		}
	},
	"marks without end": func(p *page) {
		for i := range 60_000 {
			p.words(1, 1, raised(fmt.Sprint(i%999)))
		}
		p.words(999, 1, "x")
	},
	"continued without end": func(p *page) {
		for range 10_000 {
			p.words(6, 2, "a")
			p.words(1, 1, "continued")
		}
	},
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

// counted is a context that counts how often it is looked at, and ends then.
type counted struct {
	context.Context
	looks, most int
}

var errTooMuchWork = errors.New("too much work")

func (c *counted) Err() error {
	if c.looks++; c.looks > c.most {
		return errTooMuchWork
	}
	return nil
}

// stepsOf bound the work of a page: n log n of what it has, and what the layout says
// that it spends on tables.
func stepsOf(p *page) int {
	n := len(p.runs) + len(p.rules)
	return 8*n*bits.Len(uint(n)) + 2*maxLooks + maxRules*maxRules/2 + mostCompared/lookedAt/8
}

// Work that grows with the square of a page takes more steps than there may be.
func TestHostilePages(t *testing.T) {
	for name, draw := range hostile {
		t.Run(name, func(t *testing.T) {
			p := &page{number: 1, width: 1e6, height: 1e6}
			draw(p)
			ctx := &counted{Context: t.Context(), most: stepsOf(p) / perLook}
			doc, err := assemble(ctx, []*page{p})
			require.NoError(t, err)
			require.NoError(t, document.Check(doc))
			require.Less(t, len(doc.Text), 64<<20)
			t.Logf("%d of %d looks", ctx.looks, ctx.most)
		})
	}
}

// A table of very many columns that stands on two pages takes no longer.
func TestHostileTableGoesOn(t *testing.T) {
	var pages []*page
	most := 0
	for i := range 2 {
		p := &page{number: i + 1, width: 1e6, height: 1e6}
		p.words(90_000, 30_000, "a")
		pages, most = append(pages, p), most+stepsOf(p)
	}
	ctx := &counted{Context: t.Context(), most: most / perLook}
	doc, err := assemble(ctx, pages)
	require.NoError(t, err)
	require.Len(t, tablesOf(doc.Blocks), 2)
}

// A context that has ended stops the layout, wherever it is.
func TestLayoutIsCancelled(t *testing.T) {
	draw := func() []*page {
		p := &page{number: 1, width: 1e6, height: 1e6}
		hostile["a fine grid"](p)
		return []*page{p}
	}
	whole := &counted{Context: t.Context(), most: math.MaxInt}
	_, err := assemble(whole, draw())
	require.NoError(t, err)
	for most := 0; most < whole.looks; most += 1 + whole.looks/10 {
		ctx := &counted{Context: t.Context(), most: most}
		_, err := assemble(ctx, draw())
		require.ErrorIs(t, err, errTooMuchWork)
		require.Equal(t, most+1, ctx.looks, "it goes on after its context has ended")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = assemble(ctx, []*page{{number: 1, width: 100, height: 100}})
	require.ErrorIs(t, err, context.Canceled)
}
