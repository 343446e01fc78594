package server

import (
	"encoding/json"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sluice/client"
	"sluice/server/identity"
)

func openAPIDocument(t *testing.T) object {
	t.Helper()
	d := start(t)
	a := d.send("GET", "/openapi.json", "")
	require.Equal(t, 200, a.status)
	require.Equal(t, "application/json", a.header.Get("Content-Type"))
	var document object
	require.NoError(t, json.Unmarshal([]byte(a.body), &document))
	return document
}

func at(o object, path ...string) object {
	for _, name := range path {
		o, _ = o[name].(object)
	}
	return o
}

func keysOf(o object) []string {
	var all []string
	for k := range o {
		all = append(all, k)
	}
	slices.Sort(all)
	return all
}

// The document's operations are the routes, with their roles and parameters.
func TestOpenAPIHasTheRoutes(t *testing.T) {
	document := openAPIDocument(t)
	described := map[string]object{}
	for path, item := range at(document, "paths") {
		for method, operation := range item.(object) {
			described[strings.ToUpper(method)+" "+path] = operation.(object)
		}
	}
	roles := map[any]identity.Role{nil: identity.None, "read": identity.Read, "write": identity.Write, "admin": identity.Admin}
	names := regexp.MustCompile(`{(\w+)}`)
	for _, r := range routes() {
		operation, ok := described[r.method+" "+r.pattern]
		require.True(t, ok, "%s %s", r.method, r.pattern)
		delete(described, r.method+" "+r.pattern)
		require.Equal(t, r.role, roles[operation["x-role"]], r.pattern)
		_, overridden := operation["security"]
		require.Equal(t, r.open, overridden, r.pattern)

		var want []string
		for _, m := range names.FindAllStringSubmatch(r.pattern, -1) {
			want = append(want, "path "+m[1])
		}
		for _, q := range r.query {
			want = append(want, "query "+q)
		}
		if r.impersonate {
			want = append(want, "header X-Sluice-Impersonate")
		}
		require.ElementsMatch(t, want, parameters(document, operation), r.pattern)
		require.Contains(t, jsonOf(t, at(operation, "responses", "default")), `/`+errorTypes[r.dialect]+`"`, r.pattern)
	}
	require.Empty(t, described, "operations without a route")
}

// errorTypes name the bodies of errors, each a schema or a response of that name.
var errorTypes = map[dialect]string{
	own: "Problem", openAIDialect: "EmbeddingError", teiDialect: "InferenceError", jinaDialect: "JinaError", cohereDialect: "CohereError",
}

func parameters(document, operation object) []string {
	var all []string
	list, _ := operation["parameters"].([]any)
	for _, p := range list {
		one := p.(object)
		if target, ok := one["$ref"].(string); ok {
			one = at(document, strings.Split(strings.TrimPrefix(target, "#/"), "/")...)
		}
		all = append(all, one["in"].(string)+" "+one["name"].(string))
	}
	return all
}

func jsonOf(t *testing.T, value any) string {
	t.Helper()
	text, err := json.Marshal(value)
	require.NoError(t, err)
	return string(text)
}

// wireTypes are all types of the wire. What hangs below them is found by reflection.
var wireTypes = []any{
	client.CollectionSettings{}, client.Collection{}, client.Document{}, client.WriteResult{}, client.AccessPatch{},
	client.AccessLine{}, client.AccessPreviewRequest{}, client.AccessPreview{}, client.AccessQuestion{}, client.AccessExplanation{},
	client.ReindexRequest{}, client.ReindexChange{}, client.ReindexEstimate{}, client.Generations{}, client.QuerySet{},
	client.Identity{}, client.Demo{}, client.Collections{}, client.Listing{}, client.SearchRequest{}, client.SearchResponse{}, client.AnswerRequest{}, client.Answer{}, client.AnswerEvent{}, client.Problem{}, client.Status{},
	client.EmbeddingRequest{}, client.EmbeddingResponse{}, client.EmbeddingError{},
	client.EmbedRequest{}, client.EmbedAllRequest{}, client.SimilarityRequest{}, client.RankRequest{}, client.Rank{},
	client.PredictRequest{}, client.Prediction{}, client.TokenizeRequest{}, client.Token{}, client.DecodeRequest{},
	client.ModelInfo{}, client.InferenceError{},
	client.JinaRerankRequest{}, client.JinaRerankResponse{}, client.JinaError{},
	client.CohereRerankRequest{}, client.CohereRerankResponse{}, client.CohereError{},
}

// forms are the types with several forms on the wire, and how many those are.
var forms = map[reflect.Type]int{
	reflect.TypeFor[client.Vector](): 2, reflect.TypeFor[client.Matrix](): 2, reflect.TypeFor[client.Texts](): 2, reflect.TypeFor[client.TokenIDs](): 2,
	reflect.TypeFor[client.JinaDocument](): 2, reflect.TypeFor[client.PredictInputs](): 3, reflect.TypeFor[client.Inputs](): 4,
}

