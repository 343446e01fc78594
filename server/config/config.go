// Package config is the daemon's configuration: one YAML file, environment
// variables and flags. Flags win over the environment, the environment over
// the file, the file over the defaults. Unknown keys are an error.
package config

import (
	"time"

	"sluice/index/local/ivf"
)

// Config is everything the daemon can be told. The doc tags are the reference
// that `sluice serve --help` and docs/configuration.md print.
type Config struct {
	Listen         string        `yaml:"listen" doc:"Address of the API: host:port."`
	AdminListen    string        `yaml:"admin_listen" doc:"Address of /metrics, /debug/pprof, /snapshots (for 'sluice snapshot'), /reload and /cache (for 'sluice cache'), without authentication: keep it private. \"off\" turns it off."`
	AdminHosts     []string      `yaml:"admin_hosts" doc:"Names of the admin listener, beside localhost, IP addresses and that of admin_listen. Requests under other names are refused: web pages of such names may have sent them."`
	Data           string        `yaml:"data" doc:"Directory of the index, and of the store unless that is a database. One process at a time."`
	Store          string        `yaml:"store" doc:"PostgreSQL database that keeps the store, for any number of daemons side by side: postgres://user:password@host/database, with the parameters of libpq, and pool_max_conns (16). The password may come from PGPASSWORD or a passfile instead. Empty: the store is in the data directory, for this process alone."`
	StoreStaleness time.Duration `yaml:"store_staleness" doc:"How far what is searched may lag behind the database. 0s: not at all; every search waits for all that was acknowledged before it. More spares searches a read of the database: on the other daemons changes of policies, and what a revoked document adds to counts and scores, may then last so much longer; readers and attributes are checked on every result in any case."`
	Model          string        `yaml:"model" doc:"Embedding model: a name that 'sluice model pull' knows, or a directory."`
	Reranker       string        `yaml:"reranker" doc:"Cross-encoder for the rerank calls and the strategy hybrid-rerank: a name that 'sluice model pull' knows, or a directory. Empty: none; the calls say so, and hybrid-rerank answers are marked as degraded."`
	Classifier     string        `yaml:"classifier" doc:"Sequence classifier for the call /predict: a name that 'sluice model pull' knows, or a directory. Empty: the reranker."`
	Device         string        `yaml:"device" doc:"What runs the models: cpu; cuda, all NVIDIA GPUs, or some as in cuda:0,1 ('sluice devices' lists them); auto, cuda where there is a GPU, else cpu; or gorgonia, which runs them as expression graphs in f32: an independent check of cpu's vectors, many times as slow."`
	Precision      string        `yaml:"precision" doc:"Arithmetic of the models: f32, bf16, int8, or auto for the fastest on this CPU that keeps each model's vectors; GPUs have bf16 only. Vectors of different precisions do not mix: what one has embedded, another refuses to serve."`
	DenseRecall    float64       `yaml:"dense_recall" doc:"Share of the ten nearest passages that a dense search finds on average where so many are allowed that it does not score all of them: 0.9 to 0.995. Less is faster (docs/tuning.md). Of the index in the data directory; Milvus has its own ways."`
	Policies       string        `yaml:"policies" doc:"Directory of Cedar policies (*.cedar) and their schema. Empty: readers alone decide, within the tenant."`
	Planner        *Planner      `yaml:"planner" doc:"A chat model that plans the chunks of collections with the chunker plan/1. Without it rules do. It sees the documents' text; a document that it gives no plan for is not written."`
	Answer         *Answer       `yaml:"answer" doc:"A chat model that answers questions from passages (docs/answers.md). Without it answers are the passages alone. It sees the text of passages that whoever asks may read."`
	Milvus         []string      `yaml:"milvus" doc:"Milvus servers or clusters (2.3 or newer) that keep the vectors, host:port; documents are spread over them. Daemons with one store name the same, in any order. Empty: the index is in the data directory. The postings always are."`
	MilvusDown     string        `yaml:"milvus_down" doc:"What a search answers while one of several Milvus clusters cannot be used: error (503), or degrade, without what is there, which the answer says."`
	TLS            TLS           `yaml:"tls" doc:"Certificate of the API's listener. Without one it speaks plain HTTP: then keep it on loopback, or behind a proxy that does TLS."`
	Limits         Limits        `yaml:"limits" doc:"Bounds on what one client can cost."`
	Auth           Auth          `yaml:"auth" doc:"Who may ask. At least one of jwt and api_keys, unless the daemon runs with --demo."`
	Demo           Demo          `yaml:"demo" doc:"Named principals for trying things out, chosen by the header X-Sluice-Principal. Refused unless the daemon runs with --demo."`
	Audit          Audit         `yaml:"audit" doc:"The audit log: who did what, when, at which epoch (docs/formats/audit.md)."`
	Traces         Traces        `yaml:"traces" doc:"OpenTelemetry traces: how long each stage of a request took. They hold no texts, keys or names of who asked."`
	Log            Log           `yaml:"log" doc:"Logging, to standard error."`
}

