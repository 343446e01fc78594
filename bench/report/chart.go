package report

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

// A chart's size and the room around its area, in pixels.
const (
	width, height            = 720, 300
	left, right, top, bottom = 64, 16, 12, 44
)

// chart is a plot of lines.
type chart struct {
	Title, X, Y string
	LogX, LogY  bool
	Lines       []line
}

type line struct {
	Name   string
	Points []point
}

type point struct{ X, Y float64 }

// scale maps values to pixels.
type scale struct {
	low, high float64 // of the values, or of their logarithms
	from, to  float64 // pixels
	log       bool
}

func newScale(values []float64, log bool, from, to float64) scale {
	s := scale{from: from, to: to, log: log}
	if log {
		values = slices.DeleteFunc(slices.Clone(values), func(v float64) bool { return v <= 0 })
	}
	if len(values) == 0 {
		values = []float64{1}
	}
	s.low, s.high = slices.Min(values), slices.Max(values)
	if log {
		s.low, s.high = math.Floor(math.Log10(s.low)), math.Ceil(math.Log10(s.high))
	} else {
		s.low = min(s.low, 0)
	}
	if s.low == s.high {
		s.high++
	}
	return s
}

func (s scale) at(v float64) float64 {
	if s.log {
		v = math.Log10(max(v, math.Pow(10, s.low)))
	}
	return s.from + (v-s.low)/(s.high-s.low)*(s.to-s.from)
}

// ticks are round values within.
func (s scale) ticks() (values []float64) {
	if s.log {
		for e := s.low; e <= s.high; e++ {
			values = append(values, math.Pow(10, e))
		}
		return values
	}
	step := math.Pow(10, math.Floor(math.Log10(s.high-s.low)))
	for (s.high-s.low)/step < 4 {
		step /= 2
	}
	for v := math.Ceil(s.low/step) * step; v <= s.high+step/1e6; v += step {
		values = append(values, v)
	}
	return values
}

// drawn is a chart in pixels, for the template.
type drawn struct {
	chart
	Width, Height                       int
	AreaX, AreaY, AreaWidth, AreaHeight int
	XTicks, YTicks                      []tick
	Paths                               []path
}

type tick struct {
	At    float64
	Label string
}

type path struct {
	Name, Points string
	Class        int // of colour
}

// colours is how many the style sheet has.
const colours = 12

func (c chart) Draw() drawn {
	var xs, ys []float64
	for _, l := range c.Lines {
		for _, p := range l.Points {
			xs, ys = append(xs, p.X), append(ys, p.Y)
		}
	}
	x, y := newScale(xs, c.LogX, left, width-right), newScale(ys, c.LogY, height-bottom, top)
	d := drawn{
		chart: c, Width: width, Height: height, AreaX: left, AreaY: top, AreaWidth: width - left - right, AreaHeight: height - top - bottom,
		XTicks: labelled(x), YTicks: labelled(y),
	}
	for i, l := range c.Lines {
		var points strings.Builder
		for _, p := range l.Points {
			fmt.Fprintf(&points, "%.1f,%.1f ", x.at(p.X), y.at(p.Y))
		}
		d.Paths = append(d.Paths, path{l.Name, strings.TrimSpace(points.String()), i % colours})
	}
	return d
}

func labelled(s scale) (ticks []tick) {
	for _, v := range s.ticks() {
		ticks = append(ticks, tick{s.at(v), fmt.Sprintf("%.4g", v)})
	}
	return ticks
}
