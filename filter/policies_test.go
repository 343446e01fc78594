package filter_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"sluice/filter"
)

const allowAll = `permit (principal, action, resource);`

// TestParsePoliciesRefuses: every bad text is refused with its place.
func TestParsePoliciesRefuses(t *testing.T) {
	const schema = modelSchema
	withUser := func(declaration string) string {
		return strings.Replace(schema, "entity Group;", "entity Group; "+declaration, 1)
	}
	tests := map[string]struct{ schema, policies, says string }{
		"syntax":             {schema, "// one\n" + allowAll + "\npermit (principal, action;", "hr.cedar:3:27: "},
		"scanner":            {schema, allowAll + "\n\n  permit \"", "hr.cedar:3:"},
		"not UTF-8":          {schema, "permit (\xff", "hr.cedar:1:"},
		"unknown type":       {schema, allowAll + "\n  permit (principal is Robot, action, resource);", "hr.cedar:2:3: "},
		"unknown action":     {schema, `permit (principal, action == Action::"write", resource);`, "hr.cedar:1:1: "},
		"unknown attribute":  {schema, allowAll + `permit (principal, action, resource) when { resource.owner == "x" };`, "hr.cedar:1:38: "},
		"unguarded optional": {schema, `permit (principal, action, resource) when { resource.secret };`, "optional attribute `secret`"},
		"type mismatch":      {schema, `permit (principal, action, resource) when { principal.tenant > 3 };`, "hr.cedar:1:1: "},
		"not boolean":        {schema, `permit (principal, action, resource) when { principal.tenant };`, "hr.cedar:1:1: "},
		"document by id":     {schema, `forbid (principal, action, resource == Document::"secret");`, "cannot name a single document"},
		"document literal":   {schema, `forbid (principal, action, resource) when { [Document::"x"].contains(resource) };`, "cannot name a single document"},
		"document spaced":    {schema, "permit (principal, action, resource) unless { resource == Document // x\n :: \"a\" };", "cannot name a single document"},
		"nesting":            {schema, "\n" + strings.Repeat("(", 100_000), "hr.cedar:2: more than 128 nested"},
		"long":               {schema, "\npermit (principal, action, resource) when { " + strings.Repeat("true && ", 2048) + "true };", "hr.cedar:2: more than 16384 bytes"},
		"long path":          {schema, "permit (principal, action, resource) when { principal has a" + strings.Repeat(".a", 1001) + " };", "1000 dots"},
		"template":           {schema, `permit (principal == ?principal, action, resource);`, "hr.cedar:1:"},
		"no schema":          {"", allowAll, "schema.cedarschema: action read is missing"},
		"schema syntax":      {schema + "\nentity ;", allowAll, "schema.cedarschema:8:8"},
		"schema reference":   {"entity User { a: Nothing };", allowAll, "schema.cedarschema: "},
		"schema nesting":     {strings.Repeat("{", 1000), allowAll, "schema.cedarschema:1: more than 128 nested"},
		"record type":        {schema + "type Pair = { a: Long };", allowAll, "schema.cedarschema: type Pair: use String"},
		"set of records":     {schema + "type Pairs = Set<{ a: Long }>;", allowAll, "schema.cedarschema: type Pairs: use String"},
		"type of itself":     {schema + "type A = B; type B = Set<A>;", allowAll, "schema.cedarschema: type "},
		"long chain":         {schema + "type T9 = Long;" + chain(9), allowAll, "schema.cedarschema: type T"},
		"namespaced type":    {schema + "namespace N { type A = Long; }", allowAll, "schema.cedarschema: namespace N: declare"},
		"no read":            {strings.Replace(schema, "action read", "action write", 1), "", "action read is missing"},
		"read of others":     {strings.Replace(schema, "resource: Document", "resource: User", 1), "", "resource type `Document` is not valid"},
		"context":            {strings.Replace(schema, "resource: Document", "resource: Document, context: { ip: String }", 1), "", "no context"},
		"other entity":       {withUser("entity Robot;"), "", "Robot: only User, Group and Document"},
		"enum":               {withUser(`entity Color enum ["red"];`), "", "Color: only User, Group and Document"},
		"document in group":  {strings.Replace(schema, "entity Document", "entity Document in [Group]", 1), "", "Document: it is never in a Group"},
		"tags":               {strings.Replace(schema, "secret?: Bool }", "secret?: Bool } tags String", 1), "", "tags are not supplied"},
		"group attributes":   {strings.Replace(schema, "entity Group;", "entity Group { x: String };", 1), "", "groups have no attributes"},
		"attribute type":     {strings.Replace(schema, "secret?: Bool", "secret?: decimal", 1), "", `attribute "secret": use String`},
		"attribute set":      {strings.Replace(schema, "secret?: Bool", "secret?: Set<Long>", 1), "", `attribute "secret": use String`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			p, err := filter.ParsePolicies(test.schema, map[string]string{"hr.cedar": test.policies})
			require.ErrorIs(t, err, filter.ErrInvalidPolicies)
			require.ErrorContains(t, err, test.says)
			require.Nil(t, p)
		})
	}
}

