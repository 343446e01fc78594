package server

import (
	"context"
	"net"
	"strings"
	"testing"

	"github.com/golang-jwt/jwt/v5"
	"github.com/stretchr/testify/require"

	"sluice/client"
	"sluice/server/config"
	"sluice/server/identity"
)

// One text for every reason: an outsider learns nothing from the answer.
func TestUnauthenticated(t *testing.T) {
	d := start(t)
	d.collection()
	none, err := jwt.NewWithClaims(jwt.SigningMethodNone, jwt.MapClaims{"sub": "alice", "tenant": "acme"}).SignedString(jwt.UnsafeAllowNoneSignatureType)
	require.NoError(t, err)
	headers := map[string][]string{
		"nothing":        nil,
		"unknown key":    {"Authorization", "Bearer sluice_nobody"},
		"hash as key":    {"Authorization", "Bearer " + keys["alice"].hash},
		"basic":          {"Authorization", "Basic YWxpY2U6"},
		"no scheme":      {"Authorization", keys["alice"].key},
		"unsigned token": {"Authorization", "Bearer " + none},
		"demo header":    {"X-Sluice-Principal", "alice"},
	}
	details := map[string]bool{}
	for name, h := range headers {
		t.Run(name, func(t *testing.T) {
			a := d.send("GET", "/v1/collections/c", "", h...)
			details[requireProblem(t, 401, a)] = true
			require.Equal(t, `Bearer realm="sluice"`, a.header.Get("WWW-Authenticate"))
			require.Empty(t, a.header.Get("Sluice-Demo"))
		})
	}
	require.Len(t, details, 1)
}

func TestRoles(t *testing.T) {
	d := start(t)
	d.collection(text("k", "x"))
	const c = "/v1/collections/c"
	need := map[string]identity.Role{
		"PUT " + c:                           identity.Admin,
		"GET " + c:                           identity.Read,
		"POST " + c + "/documents":           identity.Write,
		"GET " + c + "/documents":            identity.Read,
		"GET " + c + "/documents/k":          identity.Read,
		"DELETE " + c + "/documents/k":       identity.Write,
		"PATCH " + c + "/documents/k/access": identity.Write,
		"POST " + c + "/access/import":       identity.Admin,
		"POST " + c + "/access/preview":      identity.Admin,
		"POST " + c + "/access/explain":      identity.Admin,
		"POST " + c + "/search":              identity.Read,
		"POST " + c + "/answer":              identity.Read,
		"PUT " + c + "/queries":              identity.Admin,
		"GET " + c + "/queries":              identity.Admin,
		"POST " + c + "/reindex":             identity.Admin,
		"GET " + c + "/reindex":              identity.Admin,
		"POST " + c + "/reindex/estimate":    identity.Admin,
		"GET " + c + "/reindex/events":       identity.Admin,
		"POST " + c + "/reindex/drop":        identity.Admin,
		"GET /v1/identity":                   identity.Read,
		"GET /v1/demo":                       identity.None,
		"GET /v1/policies":                   identity.Admin,
		"GET /v1/collections":                identity.Read,
		"GET /console":                       identity.None,
		"GET /console/app.js":                identity.None,
		"POST /v1/embeddings":                identity.Read,
		"POST /":                             identity.Read,
		"POST /embed":                        identity.Read,
		"POST /embed_all":                    identity.Read,
		"POST /similarity":                   identity.Read,
		"POST /rerank":                       identity.Read,
		"POST /predict":                      identity.Read,
		"POST /tokenize":                     identity.Read,
		"POST /decode":                       identity.Read,
		"GET /info":                          identity.Read,
		"POST /v1/rerank":                    identity.Read,
		"POST /v2/rerank":                    identity.Read,
		"GET /metrics":                       identity.Admin,
		"GET /healthz":                       identity.None,
		"GET /readyz":                        identity.None,
		"GET /openapi.json":                  identity.None,
		"GET /":                              identity.None,
		"GET /console/":                      identity.None,
	}
	require.Len(t, need, len(routes()), "every route is here")
	for name, role := range map[string]identity.Role{"": identity.None, "alice": identity.Read, "writer": identity.Write, "root": identity.Admin} {
		for operation, needed := range need {
			method, path, _ := strings.Cut(operation, " ")
			headers := []string{"Authorization", bearer(name)}
			if name == "" {
				headers = nil
			}
			a := d.send(method, path, "", headers...)
			refused := a.status == 401 || a.status == 403
			require.Equal(t, role < needed, refused, "%s as %q: %d", operation, name, a.status)
		}
	}
}

