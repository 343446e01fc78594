package server

import (
	"cmp"
	"slices"

	"github.com/valyala/fasthttp"

	"sluice/client"
)

func (s *Server) getIdentity(q *request) error {
	p := q.who.Principal
	return q.reply(fasthttp.StatusOK, client.Identity{
		Tenant: p.Tenant, Subject: p.Subject, Groups: append([]string{}, p.Groups...),
		Attributes: attributesInfo(p.Attributes), Role: q.who.Role.String(),
	})
}

func (s *Server) getDemo(q *request) error {
	if !s.demo {
		return failf(fasthttp.StatusNotFound, "this is no demo; send a token or an API key")
	}
	demo := client.Demo{Principals: []client.DemoPrincipal{}}
	for name, id := range s.identities.Load().Demo() {
		demo.Principals = append(demo.Principals, client.DemoPrincipal{Name: name, Tenant: id.Principal.Tenant, Role: id.Role.String()})
	}
	slices.SortFunc(demo.Principals, func(a, b client.DemoPrincipal) int { return cmp.Compare(a.Name, b.Name) })
	return q.reply(fasthttp.StatusOK, demo)
}
