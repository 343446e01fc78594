package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"time"

	"sluice/bench"
	"sluice/bench/figures"
	"sluice/client"
	"sluice/eval"
)

// recordedSearch is a line of a query log. The principal is the name of one of
// the data set, or an object.
type recordedSearch struct {
	Time       time.Time       `json:"time"`
	Principal  json.RawMessage `json:"principal"`
	Collection string          `json:"collection"`
	Query      string          `json:"query"`
	K          int             `json:"k"`
}

// recordedPrincipal is who asked, as the daemon's tokens state it.
type recordedPrincipal struct {
	Tenant     string         `json:"tenant"`
	Subject    string         `json:"subject"`
	Groups     []string       `json:"groups"`
	Attributes map[string]any `json:"attributes"`
	Roles      []string       `json:"roles"`
}

// readQueryLog returns the searches in the order of their times.
func readQueryLog(path string) (all []recordedSearch, err error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	for l := range ndjson[recordedSearch](f) {
		switch {
		case l.err == nil && l.value.Time.IsZero():
			l.err = fmt.Errorf("it has no time, as in 2026-01-31T12:00:00.5Z")
		case l.err == nil && l.value.Collection == "":
			l.err = fmt.Errorf("it has no collection")
		}
		if l.err != nil {
			return nil, l.fault(path)
		}
		all = append(all, l.value)
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("%s has no searches", path)
	}
	slices.SortStableFunc(all, func(a, b recordedSearch) int { return a.Time.Compare(b.Time) })
	return all, nil
}

// principal resolves a name among those of the data set.
func (s recordedSearch) principal(dataset *eval.Dataset) (eval.Principal, error) {
	var name string
	if json.Unmarshal(s.Principal, &name) == nil {
		for _, p := range dataset.Principals {
			if p.Name == name {
				return p, nil
			}
		}
		return eval.Principal{}, fmt.Errorf("principal %q is none of the data set's; an object with tenant, subject, groups, attributes and roles can be anybody", name)
	}
	var p recordedPrincipal
	if err := json.Unmarshal(s.Principal, &p); err != nil || p.Tenant == "" || p.Subject == "" {
		return eval.Principal{}, fmt.Errorf("principal %s: a name, or an object with tenant and subject is expected", s.Principal)
	}
	if p.Roles == nil {
		p.Roles = []string{"read"}
	}
	return eval.Principal{Name: p.Subject, Tenant: p.Tenant, Groups: p.Groups, Attributes: p.Attributes, Roles: p.Roles}, nil
}

// replay sends the searches of a log.
func (c benchServeCommand) replay(ctx context.Context, t target, dataset *eval.Dataset) (figures.File, error) {
	searches, err := readQueryLog(c.Replay)
	if err != nil {
		return figures.File{}, err
	}
	o := bench.ReplayOptions{Rounds: c.Rounds, Log: os.Stdout}
	calls, tokens := make([]bench.Call, len(searches)), map[string]string{}
	for i, s := range searches {
		token, known := tokens[string(s.Principal)]
		if !known {
			p, err := s.principal(dataset)
			if err != nil {
				return figures.File{}, fmt.Errorf("%s: %w", c.Replay, err)
			}
			if token, err = t.secret.token(ctx, p); err != nil {
				return figures.File{}, err
			}
			tokens[string(s.Principal)] = token
		}
		calls[i] = bench.Call{Token: token, Path: searchPath(s.Collection), Body: client.SearchRequest{Query: s.Query, K: s.K}}
		o.Times = append(o.Times, s.Time.Sub(searches[0].Time))
	}
	if o.Service, err = bench.NewService("sluice", t.url+"/", t.pid, calls); err != nil {
		return figures.File{}, err
	}
	o.Service.Admin, o.Service.Watch = t.admin, watchLoad()
	return bench.Replay(ctx, o)
}