// Planner is a chat model behind an OpenAI-compatible API.
type Planner struct {
	URL     string `yaml:"url" doc:"Its API; /chat/completions is appended." example:"http://127.0.0.1:8000/v1"`
	Model   string `yaml:"model" doc:"The model's name there." example:"planner"`
	KeyFile string `yaml:"key_file" doc:"File with the key to send, if one is wanted." example:"planner.key"`
}

// Answer is a chat model behind an OpenAI-compatible API, and what is made of what it says.
type Answer struct {
	BaseURL         string        `yaml:"base_url" doc:"Its API; /chat/completions is appended." example:"http://127.0.0.1:8000/v1"`
	Model           string        `yaml:"model" doc:"The model's name there." example:"qwen3-8b"`
	KeyEnv          string        `yaml:"key_env" doc:"Environment variable with the key to send, if one is wanted." example:"ANSWER_KEY"`
	Timeout         time.Duration `yaml:"timeout" doc:"Of all that the model is asked for one answer; past it the answer is the passages alone, marked as degraded. Less than limits.request_timeout. Default: 20s." example:"20s"`
	ContextTokens   int           `yaml:"context_tokens" doc:"Of the passages that the model is shown, counted as three bytes each. Default: 4000." example:"4000"`
	Relevance       *float64      `yaml:"relevance" doc:"How relevant to the question, in late interaction, a cited passage must be: a number that depends on the embedding model; 0: no matter. Default: 0.5, for all-minilm-l6-v2." example:"0.5"`
	Rerank          bool          `yaml:"rerank" doc:"Have the model order the passages first: one call more." example:"false"`
	PromptPrice     float64       `yaml:"prompt_price" doc:"Of a million tokens, for the metric of costs." example:"0.15"`
	CompletionPrice float64       `yaml:"completion_price" doc:"The same of what the model says." example:"0.60"`
}

// TLS is the certificate of the API's listener.
type TLS struct {
	Cert string `yaml:"cert" doc:"Certificate chain, PEM, the server's own first. Read again on SIGHUP."`
	Key  string `yaml:"key" doc:"Its private key, PEM."`
}

// Enabled reports whether the listener speaks TLS.
func (t TLS) Enabled() bool { return t.Cert != "" }

// Limits bound requests.
type Limits struct {
	BodyBytes          Size                    `yaml:"body_bytes" doc:"Largest request body, and largest line of an NDJSON body (whose length as a whole is not bounded). Units: KiB, MiB, GiB."`
	TotalBytes         Size                    `yaml:"total_bytes" doc:"Bodies that have arrived, answers that are not taken yet, and what texts of few spaces take while they are tokenized, of all requests together; a request beyond it is answered with 429. To parse and embed a document takes ten times its size, of a hostile one forty times: this bounds what all clients together can cost."`
	Connections        int                     `yaml:"connections" doc:"Open connections; one more is closed with 503. At most half of the files that the process may open (ulimit -n) are used for them."`
	ConcurrentRequests int                     `yaml:"concurrent_requests" doc:"Requests worked on at the same time; one more is answered with 429."`
	Tenants            map[string]TenantLimits `yaml:"tenants" doc:"Limits of each tenant by its name, and of every other under \"*\". What is left out or 0 has none of its own." key:"acme"`
	BulkConcurrency    int                     `yaml:"bulk_concurrency" doc:"Documents of one NDJSON body worked on at the same time. Lines with the same key are always applied in order."`
	RequestTimeout     time.Duration           `yaml:"request_timeout" doc:"Deadline of a request, or of one document of an NDJSON body; past it the answer is 504."`
	RerankTimeout      time.Duration           `yaml:"rerank_timeout" doc:"How long the cross-encoder may take within a search; past it the answer is that of hybrid, marked as degraded."`
	ReadTimeout        time.Duration           `yaml:"read_timeout" doc:"Time in which a request, or one line of an NDJSON body, must arrive."`
	DrainTimeout       time.Duration           `yaml:"drain_timeout" doc:"On shutdown, how long requests in flight may go on."`
	MergeBytes         Size                    `yaml:"merge_bytes" doc:"How much merges of index segments write in a second, of all collections together: what searches and commits want of the disk comes first. Too little, and a bulk load leaves many small segments, which cost every search."`
}

