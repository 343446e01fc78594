package config

import (
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

var rewrite = flag.Bool("rewrite", false, "rewrite docs/configuration.md")

func write(t *testing.T, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "sluice.yaml")
	require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
	return file
}

const key = `
auth:
  api_keys:
    - name: bot
      hash: sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08
      tenant: acme
      subject: bot
      roles: [read]
`

func TestPrecedence(t *testing.T) {
	file := write(t, key+"data: from-file\nmodel: from-file\nlisten: 127.0.0.1:1\nlimits: {body_bytes: 64KiB, drain_timeout: 5s}\n")
	t.Setenv("SLUICE_MODEL", "from-environment")
	t.Setenv("SLUICE_LISTEN", "127.0.0.1:2")
	t.Setenv("SLUICE_LIMITS_DRAIN_TIMEOUT", "7s")
	c, err := Load(file, map[string]string{"listen": "127.0.0.1:3", "limits.body_bytes": "4096"}, false)
	require.NoError(t, err)
	require.Equal(t, "127.0.0.1:3", c.Listen)
	require.Equal(t, "from-environment", c.Model)
	require.Equal(t, filepath.Join(filepath.Dir(file), "from-file"), c.Data)
	require.Equal(t, "127.0.0.1:8081", c.AdminListen)
	require.Equal(t, Size(4096), c.Limits.BodyBytes)
	require.Equal(t, 7*time.Second, c.Limits.DrainTimeout)
}

func TestEnvironmentMakesSenseOfNumbers(t *testing.T) {
	t.Setenv("SLUICE_LIMITS_CONCURRENT_REQUESTS", "12")
	c, err := Load(write(t, key), nil, false)
	require.NoError(t, err)
	require.Equal(t, 12, c.Limits.ConcurrentRequests)

	t.Setenv("SLUICE_LIMITS_CONCURRENT_REQUESTS", "many")
	_, err = Load(write(t, key), nil, false)
	require.ErrorContains(t, err, `SLUICE_LIMITS_CONCURRENT_REQUESTS: a text is given, and expected is a whole number, for example 4`)
}

