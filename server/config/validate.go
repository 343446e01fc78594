package config

import (
	"cmp"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strings"
	"time"

	"sluice/gpu/cuda"
	"sluice/index/local"
)

var roles = []string{"read", "write", "admin"}

// EnsureDefaults fills in what depends on other settings.
func (c *Config) EnsureDefaults() {
	if jwt := c.Auth.JWT; jwt != nil {
		fill(&jwt.Claims.Tenant, "tenant")
		fill(&jwt.Claims.Subject, "sub")
		fill(&jwt.Claims.Groups, "groups")
		fill(&jwt.Claims.Roles, "roles")
	}
	if c.Answer != nil {
		c.Answer.ensureDefaults()
	}
}

func (a *Answer) ensureDefaults() {
	a.Timeout = cmp.Or(a.Timeout, 20*time.Second)
	a.ContextTokens = cmp.Or(a.ContextTokens, 4000)
	if relevance := 0.5; a.Relevance == nil {
		a.Relevance = &relevance
	}
}

func fill(s *string, value string) {
	if *s == "" {
		*s = value
	}
}

// Validate reports everything that is wrong, not only the first thing.
func (c Config) Validate() error {
	return errors.Join(
		address("listen", c.Listen),
		c.validateAdmin(),
		required("data", c.Data),
		c.validateStore(),
		required("model", c.Model),
		c.validateDevice(),
		c.validateRecall(),
		c.validateMilvus(),
		c.TLS.validate(),
		c.Limits.validate(),
		c.Auth.validate(c.Demo.Enabled),
		c.Demo.validate(),
		c.Audit.validate(),
		c.Planner.validate(),
		c.Answer.validate(c.Limits.RequestTimeout),
		c.Traces.validate(),
		oneOf("log.level", c.Log.Level, "debug", "info", "warn", "error"),
		oneOf("log.format", c.Log.Format, "text", "json"),
	)
}

func (c Config) validateAdmin() error {
	if c.AdminListen == "off" {
		return nil
	}
	return address("admin_listen", c.AdminListen)
}

// validateStore repeats nothing of the URL: it may hold a password.
func (c Config) validateStore() error {
	if c.StoreStaleness < 0 {
		return errors.New("store_staleness: must not be negative")
	}
	if c.Store == "" || strings.HasPrefix(c.Store, "postgres://") || strings.HasPrefix(c.Store, "postgresql://") {
		return nil
	}
	return errors.New("store: is not a URL that begins with postgres://")
}

func (c Config) validateDevice() error {
	precisions := map[string][]string{
		"auto": {"auto", "bf16"}, "cpu": {"auto", "f32", "bf16", "int8"}, "cuda": {"auto", "bf16"}, "gorgonia": {"auto", "f32"},
	}
	kind, list, some := strings.Cut(c.Device, ":")
	allowed, known := precisions[kind]
	if !known || some && kind != "cuda" {
		return oneOf("device", c.Device, "auto", "cpu", "cuda", "cuda:0,1", "gorgonia")
	}
	if some {
		if _, err := cuda.ParseOrdinals(list); err != nil {
			return fmt.Errorf("device: %w", err)
		}
	}
	if err := oneOf("precision", c.Precision, allowed...); err != nil {
		return fmt.Errorf("%w, with device %s", err, c.Device)
	}
	return nil
}

func (c Config) validateRecall() error {
	if !(c.DenseRecall >= local.LeastRecall && c.DenseRecall <= local.MostRecall) {
		return fmt.Errorf("dense_recall: must be from %g to %g", local.LeastRecall, local.MostRecall)
	}
	return nil
}

func (c Config) validateMilvus() error {
	errs := []error{oneOf("milvus_down", c.MilvusDown, "error", "degrade")}
	for i, server := range c.Milvus {
		errs = append(errs, address(fmt.Sprintf("milvus[%d]", i), server))
		if slices.Contains(c.Milvus[:i], server) {
			errs = append(errs, fmt.Errorf("milvus[%d]: %s is named twice", i, server))
		}
	}
	return errors.Join(errs...)
}

func address(name, value string) error {
	if _, _, err := net.SplitHostPort(value); err != nil {
		return fmt.Errorf("%s: %q is not host:port", name, value)
	}
	return nil
}

func required(name, value string) error {
	if value == "" {
		return fmt.Errorf("%s: must not be empty", name)
	}
	return nil
}

func oneOf(name, value string, allowed ...string) error {
	if !slices.Contains(allowed, value) {
		return fmt.Errorf("%s: %q is not one of %s", name, value, strings.Join(allowed, ", "))
	}
	return nil
}

func (t TLS) validate() error {
	if (t.Cert == "") != (t.Key == "") {
		return errors.New("tls: cert and key go together")
	}
	return nil
}

func (t Traces) validate() error {
	if t.SamplePercent < 0 || t.SamplePercent > 100 {
		return errors.New("traces.sample_percent: must be between 0 and 100")
	}
	if t.Endpoint == "" {
		return nil
	}
	return httpURL("traces.endpoint", t.Endpoint)
}

func (p *Planner) validate() error {
	if p == nil {
		return nil
	}
	return errors.Join(required("planner.url", p.URL), required("planner.model", p.Model))
}

func (a *Answer) validate(whole time.Duration) error {
	if a == nil {
		return nil
	}
	errs := []error{httpURL("answer.base_url", a.BaseURL), required("answer.model", a.Model), positive("answer.timeout", int64(a.Timeout)), positive("answer.context_tokens", int64(a.ContextTokens))}
	if a.Timeout >= whole {
		errs = append(errs, errors.New("answer.timeout: must be less than limits.request_timeout, or no time is left to send the passages"))
	}
	if a.Relevance != nil && (*a.Relevance < 0 || *a.Relevance > 1) || a.PromptPrice < 0 || a.CompletionPrice < 0 {
		errs = append(errs, errors.New("answer: relevance is a number from 0 to 1, and prices are not negative"))
	}
	return errors.Join(errs...)
}

