package server

import (
	"bytes"
	"net/url"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/valyala/fasthttp"

	"sluice/retrieve"
	"sluice/server/identity"
)

// route is one operation. Its role is what the caller needs; a route that
// names neither a role nor open is closed to everybody.
type route struct {
	method      string
	pattern     string // "/v1/collections/{collection}"
	role        identity.Role
	open        bool     // no identity needed
	probe       bool     // not counted against the admission limit
	dialect     dialect  // of its errors
	largest     int      // bytes of a body; 0: limits.body_bytes
	query       []string // allowed query parameters
	searches    bool     // counts against its tenant's searches
	impersonate bool     // an administrator may be another principal
	serve       func(*Server, *request) error
}

const (
	// maxSmallBody holds the longest query, every character of it escaped.
	maxSmallBody = 64 << 10
	// maxSearch holds as many numbers as a query may bring besides.
	maxSearch = maxSmallBody + 16*retrieve.MaxQueryNumbers
	// maxTokenize is small beside its answer, of seventy times that.
	maxTokenize = 1 << 20
)

func routes() []route {
	const (
		collection = "/v1/collections/{collection}"
		documents  = collection + "/documents"
		document   = documents + "/{key}"
		reindex    = collection + "/reindex"
	)
	return []route{
		{method: "GET", pattern: "/v1/identity", role: identity.Read, serve: (*Server).getIdentity},
		{method: "GET", pattern: "/v1/demo", open: true, serve: (*Server).getDemo},
		{method: "GET", pattern: "/v1/policies", role: identity.Admin, serve: (*Server).getPolicies},
		{method: "GET", pattern: "/v1/collections", role: identity.Read, serve: (*Server).listCollections},
		{method: "PUT", pattern: collection, role: identity.Admin, largest: maxSmallBody, serve: (*Server).putCollection},
		{method: "GET", pattern: collection, role: identity.Read, serve: (*Server).getCollection},
		{method: "POST", pattern: documents, role: identity.Write, serve: (*Server).postDocuments},
		{method: "GET", pattern: documents, role: identity.Read, impersonate: true, serve: (*Server).listDocuments, query: []string{"after", "limit"}},
		{method: "GET", pattern: document, role: identity.Read, impersonate: true, serve: (*Server).getDocument},
		{method: "DELETE", pattern: document, role: identity.Write, serve: (*Server).deleteDocument},
		{method: "PATCH", pattern: document + "/access", role: identity.Write, serve: (*Server).patchAccess},
		{method: "POST", pattern: collection + "/access/import", role: identity.Admin, serve: (*Server).importAccess},
		{method: "POST", pattern: collection + "/access/preview", role: identity.Admin, serve: (*Server).previewAccess},
		{method: "POST", pattern: collection + "/access/explain", role: identity.Admin, largest: maxSmallBody, serve: (*Server).explainAccess},
		{method: "POST", pattern: collection + "/search", role: identity.Read, largest: maxSearch, searches: true, impersonate: true, serve: (*Server).search},
		{method: "POST", pattern: collection + "/answer", role: identity.Read, impersonate: true, largest: maxAnswer, searches: true, serve: (*Server).answer},
		{method: "PUT", pattern: collection + "/queries", role: identity.Admin, serve: (*Server).putQueries},
		{method: "GET", pattern: collection + "/queries", role: identity.Admin, serve: (*Server).getQueries},
		{method: "POST", pattern: reindex, role: identity.Admin, largest: maxSmallBody, serve: (*Server).startReindex},
		{method: "GET", pattern: reindex, role: identity.Admin, serve: (*Server).getReindex},
		{method: "POST", pattern: reindex + "/estimate", role: identity.Admin, largest: maxSmallBody, serve: (*Server).estimateReindex},
		{method: "GET", pattern: reindex + "/events", role: identity.Admin, serve: (*Server).watchReindex},
		{method: "POST", pattern: reindex + "/{action}", role: identity.Admin, largest: maxSmallBody, serve: (*Server).changeReindex},
		{method: "POST", pattern: "/v1/embeddings", role: identity.Read, dialect: openAIDialect, serve: (*Server).embeddings},
		{method: "POST", pattern: "/", role: identity.Read, dialect: teiDialect, serve: (*Server).teiEmbed},
		{method: "POST", pattern: "/embed", role: identity.Read, dialect: teiDialect, serve: (*Server).teiEmbed},
		{method: "POST", pattern: "/embed_all", role: identity.Read, dialect: teiDialect, serve: (*Server).teiEmbedAll},
		{method: "POST", pattern: "/similarity", role: identity.Read, dialect: teiDialect, serve: (*Server).teiSimilarity},
		{method: "POST", pattern: "/rerank", role: identity.Read, dialect: teiDialect, serve: (*Server).teiRerank},
		{method: "POST", pattern: "/predict", role: identity.Read, dialect: teiDialect, serve: (*Server).teiPredict},
		{method: "POST", pattern: "/tokenize", role: identity.Read, dialect: teiDialect, largest: maxTokenize, serve: (*Server).teiTokenize},
		{method: "POST", pattern: "/decode", role: identity.Read, dialect: teiDialect, serve: (*Server).teiDecode},
		{method: "GET", pattern: "/info", role: identity.Read, dialect: teiDialect, serve: (*Server).teiInfo},
		{method: "POST", pattern: "/v1/rerank", role: identity.Read, dialect: jinaDialect, serve: (*Server).jinaRerank},
		{method: "POST", pattern: "/v2/rerank", role: identity.Read, dialect: cohereDialect, serve: (*Server).cohereRerank},
		{method: "GET", pattern: "/healthz", open: true, probe: true, serve: (*Server).healthz},
		{method: "GET", pattern: "/readyz", open: true, probe: true, serve: (*Server).readyz},
		{method: "GET", pattern: "/metrics", role: identity.Admin, probe: true, serve: (*Server).getMetrics},
		{method: "GET", pattern: "/", open: true, serve: (*Server).toConsole},
		{method: "GET", pattern: "/console", open: true, serve: (*Server).console},
		{method: "GET", pattern: "/console/", open: true, serve: (*Server).toConsole},
		{method: "GET", pattern: "/console/{file}", open: true, serve: (*Server).console},
		{method: "GET", pattern: "/openapi.json", open: true, serve: (*Server).openAPI},
	}
}