// The document's schemas are the wire types: names, kinds and what is required.
func TestOpenAPIHasTheWireTypes(t *testing.T) {
	schemas := at(openAPIDocument(t), "components", "schemas")
	seen := map[string]bool{}
	for _, w := range wireTypes {
		compareType(t, schemas, seen, reflect.TypeOf(w))
	}
	require.ElementsMatch(t, keysOf(schemas), keysOfSet(seen), "schemas without a type")
}

func keysOfSet(set map[string]bool) []string {
	var all []string
	for k := range set {
		all = append(all, k)
	}
	return all
}

func compareType(t *testing.T, schemas object, seen map[string]bool, typ reflect.Type) {
	t.Helper()
	if seen[typ.Name()] {
		return
	}
	seen[typ.Name()] = true
	schema := at(schemas, typ.Name())
	require.NotNil(t, schema, typ.Name())
	if n, several := forms[typ]; several {
		require.Len(t, schema["oneOf"], n, typ.Name()) // the forms have tests of their own
		return
	}
	require.Equal(t, false, schema["additionalProperties"], typ.Name())
	properties := at(schema, "properties")
	var names []string
	for i := range typ.NumField() {
		name, options, _ := strings.Cut(typ.Field(i).Tag.Get("json"), ",")
		if name == "-" {
			continue
		}
		names = append(names, name)
		where := typ.Name() + "." + name
		property, ok := properties[name].(object)
		require.True(t, ok, where)
		compareProperty(t, schemas, seen, where, property, typ.Field(i).Type)
		required, _ := schema["required"].([]any)
		if slices.Contains(required, any(name)) {
			require.NotContains(t, options, "omitempty", where)
		}
	}
	require.ElementsMatch(t, keysOf(properties), names, typ.Name())
}

func compareProperty(t *testing.T, schemas object, seen map[string]bool, where string, property object, typ reflect.Type) {
	t.Helper()
	for typ.Kind() == reflect.Pointer {
		typ = typ.Elem()
	}
	switch {
	case typ == reflect.TypeFor[time.Time]():
		require.Equal(t, "date-time", property["format"], where)
	case typ == reflect.TypeFor[[]byte]():
		require.Equal(t, "byte", property["format"], where) // base64
	case typ == reflect.TypeFor[json.RawMessage]():
		require.Contains(t, property["type"], "null", where) // any JSON; null means something
	case typ == reflect.TypeFor[client.Texts]():
		require.Len(t, property["oneOf"], forms[typ], where)
	case typ.Kind() == reflect.Struct, typ == reflect.TypeFor[client.TokenIDs]():
		require.Equal(t, "#/components/schemas/"+typ.Name(), property["$ref"], where)
		compareType(t, schemas, seen, typ)
	case typ.Kind() == reflect.Slice:
		require.True(t, hasType(property, "array"), where)
		compareProperty(t, schemas, seen, where+"[]", at(property, "items"), typ.Elem())
	case typ.Kind() == reflect.Map:
		require.True(t, hasType(property, "object"), where)
		if typ.Elem().Kind() == reflect.Struct {
			compareProperty(t, schemas, seen, where+"{}", at(property, "additionalProperties"), typ.Elem())
		}
	default:
		require.True(t, hasType(property, kinds[typ.Kind()]), "%s: %v is not %v", where, property["type"], typ)
	}
}

var kinds = map[reflect.Kind]string{
	reflect.String: "string", reflect.Bool: "boolean", reflect.Int: "integer", reflect.Int32: "integer", reflect.Uint32: "integer", reflect.Int64: "integer",
	reflect.Float32: "number", reflect.Float64: "number",
}

func hasType(schema object, name string) bool {
	list, ok := schema["type"].([]any)
	return schema["type"] == any(name) || ok && slices.Contains(list, any(name))
}

// The document is sound in itself: 3.1, references that lead somewhere, bodies
// and responses with schemas, unique operation ids.
func TestOpenAPIStructure(t *testing.T) {
	document := openAPIDocument(t)
	require.Equal(t, "3.1.0", document["openapi"])
	require.NotEmpty(t, at(document, "info")["title"])
	require.NotEmpty(t, at(document, "info")["version"])
	for _, m := range regexp.MustCompile(`"\$ref":"#/([^"]+)"`).FindAllStringSubmatch(jsonOf(t, document), -1) {
		require.NotNil(t, at(document, strings.Split(m[1], "/")...), m[1])
	}
	ids := map[any]bool{}
	for path, item := range at(document, "paths") {
		require.True(t, strings.HasPrefix(path, "/"))
		for method, o := range item.(object) {
			operation := o.(object)
			require.False(t, ids[operation["operationId"]], path)
			ids[operation["operationId"]] = true
			require.NotEmpty(t, operation["summary"])
			responses := at(operation, "responses")
			require.Contains(t, responses, "default")
			for status, response := range responses {
				require.Regexp(t, `^([1-5]\d\d|default)$`, status)
				if response.(object)["$ref"] == nil {
					require.NotEmpty(t, response.(object)["description"], path)
				}
			}
			hasBody := operation["requestBody"] != nil
			require.Equal(t, slices.Contains([]string{"put", "post", "patch"}, method), hasBody, path)
			for _, content := range at(operation, "requestBody", "content") {
				require.NotEmpty(t, content.(object)["schema"], path)
			}
		}
	}
}
