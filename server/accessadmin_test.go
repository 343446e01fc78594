package server

import (
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"sluice/client"
	"sluice/filter"
)

const access = "/v1/collections/c/access/"

// Each line is a change of its own; a bad one is told by its number and harms
// no other.
func TestImportAccess(t *testing.T) {
	d := start(t)
	full := text("a", "x", "group:eng")
	full.Attributes = map[string]any{"n": int64(1)}
	d.collection(full, text("b", "x"), text("c", "x", "user:alice"))
	body := strings.Join([]string{
		`{"key":"a","readers":["user:alice"]}`,
		`{"key":"b","readers":`,
		"",
		`{"key":"missing","readers":[]}`,
		`{"key":"b","readers":["eve"]}`,
		`{"key":"b","text":"x"}`,
		`{"readers":[]}`,
		`{"key":"b","readers":["` + strings.Repeat("x", 64<<10) + `"]}`,
		`{"key":"c","readers":null,"attributes":{"n":2}}`,
		`{"key":"a","readers":["user:bob"]}`,
	}, "\n")
	var results []client.WriteResult
	err := d.as("root").ImportAccess(ctx, "c", strings.NewReader(body), func(r client.WriteResult) error {
		results = append(results, r)
		return nil
	})
	require.NoError(t, err)
	require.Equal(t, []string{
		"1 a access_updated",
		"2 b failed 400 malformed JSON at byte 21: unexpected EOF",
		"4 missing failed 404 the collection has no document with this key",
		`5 b failed 400 readers: entry 1: "eve" must be "user:<subject>", "group:<name>" or "public"`,
		`6 b failed 400 unknown field "text"`,
		"7  failed 400 key: a document needs one",
		"8  failed 413 the line is larger than limits.body_bytes",
		"9 c access_updated",
		"10 a access_updated",
	}, short(results))
	row := func(key string) filter.Access { return d.fake.documents["acme/c"][key].Access }
	require.Equal(t, []filter.Reader{"user:bob"}, row("a").Readers.List, "in the order of the lines")
	require.Equal(t, filter.Attributes{"n": int64(1)}, row("a").Attributes)
	require.Equal(t, filter.Access{Readers: filter.Readers{Undeclared: true}, Attributes: filter.Attributes{}}, row("b"))
	require.Equal(t, filter.Access{Readers: filter.Readers{Undeclared: true}, Attributes: filter.Attributes{"n": int64(2)}}, row("c"))

	stopped := errors.New("enough")
	err = d.as("root").ImportAccess(ctx, "c", strings.NewReader(body), func(client.WriteResult) error { return stopped })
	require.ErrorIs(t, err, stopped)
	require.NoError(t, d.as("root").ImportAccess(ctx, "c", strings.NewReader("\n \n"), func(client.WriteResult) error { return stopped }))
}

// What others may read is for administrators, whose own right to read it is not asked.
func TestAccessIsForAdministrators(t *testing.T) {
	d := start(t)
	d.collection(text("k", "x", "user:alice"))
	for call, body := range map[string]string{"import": `{"key":"k","readers":[]}`, "preview": `{}`, "explain": `{"principal":{"subject":"bob"},"document":"k"}`} {
		contentType := "application/json"
		if call == "import" {
			contentType = ndjson
		}
		for name, status := range map[string]int{"alice": 403, "writer": 403, "root": 200, "other": 404} {
			a := d.send("POST", access+call, body, "Authorization", bearer(name), "Content-Type", contentType)
			require.Equal(t, status, a.status, "%s %s: %s", call, name, a.body)
			require.False(t, name == "other" && strings.Contains(a.body, "no document"), "another tenant learns nothing")
		}
	}
	require.Equal(t, 415, d.send("POST", access+"import", `{}`, "Authorization", bearer("root")).status)
}

func TestExplainAccess(t *testing.T) {
	d := start(t)
	one := text("k", "x")
	one.Attributes = map[string]any{"set": []string{}}
	d.collection(one)
	ask := func(body string) answer {
		return d.send("POST", access+"explain", body, "Authorization", bearer("root"))
	}
	a := ask(`{"principal":{"subject":"alice"},"document":"k"}`)
	require.JSONEq(t, `{"principal":{"subject":"alice","groups":["eng"],"attributes":{"region":"EU"}},"configured":true,"document":"k","reads":true,
		"readers":{"admit":true,"declared":false,"by":[]},
		"policies":{"permit":true,"forbid":false,"built_in":false,"by":["a.cedar:1:1"],"errors":[],"attributes":{"set":[]}}}`, a.body)
	require.Contains(t, ask(`{"principal":{"subject":"alice","groups":[]},"document":"k"}`).body, `"configured":false`)
	require.Contains(t, ask(`{"principal":{"subject":"stranger"},"document":"k"}`).body, `"configured":false`)
	for body, want := range map[string]string{
		`{"principal":{"subject":""},"document":"k"}`:                                 "subject is missing",
		`{"principal":{"subject":"a"},"document":""}`:                                 "a document needs one",
		`{"principal":{"subject":"a","attributes":{"tenant":"t"}},"document":"k"}`:    "reserved",
		`{"principal":{"subject":"a","tenant":"rival"},"document":"k"}`:               `unknown field "tenant"`,
		`{"principal":{"subject":"a","groups":["` + "\\u0000" + `"]},"document":"k"}`: "group is not plain text",
	} {
		require.Contains(t, requireProblem(t, 400, ask(body)), want)
	}
	require.Contains(t, requireProblem(t, 404, ask(`{"principal":{"subject":"a"},"document":"none"}`)), "no document with this key")
}

func TestPreviewAccess(t *testing.T) {
	d := start(t)
	d.collection(text("k", "x"))
	ask := func(body string) answer {
		return d.send("POST", access+"preview", body, "Authorization", bearer("root"))
	}
	a := ask(`{"changes":[{"key":"k","readers":[]},{"key":"k","readers":["eve"]},{"key":"none"}],"principals":[{"subject":"alice"},{"subject":"x","groups":["g"]}]}`)
	require.JSONEq(t, `{"compared":2,"left_out":0,"changed":0,"gained":0,"lost":0,"unfit":[],"failures":2,
		"differences":[{"principal":"alice","gains":1,"loses":0,"gained":["eng"],"lost":[]},{"principal":"x","gains":1,"loses":0,"gained":["g"],"lost":[]}],
		"failed":[
			{"line":2,"key":"k","status":"failed","error":{"type":"about:blank","title":"Bad Request","status":400,"detail":"readers: entry 1: \"eve\" must be \"user:<subject>\", \"group:<name>\" or \"public\""}},
			{"line":3,"key":"none","status":"failed","error":{"type":"about:blank","title":"Not Found","status":404,"detail":"the collection has no document with this key"}}
		]}`, a.body)
	require.True(t, d.fake.documents["acme/c"]["k"].Access.Readers.Undeclared)
	many := `{"changes":[` + strings.Repeat(`{"key":""},`, 150) + `{"key":"k"}]}`
	var p client.AccessPreview
	require.NoError(t, decode([]byte(ask(many).body), &p))
	require.Len(t, p.Failed, maxToldFailures)
	require.Equal(t, 150, p.Failures)
	require.Contains(t, requireProblem(t, 400, ask(`{"policies":{"schema":"","files":{"a.cedar":"permit ("}}}`)), "policies:")
	require.Contains(t, requireProblem(t, 400, ask(`{"policies":{"schema":""}}`)), "policies: files")
	require.Contains(t, requireProblem(t, 400, ask(`{"principals":[{"subject":"a"},{"subject":""}]}`)), "principals: 1:")
}