func (a Audit) validate() error {
	err := positive("audit.file_bytes", int64(a.FileBytes))
	if a.Files < 0 || a.Sync < 0 {
		err = errors.Join(err, errors.New("audit: files and sync must not be negative"))
	}
	return errors.Join(err,
		oneOf("audit.administration", a.Administration, "refuse", "continue"),
		oneOf("audit.searches", a.Searches, "refuse", "continue", "off"),
	)
}

func (l Limits) validate() error {
	return errors.Join(
		positive("limits.body_bytes", int64(l.BodyBytes)),
		l.validateTotal(),
		l.validateTenants(),
		positive("limits.connections", int64(l.Connections)),
		positive("limits.concurrent_requests", int64(l.ConcurrentRequests)),
		positive("limits.bulk_concurrency", int64(l.BulkConcurrency)),
		positive("limits.request_timeout", int64(l.RequestTimeout)),
		positive("limits.rerank_timeout", int64(l.RerankTimeout)),
		positive("limits.read_timeout", int64(l.ReadTimeout)),
		positive("limits.drain_timeout", int64(l.DrainTimeout)),
		positive("limits.merge_bytes", int64(l.MergeBytes)),
	)
}

func (l Limits) validateTotal() error {
	if l.TotalBytes < l.BodyBytes {
		return errors.New("limits.total_bytes: must not be less than limits.body_bytes")
	}
	return nil
}

func (l Limits) validateTenants() error {
	var errs []error
	for name, t := range l.Tenants {
		if t.ConcurrentRequests < 0 || t.IngestBytesPerSecond < 0 || !(t.SearchesPerSecond >= 0) {
			errs = append(errs, fmt.Errorf("limits.tenants.%s: must not be negative", name))
		}
	}
	return errors.Join(errs...)
}

func positive(name string, n int64) error {
	if n <= 0 {
		return fmt.Errorf("%s: must be greater than zero", name)
	}
	return nil
}

func (a Auth) validate(demo bool) error {
	if a.JWT == nil && len(a.APIKeys) == 0 && !demo {
		return errors.New("auth: nobody could sign in; configure auth.jwt or auth.api_keys, or try things out with --demo")
	}
	var errs []error
	if a.JWT != nil {
		errs = append(errs, a.JWT.validate())
	}
	names := map[string]bool{}
	for i, k := range a.APIKeys {
		where := fmt.Sprintf("auth.api_keys[%d]", i)
		if names[k.Name] {
			errs = append(errs, fmt.Errorf("%s.name: %q is taken", where, k.Name))
		}
		names[k.Name] = true
		errs = append(errs, k.validate(where))
	}
	return errors.Join(errs...)
}

func (j JWT) validate() error {
	errs := []error{required("auth.jwt.issuer", j.Issuer), required("auth.jwt.audience", j.Audience)}
	if len(j.Keys) == 0 && j.JWKSFile == "" && j.JWKSURL == "" {
		errs = append(errs, errors.New("auth.jwt: one of keys, jwks_file and jwks_url is needed"))
	}
	if j.JWKSURL != "" {
		errs = append(errs, httpURL("auth.jwt.jwks_url", j.JWKSURL))
	}
	for i, k := range j.Keys {
		where := fmt.Sprintf("auth.jwt.keys[%d]", i)
		errs = append(errs, required(where+".id", k.ID), required(where+".file", k.File),
			oneOf(where+".algorithm", k.Algorithm, "HS256", "RS256", "EdDSA"))
	}
	if j.DefaultRole != "" {
		errs = append(errs, oneOf("auth.jwt.default_role", j.DefaultRole, roles...))
	}
	if j.Leeway < 0 {
		errs = append(errs, errors.New("auth.jwt.leeway: must not be negative"))
	}
	return errors.Join(errs...)
}

func httpURL(name, value string) error {
	u, err := url.Parse(value)
	if err != nil || u.Host == "" || (u.Scheme != "https" && u.Scheme != "http") {
		return fmt.Errorf("%s: %q is not an http(s) URL", name, value)
	}
	return nil
}

func (k APIKey) validate(where string) error {
	digits, ok := strings.CutPrefix(k.Hash, "sha256:")
	sum, err := hex.DecodeString(digits)
	if !ok || err != nil || len(sum) != 32 {
		err = fmt.Errorf("%s.hash: expected sha256: and 64 hexadecimal digits", where)
	}
	return errors.Join(required(where+".name", k.Name), err, k.Principal.validate(where))
}

func (d Demo) validate() error {
	if len(d.Principals) > 0 && !d.Enabled {
		return errors.New("demo.principals: anybody could be any of them; start with --demo, or remove them")
	}
	var errs []error
	for name, p := range d.Principals {
		errs = append(errs, p.validate("demo.principals."+name))
	}
	return errors.Join(errs...)
}

func (p Principal) validate(where string) error {
	errs := []error{required(where+".tenant", p.Tenant), required(where+".subject", p.Subject)}
	if len(p.Roles) == 0 {
		errs = append(errs, fmt.Errorf("%s.roles: needs one of %s", where, strings.Join(roles, ", ")))
	}
	for _, r := range p.Roles {
		errs = append(errs, oneOf(where+".roles", r, roles...))
	}
	return errors.Join(errs...)
}