func TestErrors(t *testing.T) {
	cases := map[string]struct{ text, want string }{
		"unknown key":          {key + "limit: 3\n", "line 9: there is no key limit; the file has listen, admin_listen, "},
		"unknown nested key":   {key + "limits:\n  body: 3\n", "line 10: there is no key limits.body; limits has body_bytes, total_bytes, "},
		"unknown key of a key": {strings.Replace(key, "name: bot", "nmae: bot", 1), "line 4: there is no key auth.api_keys[0].nmae; auth.api_keys[0] has name, hash, tenant, "},
		"size":                 {key + "limits: {body_bytes: 3 apples}\n", `limits.body_bytes: a text is given, and expected is a size: bytes, or a whole number with KiB, MiB or GiB, for example body_bytes: 16MiB`},
		"answer":               {key + "answer: {base_url: nowhere, timeout: 30s, relevance: 2}\n", "answer.base_url"},
		"answer model":         {key + "answer: {base_url: 'http://h/v1'}\n", "answer.model"},
		"answer timeout":       {key + "answer: {base_url: 'http://h/v1', model: m, timeout: 30s}\n", "answer.timeout: must be less than limits.request_timeout"},
		"answer relevance":     {key + "answer: {base_url: 'http://h/v1', model: m, relevance: 2}\n", "relevance is a number from 0 to 1"},
		"answer price":         {key + "answer: {base_url: 'http://h/v1', model: m, prompt_price: -1}\n", "prices are not negative"},
		"no bound":             {key + "limits: {concurrent_requests: 0}\n", "limits.concurrent_requests: must be greater than zero"},
		"time":                 {key + "limits: {request_timeout: 5}\n", `line 9: limits.request_timeout: a number is given, and expected is a time with its unit (ms, s, m, h), for example request_timeout: 30s`},
		"number":               {key + "limits: {concurrent_requests: many}\n", `line 9: limits.concurrent_requests: a text is given, and expected is a whole number, for example concurrent_requests: 256`},
		"switch":               {key + "traces: {trust_parent: maybe}\n", `traces.trust_parent: a text is given, and expected is true or false, for example trust_parent: true`},
		"text":                 {key + "listen: [a]\n", "listen: a list is given, and expected is a text, for example listen: 127.0.0.1:8080"},
		"keys":                 {key + "limits: 3\n", `limits: a number is given, and expected is keys of its own: body_bytes, total_bytes`},
		"list":                 {"auth: {api_keys: bot}\n", `auth.api_keys: a text is given, and expected is a list, for example api_keys: […]`},
		"item":                 {"auth: {api_keys: [bot]}\n", `auth.api_keys[0]: a text is given, and expected is keys of its own: name, hash, tenant`},
		"names":                {key + "limits: {tenants: acme}\n", `limits.tenants: a text is given, and expected is names, each with what it stands for, for example tenants: {name: …}`},
		"of a name":            {key + "limits: {tenants: {acme: {searches_per_second: x}}}\n", `limits.tenants.acme.searches_per_second: a text is given, and expected is a number, for example searches_per_second: 50`},
		"of a pointer":         {key + "answer: {relevance: much}\n", `answer.relevance: a text is given, and expected is a number, for example relevance: 0.5`},
		"of an alias":          {key + "log: &a {level: info}\ntls: *a\n", "there is no key tls.level"},
		"no keys":              {"- a\n", "the file: a list is given, and expected is keys of its own: listen"},
		"duplicate key":        {key + "data: a\ndata: b\n", "line 10: data is given already on line 9: leave one of the two"},
		"duplicate of an item": {strings.Replace(key, "      tenant", "      name: b\n      tenant", 1), "line 6: auth.api_keys[0].name is given already on line 4: leave one of the two"},
		"duplicate attribute":  {key + "demo: {principals: {eve: {attributes: {a: 1, b: {c: 1, c: 2}}}}}\n", "line 9: demo.principals.eve.attributes.b.c is given already on line 9"},
		"merged":               {key + "log: {<<: {lvl: warn}}\n", "line 9: there is no key log.lvl; log has level, format"},
		"merged names":         {key + "limits: {tenants: {<<: {acme: 3}}}\n", "limits.tenants.acme: a number is given"},
		"merged with itself":   {key + "log: &a {<<: *a}\n", "line 9: log.<<: a text is given, and expected is keys that do not hold themselves"},
		"merged list":          {key + "log: &a [{level: info}]\ntls: {<<: *a}\n", "tls: a list is given"},
		"merged with nothing":  {key + "log: {<<: ~}\n", "what its anchors and merges (&, *, <<) stand for cannot be read"},
		"holds itself":         {key + "demo: {principals: {eve: {attributes: {a: &a [*a]}}}}\n", "line 9: demo.principals.eve.attributes.a: a list is given, and expected is a text, true or false"},
		"no anchor":            {key + "data: a\nmodel: *b\n", "line 10: what begins with * names an anchor (&), and there is none of that name"},
		"key of keys":          {key + "limits: {[a]: 3}\n", "line 9: there is no key limits.(not shown)"},
		"name of names":        {key + "limits: {tenants: {[a]: {}}}\n", "line 9: limits.tenants: a list is given, and expected is a name"},
		"syntax":               {key + "data: [\n", "line 9: did not find expected"},
		"two documents":        {key + "---\ndata: b\n", "one YAML document"},
		"address":              {key + "listen: 8080\n", "host:port"},
		"nobody":               {"data: x\n", "nobody could sign in"},
		"hash":                 {strings.Replace(key, "sha256:9f", "md5:9f", 1), "auth.api_keys[0].hash"},
		"short hash":           {strings.Replace(key, "9f86", "", 1), "auth.api_keys[0].hash"},
		"role":                 {strings.Replace(key, "[read]", "[root]", 1), `auth.api_keys[0].roles: must be one of read, write, admin`},
		"tenant":               {strings.Replace(key, "acme", `""`, 1), "auth.api_keys[0].tenant"},
		"demo without --demo":  {key + "demo: {principals: {eve: {tenant: t, subject: eve, roles: [read]}}}\n", "start with --demo"},
		"demo enabled":         {key + "demo: {enabled: true}\n", "there is no key demo.enabled; demo has principals"},
		"jwt issuer":           {"auth: {jwt: {audience: a, jwks_file: f}}", "auth.jwt.issuer"},
		"jwt keys":             {"auth: {jwt: {issuer: i, audience: a}}", "one of keys, jwks_file and jwks_url"},
		"jwt algorithm":        {"auth: {jwt: {issuer: i, audience: a, keys: [{id: k, algorithm: none, file: f}]}}", `auth.jwt.keys[0].algorithm: must be one of HS256`},
		"jwks url":             {"auth: {jwt: {issuer: i, audience: a, jwks_url: 'file:///etc/passwd'}}", "auth.jwt.jwks_url: must be a URL that begins with http:// or https://"},
		"device":               {key + "device: tpu\n", `device: must be one of auto, cpu, cuda, cuda:0,1, gorgonia`},
		"precision":            {key + "precision: f64\n", "precision"},
		"device's list":        {key + "device: cuda:0,x\n", `device: must name GPUs by different numbers`},
		"device without list":  {key + "device: cpu:0\n", `device: must be one of`},
		"device's precision":   {key + "device: gorgonia\nprecision: int8\n", `precision: must be one of auto, f32, with device gorgonia`},
		"milvus address":       {key + "milvus: [localhost]\n", `milvus[0]: must be host:port`},
		"milvus twice":         {key + "milvus: ['a:1', 'b:1', 'a:1']\n", "milvus[2]: is the same as milvus[0]"},
		"milvus down":          {key + "milvus_down: ignore\n", "milvus_down"},
		"tenant limits":        {key + "limits: {tenants: {acme: {searches_per_second: .nan}}}\n", "limits.tenants.acme"},
		"traces":               {key + "traces: {endpoint: 'localhost:4318'}\n", "traces.endpoint"},
		"sampling":             {key + "traces: {sample_percent: 101}\n", "traces.sample_percent"},
		"tls":                  {key + "tls: {cert: c.pem}\n", "cert and key go together"},
		"log level":            {key + "log: {level: loud}\n", "log.level"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := Load(write(t, c.text), nil, false)
			require.ErrorContains(t, err, c.want)
		})
	}
}

