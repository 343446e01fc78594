package eval

import (
	"maps"
	"slices"
	"time"

	"gonum.org/v1/gonum/stat"

	"sluice/bench/figures"
	"sluice/client"
	"sluice/statistics"
)

// Report is what a run found. It is run.json, and the source of report.md and of
// the figures.
type Report struct {
	Outcome     Outcome             `json:"outcome"`
	Dataset     string              `json:"dataset"`
	Digest      string              `json:"digest"` // SHA-256 of the data set's content
	Split       string              `json:"split"`
	Notes       []string            `json:"notes"`
	Documents   int                 `json:"documents"` // versions counted singly
	Cases       int                 `json:"cases"`
	Answerable  int                 `json:"answerable"`
	Depth       int                 `json:"depth"` // results asked for
	Command     string              `json:"command"`
	Commit      string              `json:"commit"`
	Model       string              `json:"model,omitempty"` // "" if the data set was there before
	Plans       map[string][]string `json:"plans"`           // plan hashes by strategy
	Environment figures.Environment `json:"environment"`
	Date        time.Time           `json:"date"`
	Findings    []Finding           `json:"findings"`
	Probes      *Probes             `json:"probes,omitempty"` // nil: none were asked
	Build       *Build              `json:"build,omitempty"`  // nil: the data set was there before
	Strategies  []Summary           `json:"strategies"`

	Associations []Association `json:"associations,omitempty"`
}

// Build is what the writing of the data set took.
type Build struct {
	Seconds float64 `json:"seconds"`
	Text    int64   `json:"text_bytes"` // of the documents, every version
	Disk    int64   `json:"disk_bytes"` // of the service's directory afterwards, logs included; 0: unknown
}

// Summary is one strategy's share.
type Summary struct {
	Strategy string                         `json:"strategy"`
	Metrics  map[string]statistics.Estimate `json:"metrics"` // over the answerable cases
	Tags     []TagSummary                   `json:"tags"`
	P50      float64                        `json:"p50_ms"` // over all cases
	P95      float64                        `json:"p95_ms"`
	Mean     float64                        `json:"mean_ms"`
	Routes   map[string]float64             `json:"routes,omitempty"` // of auto: share of the searches by what was chosen
}

// TagSummary is the mean of the metrics over the answerable cases of one tag.
type TagSummary struct {
	Tag     string             `json:"tag"`
	Cases   int                `json:"cases"`
	Metrics map[string]float64 `json:"metrics"`
}

// Answer is one case asked with one strategy: a line of cases.jsonl.
type Answer struct {
	Case          string         `json:"case"`
	Principal     string         `json:"principal"`
	Strategy      string         `json:"strategy"`
	Route         string         `json:"route,omitempty"` // what auto chose
	EvidenceRanks []int          `json:"evidence_ranks"`  // 1-based, 0 for none
	WholeRanks    []int          `json:"whole_ranks"`     // of the first result that has all of the item
	LatencyMS     float64        `json:"latency_ms"`      // as the client sees it
	Degraded      []string       `json:"degraded,omitempty"`
	Results       []AnswerResult `json:"results"` // as ranks are counted
}

// AnswerResult is one result of an Answer.
type AnswerResult struct {
	Document string  `json:"document"`
	Version  uint32  `json:"version"`
	Start    int     `json:"start"`
	End      int     `json:"end"`
	Score    float64 `json:"score"`
	Relevant bool    `json:"relevant"`
}

func (t trial) answer(strategy string, response client.SearchResponse, took time.Duration) Answer {
	ranked := t.ranking(response.Results)
	results := make([]AnswerResult, 0, len(ranked))
	for _, r := range ranked {
		results = append(results, AnswerResult{r.Document, r.Version, r.Start, r.End, r.Score, t.relevant(r)})
	}
	route := ""
	if strategy == auto {
		route = response.Strategy
	}
	return Answer{
		Case: t.ID, Principal: t.Principal, Strategy: strategy, Route: route, EvidenceRanks: t.ranks(ranked), WholeRanks: t.wholeRanks(ranked),
		LatencyMS: float64(took) / float64(time.Millisecond), Degraded: response.Degraded, Results: results,
	}
}

func (r *Report) addPlan(strategy, hash string) {
	if !slices.Contains(r.Plans[strategy], hash) {
		r.Plans[strategy] = append(r.Plans[strategy], hash)
	}
}

// summarize is empty where nothing was asked.
func summarize(strategies []string, metrics []Metric, cases []Case, answers []Answer) []Summary {
	if len(answers) == 0 {
		return nil
	}
	tags := map[string][]string{}
	for _, c := range cases {
		tags[c.ID] = c.Tags
	}
	var summaries []Summary
	for _, strategy := range strategies {
		own := slices.DeleteFunc(slices.Clone(answers), func(a Answer) bool { return a.Strategy != strategy })
		summaries = append(summaries, summarizeStrategy(strategy, metrics, tags, own))
	}
	return summaries
}

func summarizeStrategy(strategy string, metrics []Metric, tags map[string][]string, answers []Answer) Summary {
	var latencies []float64
	var ranks [][]int
	byTag := map[string][][]int{}
	for _, a := range answers {
		latencies = append(latencies, a.LatencyMS)
		if len(a.EvidenceRanks) == 0 {
			continue
		}
		ranks = append(ranks, a.EvidenceRanks)
		for _, tag := range tags[a.Case] {
			byTag[tag] = append(byTag[tag], a.EvidenceRanks)
		}
	}
	s := Summary{Strategy: strategy, Metrics: map[string]statistics.Estimate{}, P50: statistics.Quantile(0.5, latencies), P95: statistics.Quantile(0.95, latencies)}
	s.Mean, s.Routes = stat.Mean(latencies, nil), routeShares(answers)
	for _, m := range metrics {
		s.Metrics[m.Name] = statistics.Mean(m.each(ranks))
	}
	for _, tag := range slices.Sorted(maps.Keys(byTag)) {
		s.Tags = append(s.Tags, summarizeTag(tag, metrics, byTag[tag]))
	}
	return s
}

// routeShares is nil where the service had no choice.
func routeShares(answers []Answer) map[string]float64 {
	if len(answers) == 0 || answers[0].Strategy != auto {
		return nil
	}
	shares := map[string]float64{}
	for _, route := range routes {
		shares[route] = 0
	}
	for _, a := range answers {
		shares[a.Route] += 1 / float64(len(answers))
	}
	return shares
}

func summarizeTag(tag string, metrics []Metric, ranks [][]int) TagSummary {
	t := TagSummary{Tag: tag, Cases: len(ranks), Metrics: map[string]float64{}}
	for _, m := range metrics {
		sum := 0.0
		for _, value := range m.each(ranks) {
			sum += value
		}
		t.Metrics[m.Name] = sum / float64(len(ranks))
	}
	return t
}

// each applies the metric to the ranks of every case.
func (m Metric) each(ranks [][]int) []float64 {
	values := make([]float64, len(ranks))
	for i, r := range ranks {
		values[i] = m.Of(r)
	}
	return values
}
