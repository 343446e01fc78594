// Package report makes a page of runs' figures: one HTML file that needs no
// other, and no script.
package report

import (
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"sluice/bench/figures"
	"sluice/bench/load"
)

//go:embed report.html
var page string

var pageTemplate = template.Must(template.New("report").Parse(page))

// Write writes the page of some runs.
func Write(w io.Writer, runs []figures.File) error {
	var sections []section
	for _, f := range runs {
		s, err := sectionOf(f)
		if err != nil {
			return fmt.Errorf("reporting %s: %w", f.Name(), err)
		}
		sections = append(sections, s)
	}
	if err := pageTemplate.Execute(w, sections); err != nil {
		return fmt.Errorf("writing the report: %w", err)
	}
	return nil
}

// section is one run.
type section struct {
	figures.File
	ID     int
	Charts []chart
	Rows   []row
}

// row is a figure, and what its rounds were.
type row struct {
	Name, Value, Rounds string
}

func sectionOf(f figures.File) (section, error) {
	s := section{File: f}
	for _, name := range slices.Sorted(maps.Keys(f.Figures)) {
		s.Rows = append(s.Rows, row{name, number(f.Figures[name]), numbers(f.Rounds[name])})
	}
	s.Charts = append(s.Charts, latencyAgainstLoad(f)...)
	distributions, err := distributions(f)
	s.Charts = append(append(s.Charts, distributions...), overTime(f)...)
	return s, err
}

func number(v float64) string { return strconv.FormatFloat(v, 'g', 5, 64) }

func numbers(values []float64) string {
	texts := make([]string, len(values))
	for i, v := range values {
		texts[i] = number(v)
	}
	return strings.Join(texts, ", ")
}

// split cuts "sluice.search.c8" into what is under load and the load.
func split(name string) (what, under string) {
	at := max(strings.LastIndexByte(name, '.'), 0)
	return name[:at], strings.TrimPrefix(name[at:], ".")
}

// groups are names by what is under load, each in the order of the loads.
func groups(names []string) (of map[string][]string, order []string) {
	of = map[string][]string{}
	for _, name := range names {
		if what, under := split(name); under != "knee" {
			of[what] = append(of[what], name)
		}
	}
	for what, loads := range of {
		slices.SortFunc(loads, compareLoads)
		order = append(order, what)
	}
	slices.Sort(order)
	return of, order
}

// compareLoads has c8 before c64.
func compareLoads(a, b string) int {
	if len(a) != len(b) {
		return len(a) - len(b)
	}
	return strings.Compare(a, b)
}

// latencyAgainstLoad is of what was measured under several loads: closed loops
// and ramps are lines of their own.
func latencyAgainstLoad(f figures.File) (charts []chart) {
	of, order := groups(slices.Collect(maps.Keys(f.Histograms)))
	for _, what := range order {
		c := chart{Title: what + ": latency against load", X: "requests a second", Y: "ms", LogY: true}
		for _, kind := range []string{"ramp", "c"} {
			for _, q := range []string{"p50", "p95", "p99"} {
				if l := along(f, of[what], kind, q); len(l.Points) > 1 {
					c.Lines = append(c.Lines, l)
				}
			}
		}
		if len(c.Lines) > 0 {
			charts = append(charts, c)
		}
	}
	return charts
}

// along is a percentile at the loads of one kind.
func along(f figures.File, loads []string, kind, percentile string) line {
	l := line{Name: map[string]string{"ramp": "open loop, ", "c": "closed loop, "}[kind] + percentile}
	for _, name := range loads {
		_, under := split(name)
		level, is := strings.CutPrefix(under, kind)
		if _, err := strconv.Atoi(level); is && err == nil {
			l.Points = append(l.Points, point{f.Figures[name+".requests_per_s"], f.Figures[name+"."+percentile+"_ms"]})
		}
	}
	return l
}

// cumulative are the shares at which a distribution is drawn.
var cumulative = func() (shares []float64) {
	for i := range 100 {
		shares = append(shares, float64(i)/100)
	}
	return append(shares, .995, .999, .9999, 1)
}()

// distributions are the cumulative ones of the loads.
func distributions(f figures.File) (charts []chart, err error) {
	of, order := groups(slices.Collect(maps.Keys(f.Histograms)))
	for _, what := range order {
		c := chart{Title: strings.TrimSpace(what + " latency: share of the requests that took no longer"), X: "ms", Y: "share", LogX: true}
		for _, name := range of[what] {
			h, err := load.ParseHistogram(f.Histograms[name])
			if err != nil {
				return nil, fmt.Errorf("%s: %w", name, err)
			}
			_, under := split(name)
			c.Lines = append(c.Lines, distribution(under, h))
		}
		charts = append(charts, c)
	}
	return charts, nil
}

func distribution(name string, h load.Histogram) line {
	l := line{Name: name}
	for _, share := range cumulative {
		l.Points = append(l.Points, point{float64(h.Quantile(share)) / float64(time.Millisecond), share})
	}
	return l
}

// overTime is how the loads went on, all rounds one after the other.
func overTime(f figures.File) (charts []chart) {
	of, order := groups(slices.Collect(maps.Keys(f.Series)))
	for _, what := range order {
		c := chart{Title: what + ": mean latency as time goes on, round after round", X: "s", Y: "ms", LogY: true}
		for _, name := range of[what] {
			_, under := split(name)
			l := line{Name: under}
			for _, i := range f.Series[name] {
				if i.Requests > 0 {
					l.Points = append(l.Points, point{i.At, i.Mean})
				}
			}
			c.Lines = append(c.Lines, l)
		}
		charts = append(charts, c)
	}
	return charts
}