const goWords = `unmarshal|!!|config\.|\[\]string|map\[|interface`

// Everything that does not fit is said, and no type of Go's.
func TestAllThatDoesNotFit(t *testing.T) {
	_, err := Load(write(t, "listen: [a]\nlimits: {body_bytes: {}, cow: 1}\nauth: {jwt: 3, api_keys: [{roles: read}]}\n"), nil, false)
	require.Len(t, strings.Split(err.Error(), "\n"), 5)
	require.NotRegexp(t, goWords, err)
	_, err = Load(write(t, key+"policies: ~\nmilvus:\nlog: {<<: {level: warn}}\n"), nil, false)
	require.NoError(t, err, "null is the default")
	_, err = Load(write(t, "demo: {principals: {eve: {tenant: t, subject: eve, roles: [read], attributes: {teams: [a, b], level: 3}}}}\n"), nil, true)
	require.NoError(t, err, "attributes have their own shapes")
}

// No error repeats what stands in a wrong place, wherever that is and however it is
// written: it may be a secret.
func TestNoValueIsRepeated(t *testing.T) {
	const secret = "hunter2"
	written := []string{secret, "[" + secret + "]", "{level: " + secret + "}", "!!float " + secret, "!!binary " + secret, "{a: !!int " + secret + "}", "*" + secret, "{" + secret + "}", "{<<: " + secret + "}", "postgres://u:" + secret + "@h/d"}
	lines := strings.Split(strings.TrimSpace(withExamples()), "\n")
	refused := 0
	for i, line := range lines {
		before, _, found := strings.Cut(line, ":")
		if strings.HasPrefix(strings.TrimSpace(line), "#") || !found {
			continue
		}
		for _, value := range written {
			text := slices.Concat(lines[:i], []string{before + ": " + value}, deeper(lines[i:]))
			if err := read(strings.Join(text, "\n")); err != nil {
				refused++
				require.NotContains(t, err.Error(), secret, "%s: %s", before, value)
				require.NotRegexp(t, goWords, err.Error(), "%s: %s", before, value)
			}
		}
	}
	require.Greater(t, refused, 500)
	for _, s := range Settings() {
		if _, err := Load("", map[string]string{s.Path: secret}, true); err != nil {
			require.NotContains(t, err.Error(), secret, s.Path)
		}
	}
}

// read is what a file of that text is refused with.
func read(text string) error {
	c := Default()
	c.Demo.Enabled = true
	if _, err := c.parse([]byte(text)); err != nil {
		return err
	}
	c.EnsureDefaults()
	return c.Validate()
}

// deeper are the lines after those that belong to the first.
func deeper(lines []string) []string {
	depth := func(line string) int { return len(line) - len(strings.TrimLeft(line, " -")) }
	for i, line := range lines[1:] {
		if depth(line) <= depth(lines[0]) {
			return lines[i+1:]
		}
	}
	return nil
}

func TestDevices(t *testing.T) {
	for _, text := range []string{"", "device: cpu\nprecision: int8\n", "device: gorgonia\n", "device: gorgonia\nprecision: f32\n", "device: auto\n", "device: cuda\n", "device: cuda:1,0\nprecision: bf16\n"} {
		_, err := Load(write(t, key+text), nil, false)
		require.NoError(t, err, text)
	}
}