// chain declares n types, each by the name of the next.
func chain(n int) (text string) {
	for i := range n {
		text += fmt.Sprintf("type T%d = T%d;\n", i, i+1)
	}
	return text
}

// TestTypesThatDouble: each type is twice the next, so that the first one
// written out would have 2^40 attributes.
func TestTypesThatDouble(t *testing.T) {
	text := strings.Replace(modelSchema, "secret?: Bool", "secret?: T0", 1) + "type T40 = Long;\n"
	for i := range 40 {
		text += fmt.Sprintf("type T%d = { a: T%d, b: T%d };\n", i, i+1, i+1)
	}
	_, err := filter.ParsePolicies(text, map[string]string{"a.cedar": allowAll})
	require.ErrorIs(t, err, filter.ErrInvalidPolicies)
	require.ErrorContains(t, err, "schema.cedarschema: type T")
}

func TestNamedTypes(t *testing.T) {
	p := mustParse(t, strings.Replace(modelSchema, "secret?: Bool", "secret?: T0", 1)+"type T3 = Bool;"+chain(3)+"type Tags = Set<Tag>; type Tag = String;",
		allowAll)
	require.NoError(t, p.CheckDocument(filter.Attributes{"secret": true}))
	require.Error(t, p.CheckDocument(filter.Attributes{"secret": "yes"}))
}

// TestShapeOfCode: nothing in a comment or a string opens, closes or ends anything.
func TestShapeOfCode(t *testing.T) {
	open, shut := strings.Repeat("(", 100), strings.Repeat(")", 100)
	const when = "permit (principal, action, resource) when { "
	for name, hidden := range map[string]string{
		"line comment":  "//;" + shut + "\n",
		"block comment": "/*;" + shut + "*/",
		"string":        `";` + shut + `\"" == `,
	} {
		_, err := filter.ParsePolicies(modelSchema, map[string]string{"a.cedar": when + strings.Repeat(open+hidden, 100)})
		require.ErrorContains(t, err, ": more than 128 nested brackets", name)
		dots := strings.Replace(hidden, shut, "", 1) + strings.Repeat("principal.", 100)
		_, err = filter.ParsePolicies(modelSchema, map[string]string{"a.cedar": when + strings.Repeat(dots, 11)})
		require.ErrorContains(t, err, "or 1000 dots without a semicolon", name)
	}
	many := strings.Repeat("([{.", 5000)
	mustParse(t, modelSchema, "// "+many+"\n/* "+many+" \n*/"+when+`principal.tenant != "`+many[:8000]+`\"(" };`)
	_, err := filter.ParsePolicies(modelSchema, map[string]string{"a.cedar": when + `principal.tenant != "` + many})
	require.ErrorContains(t, err, "more than 16384 bytes")
	_, err = filter.ParsePolicies(modelSchema, map[string]string{"a.cedar": "/* \n */ //\n" + strings.Repeat("(", 129)})
	require.ErrorContains(t, err, "a.cedar:3: more than 128")
}

// TestParsePoliciesNamesAllFaults: a second bad policy is not hidden by the first.
func TestParsePoliciesNamesAllFaults(t *testing.T) {
	bad := "permit (principal is Robot, action, resource);"
	_, err := filter.ParsePolicies(modelSchema, map[string]string{"a.cedar": bad + "\n" + bad, "b.cedar": bad})
	for _, place := range []string{"a.cedar:1:1: ", "a.cedar:2:1: ", "b.cedar:1:1: "} {
		require.ErrorContains(t, err, place)
	}
}

func TestParsePoliciesBounds(t *testing.T) {
	files := map[string]string{}
	for i := range 9 {
		files[fmt.Sprint(i)] = strings.Repeat(";", 256*1024)
	}
	_, err := filter.ParsePolicies(modelSchema, files)
	require.ErrorContains(t, err, "policies take")
	_, err = filter.ParsePolicies(modelSchema, map[string]string{"a": strings.Repeat(" ", 256*1024+1)})
	require.ErrorContains(t, err, "at most 262144")
	_, err = filter.ParsePolicies(strings.Repeat(" ", 256*1024+1), nil)
	require.ErrorContains(t, err, "at most 262144")
	_, err = filter.ParsePolicies(modelSchema, map[string]string{"": allowAll})
	require.ErrorContains(t, err, "the name must have")
	for i := range 257 {
		files[fmt.Sprint(i)] = ""
	}
	_, err = filter.ParsePolicies(modelSchema, files)
	require.ErrorContains(t, err, "257 policy files")
}