// TenantLimits bound one tenant.
type TenantLimits struct {
	ConcurrentRequests   int     `yaml:"concurrent_requests" doc:"Its requests worked on at the same time; one more is answered with 429." example:"64"`
	SearchesPerSecond    float64 `yaml:"searches_per_second" doc:"Its searches, with a second's worth at once; one more is answered with 429 and when to come again." example:"50"`
	IngestBytesPerSecond Size    `yaml:"ingest_bytes_per_second" doc:"Bytes that it writes: documents, access rows, judged queries. One alone is answered with 429 beyond it; a body of many (NDJSON) is read as fast, and ends with 429 at a line that would have to wait longer than read_timeout." example:"4MiB"`
}

// Auth lists the ways to prove an identity.
type Auth struct {
	JWT     *JWT     `yaml:"jwt" doc:"JSON Web Tokens, sent as 'Authorization: Bearer …'. Algorithms: HS256, RS256, EdDSA."`
	APIKeys []APIKey `yaml:"api_keys" doc:"Long-lived random keys, sent as 'Authorization: Bearer …'. Only their hashes are kept: 'sluice key' makes a pair."`
}

// JWT says which tokens are trusted and what their claims mean.
type JWT struct {
	Issuer      string        `yaml:"issuer" doc:"Required value of iss." example:"https://id.example.org"`
	Audience    string        `yaml:"audience" doc:"Required member of aud." example:"sluice"`
	Keys        []Key         `yaml:"keys" doc:"Keys from files."`
	JWKSFile    string        `yaml:"jwks_file" doc:"A JSON Web Key Set of public keys, read at start and on SIGHUP." example:"jwks.json"`
	JWKSURL     string        `yaml:"jwks_url" doc:"The same, fetched at start, every five minutes, and (at most once a minute) when a token names an unknown key. Use https: who can change the answer can sign tokens." example:"https://id.example.org/.well-known/jwks.json"`
	Leeway      time.Duration `yaml:"leeway" doc:"Tolerated difference of clocks." example:"30s"`
	Claims      Claims        `yaml:"claims" doc:"Which claim holds what. A name is looked up as it is, then as a path of names joined by dots."`
	DefaultRole string        `yaml:"default_role" doc:"Role of a token that has no roles claim: read, write, admin, or empty for none." example:"read"`
}

// Key is one verification key.
type Key struct {
	ID        string `yaml:"id" doc:"The kid that tokens name." example:"2026-01"`
	Algorithm string `yaml:"algorithm" doc:"HS256, RS256 or EdDSA. The key verifies this algorithm and no other." example:"EdDSA"`
	File      string `yaml:"file" doc:"HS256: the secret, at least 32 bytes. RS256 (2048 bits or more), EdDSA: the public key, PEM." example:"id.pub.pem"`
}

// Claims maps claims to a principal.
type Claims struct {
	Tenant     string            `yaml:"tenant" doc:"Claim of the tenant (a string; a token without it is refused). Default: tenant." example:"tenant"`
	Subject    string            `yaml:"subject" doc:"Claim of the subject. Default: sub." example:"sub"`
	Groups     string            `yaml:"groups" doc:"Claim of the groups (a list of strings). Default: groups." example:"groups"`
	Roles      string            `yaml:"roles" doc:"Claim of the roles: read, write, admin; others are ignored. Default: roles." example:"roles"`
	Attributes map[string]string `yaml:"attributes" doc:"Attribute that policies see: its claim (a string, boolean, integer or list of strings). The attribute region is a search's default region." example:"{region: region, department: dept}"`
}

