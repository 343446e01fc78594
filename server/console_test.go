package server

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"sluice/client"
	"sluice/server/config"
)

// The console's files are there for everybody, with what keeps a page safe.
func TestConsoleFiles(t *testing.T) {
	d := start(t)
	for path, contentType := range map[string]string{
		"/console": "text/html; charset=utf-8", "/console/app.js": "text/javascript; charset=utf-8",
		"/console/style.css": "text/css; charset=utf-8", "/console/icon.svg": "image/svg+xml",
	} {
		a := d.send("GET", path, "")
		require.Equal(t, 200, a.status, path)
		require.Equal(t, contentType, a.header.Get("Content-Type"))
		require.Equal(t, "nosniff", a.header.Get("X-Content-Type-Options"))
		require.Equal(t, "DENY", a.header.Get("X-Frame-Options"))
		require.Equal(t, "no-referrer", a.header.Get("Referrer-Policy"))
		require.Empty(t, a.header.Get("Set-Cookie"))
		policy := a.header.Get("Content-Security-Policy")
		for _, part := range []string{"default-src 'none'", "frame-ancestors 'none'", "base-uri 'none'", "form-action 'none'", "require-trusted-types-for 'script'"} {
			require.Contains(t, policy, part)
		}
		require.NotContains(t, policy, "unsafe")
		require.NotContains(t, policy, "*")
		again := d.send("GET", path, "", "If-None-Match", a.header.Get("ETag"))
		require.Equal(t, 304, again.status)
		require.Empty(t, again.body)
	}
	home := d.send("GET", "/", "")
	require.Equal(t, 200, home.status, "where it is sent")
	require.Equal(t, d.send("GET", "/console", "").body, home.body)
	require.Equal(t, home.body, d.send("GET", "/console/", "").body, "a slash too many")
	for _, path := range []string{"/console/none.js", "/console/..%2Fconsole.go", "/console/%2e%2e"} {
		require.GreaterOrEqual(t, d.send("GET", path, "").status, 400, path)
	}
}

func TestIdentity(t *testing.T) {
	d := start(t)
	got, err := d.as("alice").Identity(ctx)
	require.NoError(t, err)
	require.Equal(t, client.Identity{Tenant: "acme", Subject: "alice", Groups: []string{"eng"}, Attributes: map[string]any{"region": "EU"}, Role: "read"}, got)
	got, err = d.as("root").Identity(ctx)
	require.NoError(t, err)
	require.Equal(t, "admin", got.Role)
	require.Equal(t, 401, d.send("GET", "/v1/identity", "").status)
}

// Whom one can be is told in a demo only, and never how they are configured.
func TestDemoIsTold(t *testing.T) {
	require.Equal(t, 404, start(t).send("GET", "/v1/demo", "").status)
	d := start(t, func(s *setup) {
		s.demo = config.Demo{Enabled: true, Principals: map[string]config.Principal{
			"zoe": {Tenant: "acme", Subject: "zoe", Groups: []string{"secret"}, Roles: []string{"read"}},
			"amy": {Tenant: "rival", Subject: "amy", Roles: []string{"admin"}},
		}}
	})
	a := d.send("GET", "/v1/demo", "")
	require.NotContains(t, a.body, "secret")
	var got client.Demo
	require.NoError(t, json.Unmarshal([]byte(a.body), &got))
	require.Equal(t, []client.DemoPrincipal{{Name: "amy", Tenant: "rival", Role: "admin"}, {Name: "zoe", Tenant: "acme", Role: "read"}}, got.Principals)
}

func TestCollectionsAreTheTenants(t *testing.T) {
	d := start(t)
	d.collection()
	_, err := d.as("other").CreateCollection(ctx, "theirs", client.CollectionSettings{})
	require.NoError(t, err)
	got, err := d.as("alice").Collections(ctx)
	require.NoError(t, err)
	require.Len(t, got.Collections, 1)
	one, err := d.as("alice").Collection(ctx, "c")
	require.NoError(t, err)
	require.Equal(t, one, got.Collections[0])
}

func TestPoliciesAreForAdministrators(t *testing.T) {
	d := start(t)
	got, err := d.as("root").Policies(ctx)
	require.NoError(t, err)
	require.Equal(t, "entity User;", got.Schema)
	require.True(t, strings.HasPrefix(got.Files["a.cedar"], "permit"))
	require.Equal(t, 403, d.send("GET", "/v1/policies", "", "Authorization", bearer("writer")).status)
}