func TestUnknownOverride(t *testing.T) {
	_, err := Load("", map[string]string{"limits.bodies": "3"}, true)
	require.ErrorContains(t, err, `no setting "limits.bodies"`)
}

func TestDemoNeedsNoFile(t *testing.T) {
	c, err := Load("", nil, true)
	require.NoError(t, err)
	require.True(t, c.Demo.Enabled)
}

func TestSize(t *testing.T) {
	for text, want := range map[string]Size{"0": 0, "17": 17, "2KiB": 2048, "3 MiB": 3 << 20, "1GiB": 1 << 30} {
		var s Size
		require.NoError(t, s.UnmarshalText([]byte(text)), text)
		require.Equal(t, want, s)
	}
	for _, text := range []string{"", "-1", "1.5MiB", "KiB", "9223372036854775807KiB", "12 KB"} {
		require.Error(t, new(Size).UnmarshalText([]byte(text)), text)
	}
	require.Equal(t, "64KiB", Size(65536).String())
	require.Equal(t, "1000", Size(1000).String())
	require.Equal(t, "0", Size(0).String())
}

// The reference loads as it stands (with --demo), and its examples load too.
func TestReferenceLoads(t *testing.T) {
	file := write(t, Reference())
	c, err := Load(file, nil, true)
	require.NoError(t, err)
	want := Default()
	want.Demo.Enabled = true
	want.Data = filepath.Join(filepath.Dir(file), want.Data)
	require.Equal(t, want, c)

	c, err = Load(write(t, withExamples()), nil, true)
	require.NoError(t, err)
	require.Equal(t, "https://id.example.org", c.Auth.JWT.Issuer)
	require.Equal(t, []string{"read"}, c.Auth.APIKeys[0].Roles)
	require.Equal(t, "alice", c.Demo.Principals["alice"].Subject)
}

// withExamples is the reference with its examples in force.
func withExamples() string {
	return regexp.MustCompile(`(?m)^( *)# ((?:  )*(?:[a-z_]+:( .*)?|-)$)`).ReplaceAllString(Reference(), "$1$2")
}

func TestDocumentIsCurrent(t *testing.T) {
	file := filepath.Join("..", "..", "docs", "configuration.md")
	if *rewrite {
		require.NoError(t, os.WriteFile(file, []byte(Document()), 0o644))
	}
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, Document(), string(text), "run: go test ./server/config -rewrite")
}

// What the file names is where the file says, wherever the daemon runs. Names, and
// what is given elsewhere or nowhere, stay as they are.
func TestPaths(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "sluice.yaml")
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "models", "pair"), 0o700))
	load := func(text string, overrides map[string]string) Config {
		require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
		c, err := Load(file, overrides, true)
		require.NoError(t, err)
		return c
	}
	c := load(`
data: data
policies: ../policies
model: ./own
reranker: models/pair
classifier: owner/name
tls: {cert: certs/own.pem, key: /etc/key.pem}
planner: {url: "http://127.0.0.1:1/v1", model: m, key_file: planner.key}
audit: {directory: audit}
auth:
  jwt: {issuer: i, audience: a, jwks_file: jwks.json, keys: [{id: k, algorithm: HS256, file: secret}]}
`, nil)
	require.Equal(t, []string{"data", "../policies", "own", "models/pair", "certs/own.pem", "planner.key", "audit", "jwks.json", "secret"},
		relative(t, dir, c.Data, c.Policies, c.Model, c.Reranker, c.TLS.Cert, c.Planner.KeyFile, c.Audit.Directory, c.Auth.JWT.JWKSFile, c.Auth.JWT.Keys[0].File))
	require.Equal(t, []string{"owner/name", "/etc/key.pem"}, []string{c.Classifier, c.TLS.Key})

	text := "audit: {directory: \"off\"}\ntls: {cert: a.pem, key: b.pem}\n"
	c = load(text, map[string]string{"tls.cert": "here.pem", "policies": "here"})
	require.Equal(t, []string{"data", "all-minilm-l6-v2", "off", "", "here.pem", "here"}, []string{c.Data, c.Model, c.Audit.Directory, c.Reranker, c.TLS.Cert, c.Policies})
	t.Setenv("SLUICE_DATA", "from/there")
	require.Equal(t, "from/there", load("data: x", nil).Data)
}

// relative are paths by where they are from dir.
func relative(t *testing.T, dir string, paths ...string) (all []string) {
	t.Helper()
	for _, path := range paths {
		require.True(t, filepath.IsAbs(path), path)
		from, err := filepath.Rel(dir, path)
		require.NoError(t, err)
		all = append(all, from)
	}
	return all
}