// router finds routes by exact match of path segments.
type router []pattern

type pattern struct {
	segments []string
	routes   []route // one a method
}

func newRouter(all []route) router {
	var r router
	for _, one := range all {
		segments := strings.Split(one.pattern[1:], "/")
		i := slices.IndexFunc(r, func(p pattern) bool { return slices.Equal(p.segments, segments) })
		if i < 0 {
			i = len(r)
			r = append(r, pattern{segments: segments})
		}
		r[i].routes = append(r[i].routes, one)
	}
	return r
}

// segment is a path segment as sent, and decoded once.
type segment struct{ raw, text string }

// variables are the decoded values of a pattern's {names}.
type variables map[string]string

// find matches a request target. The pattern is returned with a 405, too.
func (r router) find(method string, target []byte) (*pattern, *route, variables, error) {
	path, err := splitPath(target)
	if err != nil {
		return nil, nil, nil, err
	}
	for i := range r {
		vars, ok := r[i].match(path)
		if !ok {
			continue
		}
		one := r[i].route(method)
		if one == nil {
			return &r[i], nil, nil, failf(fasthttp.StatusMethodNotAllowed, "allowed here: %s", r[i].allow())
		}
		return &r[i], one, vars, nil
	}
	return nil, nil, nil, failf(fasthttp.StatusNotFound, "there is nothing at this path; /openapi.json lists what there is")
}

// match compares literals with what was sent, undecoded, so that a path has one
// spelling only and a proxy in front sees what this router sees.
func (p *pattern) match(path []segment) (variables, bool) {
	if len(path) != len(p.segments) {
		return nil, false
	}
	vars := variables{}
	for i, want := range p.segments {
		if strings.HasPrefix(want, "{") {
			vars[strings.Trim(want, "{}")] = path[i].text
		} else if want != path[i].raw {
			return nil, false
		}
	}
	return vars, true
}

func (p *pattern) route(method string) *route {
	if method == "HEAD" {
		method = "GET"
	}
	for i := range p.routes {
		if p.routes[i].method == method {
			return &p.routes[i]
		}
	}
	return nil
}

func (p *pattern) allow() string {
	var methods []string
	for _, one := range p.routes {
		methods = append(methods, one.method)
		if one.method == "GET" {
			methods = append(methods, "HEAD")
		}
	}
	return strings.Join(methods, ", ")
}

const maxSegments = 8

// splitPath splits the target's path at '/' before it decodes each segment.
// Nothing is normalised: what another reader of the path could take for
// something else is refused.
func splitPath(target []byte) ([]segment, error) {
	path, _, _ := bytes.Cut(target, []byte("?"))
	if len(path) == 0 || path[0] != '/' {
		return nil, badRequest("the request target is not a path")
	}
	parts := strings.SplitN(string(path[1:]), "/", maxSegments+1)
	segments := make([]segment, len(parts))
	for i, raw := range parts {
		text, err := url.PathUnescape(raw)
		if err != nil || !plain(text) || strings.ContainsAny(raw, "#\\") {
			return nil, badRequest("the path is malformed; percent-encode UTF-8 without control characters")
		}
		if text == "." || text == ".." {
			return nil, badRequest("the path holds a %q; it is not normalised here", text)
		}
		segments[i] = segment{raw, text}
	}
	return segments, nil
}

// plain reports valid UTF-8 without control characters.
func plain(text string) bool {
	return utf8.ValidString(text) && !strings.ContainsFunc(text, unicode.IsControl)
}