// A route that forgets its role is closed, to admins too.
func TestRouteWithoutRoleIsClosed(t *testing.T) {
	d := start(t)
	d.router = newRouter(append(routes(), route{method: "GET", pattern: "/new", serve: (*Server).healthz}))
	requireProblem(t, 401, d.send("GET", "/new", ""))
	requireProblem(t, 403, d.send("GET", "/new", "", "Authorization", bearer("root")))
}

// The tenant is the identity's; nothing in a request names one.
func TestTenantsDoNotMeet(t *testing.T) {
	d := start(t)
	d.collection(text("k", "x"))
	for _, path := range []string{"/v1/collections/c", "/v1/collections/c/documents", "/v1/collections/c/documents/k"} {
		requireProblem(t, 404, d.send("GET", path, "", "Authorization", bearer("other"), "X-Tenant", "acme"))
	}
	_, err := d.as("other").Search(context.Background(), "c", client.SearchRequest{Query: "q"})
	requireStatus(t, 404, err)
	requireStatus(t, 404, d.as("other").Delete(context.Background(), "c", "k"))
	require.Contains(t, d.fake.documents["acme/c"], "k")
}

func demo(s *setup) {
	s.demo = config.Demo{Enabled: true, Principals: map[string]config.Principal{
		"ann": {Tenant: "acme", Subject: "ann", Roles: []string{"read"}},
	}}
}

func TestDemo(t *testing.T) {
	d := start(t, demo)
	d.collection()
	a := d.send("GET", "/v1/collections/c", "", "X-Sluice-Principal", "ann")
	require.Equal(t, 200, a.status)
	require.Equal(t, "true", a.header.Get("Sluice-Demo"))
	requireProblem(t, 401, d.send("GET", "/v1/collections/c", "", "X-Sluice-Principal", "eve"))
	requireProblem(t, 401, d.send("GET", "/v1/collections/c", "", "X-Sluice-Principal", "ann", "Authorization", bearer("alice")))
	require.Contains(t, d.log.String(), "demo mode")

	c, err := client.New(d.url, client.WithDemoPrincipal("ann"))
	require.NoError(t, err)
	defer c.CloseIdle()
	_, err = c.Collection(context.Background(), "c")
	require.NoError(t, err)
}

func TestAdminListener(t *testing.T) {
	d := start(t)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() {
		served <- ServeAdmin(ctx, listener, Administration{Metrics: d.registry, Hosts: []string{"sluice", ""}})
	}()
	admin := &daemon{t: t, url: "http://" + listener.Addr().String()}
	require.Contains(t, admin.send("GET", "/metrics", "").body, "sluice_http_requests_in_flight")
	require.Contains(t, admin.send("GET", "/debug/pprof/", "").body, "goroutine")
	require.Equal(t, 404, admin.send("GET", "/v1/collections/c", "").status)
	for host, want := range map[string]int{
		"127.0.0.1": 200, "127.0.0.1:8081": 200, "[::1]": 200, "[::1]:8081": 200, "10.1.2.3:1": 200, "localhost": 200, "LOCALHOST:8081": 200,
		"sluice": 200, "Sluice:8081": 200, "evil.example": 421, "evil.example:8081": 421, "127.0.0.1.evil.example": 421, "localhost.evil.example": 421, "": 421,
	} {
		a := admin.raw("GET /metrics HTTP/1.1\r\nHost: " + host + "\r\n\r\n")
		require.Equal(t, want, a.status, "%q: %s", host, a.body)
		if want == 421 {
			require.Contains(t, requireProblem(t, 421, a), "admin_hosts")
		}
	}
	cancel()
	require.NoError(t, <-served)
}
