package report

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/net/html"

	"sluice/bench/figures"
	"sluice/bench/load"
)

// serveRun is a run as 'bench serve' writes it.
func serveRun(t *testing.T) figures.File {
	f := figures.New(t.Context(), "ref")
	f.Command = `sluice bench serve --self --json "<script>alert(1)</script>"`
	f.Profiles = []string{"cpu.pprof"}
	f.Flags = map[string]string{"rounds": "2"}
	for i, under := range []string{"c1", "c8", "c64", "ramp10", "ramp50", "knee"} {
		name := "sluice.search." + under
		h := load.NewHistogram()
		for n := range 100 {
			h.Record(time.Duration(i+1) * time.Duration(n) * time.Millisecond)
		}
		f.Histograms[name] = h.String()
		for _, p := range []string{"p50", "p95", "p99"} {
			f.Figures[name+"."+p+"_ms"] = float64(i + 1)
		}
		f.Median(name+".requests_per_s", []float64{float64(100 * (i + 1)), float64(100 * (i + 1))})
		f.Series[name] = []figures.Interval{{At: 0, Requests: 3, Mean: 2, Max: 4}, {At: 1, Requests: 0}, {At: 2, Requests: 1, Mean: 1, Max: 1}}
	}
	return f
}

// elements is a page's, by name.
func elements(t *testing.T, page []byte) map[string][]*html.Node {
	t.Helper()
	root, err := html.Parse(bytes.NewReader(page))
	require.NoError(t, err)
	all := map[string][]*html.Node{}
	for n := range root.Descendants() {
		if n.Type == html.ElementNode {
			all[n.Data] = append(all[n.Data], n)
		}
	}
	return all
}

func TestReport(t *testing.T) {
	var page bytes.Buffer
	require.NoError(t, Write(&page, []figures.File{serveRun(t), {Command: "sluice bench embed", Figures: map[string]float64{"x": 1}}}))
	all := elements(t, page.Bytes())
	require.Len(t, all["section"], 2)
	require.Len(t, all["svg"], 3, "latency against load, distributions, time")
	require.Len(t, all["polyline"], 3*2+5+5, "three percentiles of two kinds of loop; the knee is a step of the ramp")
	require.Empty(t, all["script"], "what a command line says is text")
	require.Contains(t, page.String(), "&lt;script&gt;")
	for _, n := range append(all["a"], append(all["img"], all["link"]...)...) {
		for _, a := range n.Attr {
			require.NotRegexp(t, `^(https?:)?//`, a.Val, "no request leaves the page")
		}
	}
	require.NotContains(t, page.String(), "http://")
	require.NotContains(t, page.String(), "https://")
	for _, n := range all["polyline"] {
		require.NotContains(t, fmt.Sprint(n.Attr), "NaN")
		require.NotContains(t, fmt.Sprint(n.Attr), "Inf")
	}
	require.Contains(t, page.String(), "go tool pprof -http=: cpu.pprof")
}

// The drawings are well-formed also by XML's rules.
func TestDrawings(t *testing.T) {
	var page bytes.Buffer
	require.NoError(t, Write(&page, []figures.File{serveRun(t)}))
	for _, part := range strings.Split(page.String(), "<svg")[1:] {
		drawing, _, _ := strings.Cut("<svg"+part, "</svg>")
		require.NoError(t, xml.Unmarshal([]byte(drawing+"</svg>"), new(struct{})))
	}
}

func TestScale(t *testing.T) {
	linear := newScale([]float64{0, 50, 100}, false, 0, 10)
	require.Equal(t, 5.0, linear.at(50))
	require.Equal(t, []float64{0, 25, 50, 75, 100}, linear.ticks())
	log := newScale([]float64{0, .2, 50}, true, 0, 30)
	require.Equal(t, []float64{.1, 1, 10, 100}, log.ticks())
	require.InDelta(t, 10, log.at(1), 1e-9)
	require.InDelta(t, 0, log.at(0), 1e-9, "what a logarithm has no place for is at the edge")
	for _, values := range [][]float64{nil, {0}, {7}, {0, 0}} {
		for _, isLog := range []bool{false, true} {
			s := newScale(values, isLog, 0, 10)
			require.Greater(t, s.high, s.low)
			require.NotEmpty(t, s.ticks())
		}
	}
}

func TestReportRefusesADamagedHistogram(t *testing.T) {
	err := Write(&bytes.Buffer{}, []figures.File{{Command: "sluice bench x", Histograms: map[string]string{"a.b": "?"}}})
	require.ErrorContains(t, err, "bench x: a.b: a histogram")
}