func TestNoPolicyDenies(t *testing.T) {
	empty, err := filter.ParsePolicies("", nil)
	require.NoError(t, err)
	fromEmpty, err := filter.LoadPolicies(t.TempDir())
	require.NoError(t, err)
	everyone := filter.Access{Readers: filter.Readers{List: []filter.Reader{filter.Public, filter.User("u")}}}
	for _, p := range []*filter.Policies{nil, empty, fromEmpty, mustParse(t, modelSchema, "")} {
		ok, err := p.Admits(filter.Principal{Tenant: "t", Subject: "u"}, everyone)
		require.NoError(t, err)
		require.False(t, ok)
	}
}

func TestLoadPolicies(t *testing.T) {
	directory := t.TempDir()
	write := func(name, text string) {
		require.NoError(t, os.WriteFile(filepath.Join(directory, name), []byte(text), 0o600))
	}
	write(filter.SchemaFile, modelSchema)
	write("a.cedar", allowAll)
	write("notes.txt", "not a policy")
	loaded, err := filter.LoadPolicies(directory)
	require.NoError(t, err)
	schema, files := loaded.Source()
	require.Equal(t, modelSchema, schema)
	require.Equal(t, map[string]string{"a.cedar": allowAll}, files)
	again, err := filter.ParsePolicies(schema, files)
	require.NoError(t, err)
	require.Equal(t, loaded.Digest(), again.Digest())

	write("b.cedar", "permit (")
	_, err = filter.LoadPolicies(directory)
	require.ErrorContains(t, err, "b.cedar:1:9")
	require.ErrorContains(t, err, directory)
	write("b.cedar", strings.Repeat(" ", 256*1024+1))
	_, err = filter.LoadPolicies(directory)
	require.ErrorIs(t, err, filter.ErrInvalidPolicies)
	_, err = filter.LoadPolicies(filepath.Join(directory, "missing"))
	require.ErrorIs(t, err, os.ErrNotExist)
}

func TestPoliciesDigest(t *testing.T) {
	digests := map[[32]byte]bool{}
	for _, files := range []map[string]string{
		nil, {"a": ""}, {"a": " "}, {"a ": ""}, {"a": "", "b": ""}, {"b": ""},
	} {
		p, err := filter.ParsePolicies(modelSchema, files)
		require.NoError(t, err)
		digests[p.Digest()] = true
	}
	require.Len(t, digests, 6)
}

// TestDocumentInText: only a literal names a document, not a text that looks like one.
func TestDocumentInText(t *testing.T) {
	mustParse(t, modelSchema, `@note("forbid Document::\"x\"")
		permit (principal, action, resource is Document) when { principal.tenant != "Document::\"x\"" }; // Document::"x"`)
}

func TestStarterPolicies(t *testing.T) {
	p := starter(t)
	undeclared := filter.Access{Readers: filter.Readers{Undeclared: true}, Attributes: filter.Attributes{"anything": int64(1)}}
	ok, err := p.Admits(filter.Principal{Tenant: "t", Subject: "u", Attributes: filter.Attributes{"claim": "x"}}, undeclared)
	require.NoError(t, err)
	require.True(t, ok)
	require.NoError(t, p.CheckDocument(undeclared.Attributes))
}

func TestCheckDocument(t *testing.T) {
	p := mustParse(t, strings.Replace(modelSchema, "secret?", "secret", 1), allowAll)
	require.NoError(t, p.CheckDocument(filter.Attributes{"secret": true, "undeclared": "x"}))
	require.ErrorContains(t, p.CheckDocument(filter.Attributes{}), `"secret" is missing`)
	require.ErrorContains(t, p.CheckDocument(filter.Attributes{"secret": "yes"}), `"secret" is not of the type`)
	require.ErrorContains(t, p.CheckDocument(filter.Attributes{"secret": 1.5}), "use ParseAttributes")
}

// FuzzParsePolicies: any text is refused or decides without a panic, and what
// is parsed from its own source is the same.
func FuzzParsePolicies(f *testing.F) {
	for _, text := range modelPolicies {
		f.Add(modelSchema, text)
	}
	f.Add(modelSchema, "permit (principal, action, resource) when { ((((1)))) == 1 };")
	f.Add("entity User; entity Document; action read appliesTo { principal: User, resource: Document };", allowAll)
	f.Add("namespace A { entity User; }", "forbid (principal, action, resource == Document::\"\\0\");")
	principal := filter.Principal{Tenant: "t", Subject: "u", Groups: []string{"g0"}, Attributes: filter.Attributes{"level": int64(2)}}
	access := filter.Access{Readers: filter.Readers{Undeclared: true}, Attributes: filter.Attributes{"level": int64(1), "tags": []string{"a"}}}
	f.Fuzz(func(t *testing.T, schema, text string) {
		p, err := filter.ParsePolicies(schema, map[string]string{"f.cedar": text})
		if err != nil {
			require.ErrorIs(t, err, filter.ErrInvalidPolicies)
			return
		}
		ok, err := p.Admits(principal, access)
		require.False(t, ok && err != nil)
		again, err := filter.ParsePolicies(p.Source())
		require.NoError(t, err)
		require.Equal(t, p.Digest(), again.Digest())
	})
}
