package eval

import (
	"fmt"
	"slices"
	"time"

	"sluice/client"
)

// located is an evidence item with its place, the bytes [start, end) of the
// document's normalised text; a whole document has none.
type located struct {
	Evidence
	start, end int
}

// metBy reports whether the result is relevant: it shares a byte with the quote.
func (l located) metBy(result client.SearchResult) bool {
	if !slices.Contains(l.Documents, result.Document) || result.Version != l.Version {
		return false
	}
	return l.Quote == "" || result.Start < l.end && l.start < result.End
}

// trial is one case with all that its answers are judged by.
type trial struct {
	Case
	asker     Principal
	visible   map[string]uint32   // what the asker may see
	documents map[string]Document // current versions of the asker's tenant
	evidence  []located
	matching  Matching
}

// scope is what the request says of applicability: nothing, unless the case does.
func (t trial) scope() *client.Scope {
	if t.Region == nil && t.AsOf == nil {
		return nil
	}
	return &client.Scope{Region: t.Region, AsOf: t.AsOf}
}

// inScope applies the labels of a document to the case's region and time.
func (t trial) inScope(key string, now time.Time) bool {
	region, at := t.asker.region(), now
	if t.Region != nil {
		region = *t.Region
	}
	if t.AsOf != nil {
		at = *t.AsOf
	}
	return !slices.Contains(t.OutOfScope, key) && t.documents[key].applies(region, at)
}

// judge finds what one response did wrong, ranking apart.
func (t trial) judge(strategy string, response client.SearchResponse, now time.Time) []Finding {
	var findings []Finding
	for _, result := range response.Results {
		findings = append(findings, t.judgeResult(result, now)...)
	}
	findings = append(findings, t.judgeCounts(response.Counts, now)...)
	for _, stage := range response.Degraded {
		findings = append(findings, Finding{Kind: Degraded, Detail: stage})
	}
	if !answeredBy(strategy, response.Strategy) {
		findings = append(findings, Finding{Kind: Degraded, Detail: fmt.Sprintf("answered with strategy %q", response.Strategy)})
	}
	for i := range findings {
		findings[i].Principal, findings[i].Case, findings[i].Strategy = t.Principal, t.ID, strategy
	}
	return findings
}

// auto is the strategy that leaves the choice among routes to the service.
const auto = "auto"

var routes = []string{"sparse", "hybrid", "hybrid-late"}

// answeredBy reports whether the strategy of an answer is the one that was asked.
func answeredBy(asked, used string) bool {
	return used == asked || asked == auto && slices.Contains(routes, used)
}

// judgeResult needs no look at the case's unauthorized documents: a data set in
// which one of them is visible is refused.
func (t trial) judgeResult(result client.SearchResult, now time.Time) []Finding {
	version, visible := t.visible[result.Document]
	found := Finding{Document: result.Document, Version: result.Version}
	switch {
	case !visible:
		found.Kind, found.Detail = Leak, "found, though the labels do not make it visible"
	case version != result.Version:
		found.Kind, found.Detail = Leak, fmt.Sprintf("found, though version %d is the current one", version)
	case !t.inScope(result.Document, now):
		found.Kind, found.Detail = ScopeFailure, "found, though it is out of scope"
	default:
		return nil
	}
	return []Finding{found}
}

// judgeCounts compares the counts with the labels: a count shows the existence
// of a document as well as a listing does.
func (t trial) judgeCounts(counts client.Counts, now time.Time) []Finding {
	outOfScope := 0
	for key := range t.visible {
		if !t.inScope(key, now) {
			outOfScope++
		}
	}
	var findings []Finding
	if counts.Visible != len(t.visible) {
		kind := Disagreement
		if counts.Visible > len(t.visible) {
			kind = Leak
		}
		findings = append(findings, Finding{Kind: kind, Detail: fmt.Sprintf("counts %d visible documents, the labels %d", counts.Visible, len(t.visible))})
	}
	if counts.OutOfScope != outOfScope {
		findings = append(findings, Finding{Kind: ScopeFailure, Detail: fmt.Sprintf("counts %d documents out of scope, the labels %d", counts.OutOfScope, outOfScope)})
	}
	return findings
}

// ranking is what ranks are counted in: the results without the case's excluded
// documents and, where whole documents are matched, the best of each document.
func (t trial) ranking(results []client.SearchResult) []client.SearchResult {
	var ranked []client.SearchResult
	seen := map[string]bool{}
	for _, result := range results {
		again := t.matching == WholeDocument && seen[result.Document]
		if again || slices.Contains(t.Exclude, result.Document) {
			continue
		}
		seen[result.Document] = true
		ranked = append(ranked, result)
	}
	return ranked
}

// ranks returns, for each evidence item, the 1-based rank of the first result
// that meets it, 0 for none.
func (t trial) ranks(ranked []client.SearchResult) []int {
	ranks := make([]int, len(t.evidence))
	for i, item := range t.evidence {
		ranks[i] = 1 + slices.IndexFunc(ranked, item.metBy)
	}
	return ranks
}

// wholeRanks are the ranks of the first results that have all of each item.
func (t trial) wholeRanks(ranked []client.SearchResult) []int {
	ranks := make([]int, len(t.evidence))
	for i, item := range t.evidence {
		ranks[i] = 1 + slices.IndexFunc(ranked, func(r client.SearchResult) bool {
			return item.metBy(r) && (item.Quote == "" || r.Start <= item.start && item.end <= r.End)
		})
	}
	return ranks
}

// relevant reports whether the result meets any evidence.
func (t trial) relevant(result client.SearchResult) bool {
	return slices.ContainsFunc(t.evidence, func(l located) bool { return l.metBy(result) })
}