// APIKey is one key and who its holder is.
type APIKey struct {
	Name      string `yaml:"name" doc:"Names the key in logs." example:"ingest-bot"`
	Hash      string `yaml:"hash" doc:"sha256: and 64 hexadecimal digits, the SHA-256 of the key." example:"sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"`
	Principal `yaml:",inline"`
}

// Demo holds the demo principals. Enabled is set by the flag alone.
type Demo struct {
	Enabled    bool                 `yaml:"-"`
	Principals map[string]Principal `yaml:"principals" doc:"Name: principal." key:"alice"`
}

// Audit is the audit log.
type Audit struct {
	Directory      string        `yaml:"directory" doc:"Its directory. Empty: audit, in the data directory. \"off\": there is none."`
	FileBytes      Size          `yaml:"file_bytes" doc:"A larger file is rotated away."`
	Files          int           `yaml:"files" doc:"Rotated files that are kept; 0 keeps all."`
	Sync           time.Duration `yaml:"sync" doc:"How long a record may be on its way to the disk, and so be lost with the power. 0s: the record of an administrative action is on disk before the action begins, which costs it a write to disk more."`
	Administration string        `yaml:"administration" doc:"What happens to writes and administrative actions whose record cannot be written: refuse (503), or continue (counted by sluice_audit_unwritten_total). Impersonation is refused in any case."`
	Searches       string        `yaml:"searches" doc:"The same for searches; refuse makes every search wait for its record. off: searches are not recorded."`
}

// Traces says where traces go.
type Traces struct {
	Endpoint      string `yaml:"endpoint" doc:"URL of a collector, OTLP over HTTP, as http://127.0.0.1:4318/v1/traces. Empty: there are no traces."`
	SamplePercent int    `yaml:"sample_percent" doc:"Of the requests, how many. Those that need no key are never traced."`
	TrustParent   bool   `yaml:"trust_parent" doc:"A request whose header traceparent says whether it is traced is as its sender wants, whatever sample_percent. For daemons that trusted services alone can reach."`
}

// Log says what is logged and how.
type Log struct {
	Level  string `yaml:"level" doc:"debug, info, warn or error."`
	Format string `yaml:"format" doc:"text or json."`
}

// Principal is a configured identity.
type Principal struct {
	Tenant     string         `yaml:"tenant" doc:"Its tenant." example:"acme"`
	Subject    string         `yaml:"subject" doc:"Its subject; a document's reader user:SUBJECT is this." example:"alice"`
	Groups     []string       `yaml:"groups" doc:"Its groups; a document's reader group:NAME is one of these." example:"[engineering]"`
	Attributes map[string]any `yaml:"attributes" doc:"What policies see: strings, booleans, integers, lists of strings." example:"{region: EU, clearance: internal}"`
	Roles      []string       `yaml:"roles" doc:"read: search, list, get, embed. write: read, and ingest, delete, change access. admin: write, and create collections, read /metrics. No role widens what may be read; an administrator can impersonate others of the tenant, which the audit log keeps." example:"[read]"`
}

// Default returns the configuration before any file, variable or flag.
func Default() Config {
	return Config{
		Listen:      "127.0.0.1:8080",
		AdminListen: "127.0.0.1:8081",
		AdminHosts:  []string{},
		Data:        "data",
		Model:       "all-minilm-l6-v2",
		Device:      "cpu",
		Precision:   "auto",
		DenseRecall: ivf.DefaultRecall,
		Milvus:      []string{},
		MilvusDown:  "error",
		Limits: Limits{
			BodyBytes:          16 << 20,
			TotalBytes:         128 << 20,
			Connections:        4096,
			ConcurrentRequests: 256,
			BulkConcurrency:    4,
			RequestTimeout:     30 * time.Second,
			RerankTimeout:      3 * time.Second,
			ReadTimeout:        30 * time.Second,
			DrainTimeout:       20 * time.Second,
			MergeBytes:         64 << 20,
		},
		Audit:  Audit{FileBytes: 64 << 20, Files: 64, Sync: time.Second, Administration: "refuse", Searches: "continue"},
		Traces: Traces{SamplePercent: 100},
		Log:    Log{Level: "info", Format: "text"},
	}
}
