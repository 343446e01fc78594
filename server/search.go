package server

import (
	"time"

	"github.com/valyala/fasthttp"

	"sluice/client"
	"sluice/filter"
	"sluice/retrieve"
)

func (s *Server) search(q *request) error {
	collection, err := q.collection()
	if err != nil {
		return err
	}
	var body client.SearchRequest
	if err := q.readJSON(&body); err != nil {
		return err
	}
	search, err := searchOf(body, q.principal(), q.started)
	if err != nil {
		return err
	}
	search.Collection = collection
	response, err := s.backend.Search(q.ctx, search)
	if err != nil {
		return err
	}
	if err := q.auditSearch(collection, response); err != nil {
		return err
	}
	return q.reply(fasthttp.StatusOK, searchResponseOf(response, body.Explain))
}

func searchOf(body client.SearchRequest, p filter.Principal, now time.Time) (retrieve.Request, error) {
	switch {
	case body.Query == "" && body.Vector.IsZero() && body.Vectors.IsZero():
		return retrieve.Request{}, badRequest("query: must not be empty, unless there is a vector, or vectors")
	case len(body.Query) > retrieve.MaxQueryBytes:
		return retrieve.Request{}, badRequest("query: longer than %d bytes", retrieve.MaxQueryBytes)
	case body.K < 0 || body.K > retrieve.MaxK:
		return retrieve.Request{}, badRequest("k: a whole number from 1 to %d is expected", retrieve.MaxK)
	}
	scope, err := scopeOf(body.Scope, p, now)
	r := retrieve.Request{
		Principal: p,
		Query:     body.Query,
		Vector:    body.Vector.Values,
		Vectors:   body.Vectors.Values,
		Columns:   body.Vectors.Columns,
		K:         body.K,
		Strategy:  body.Strategy,
		Fusion:    body.Fusion,
		Scope:     scope,
		Explain:   body.Explain,
	}
	if body.Ranking != nil {
		r.Ranking = retrieve.Ranking(*body.Ranking)
	}
	if r.K == 0 {
		r.K = retrieve.DefaultK
	}
	return r, err
}

// scopeOf fills the scope from the principal's own region and the present time.
func scopeOf(asked *client.Scope, p filter.Principal, now time.Time) (filter.Scope, error) {
	region, _ := p.Attributes["region"].(string)
	scope := filter.Scope{Region: region, AsOf: now.UTC()}
	if asked == nil {
		return scope, nil
	}
	if asked.Region != nil && asked.AnyRegion || asked.AsOf != nil && asked.AnyTime {
		return scope, badRequest("scope: region and any_region, or as_of and any_time, exclude each other")
	}
	if err := checkTime("as_of", asked.AsOf); err != nil {
		return scope, err
	}
	if asked.Region != nil {
		scope.Region = *asked.Region
	}
	if asked.AsOf != nil {
		scope.AsOf = asked.AsOf.UTC()
	}
	scope.AnyRegion, scope.AnyTime = asked.AnyRegion, asked.AnyTime
	return scope, nil
}

func searchResponseOf(r retrieve.Response, explain bool) client.SearchResponse {
	response := client.SearchResponse{
		Results:  make([]client.SearchResult, len(r.Results)),
		Strategy: r.Strategy,
		Plan:     r.PlanHash,

		Generation: r.Generation,
		Counts:     client.Counts{Visible: r.Visible, OutOfScope: r.OutOfScope},
		Degraded:   append([]string{}, r.Degraded...),
	}
	if explain {
		ranking := client.Ranking(r.Ranking)
		response.Ranking, response.Complexity = &ranking, r.Complexity
	}
	for i, result := range r.Results {
		response.Results[i] = searchResultOf(result, explain)
	}
	return response
}

func searchResultOf(r retrieve.Result, explain bool) client.SearchResult {
	result := client.SearchResult{
		Document: r.Key,
		Version:  r.Version,
		Title:    r.Title,
		Start:    r.Start,
		End:      r.End,
		Headings: append([]string{}, r.Headings...),
		Text:     r.Text,
		Score:    r.Score,
	}
	if explain {
		result.Explain = &client.Explain{Legs: make(map[string]client.LegExplain, len(r.Legs))}
		for name, leg := range r.Legs {
			result.Explain.Legs[name] = client.LegExplain{Rank: leg.Rank, Score: leg.Score}
		}
	}
	return result
}
