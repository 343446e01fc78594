package eval

import (
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// ownDocument is a line of documents.jsonl. A key that comes again is its next
// version.
type ownDocument struct {
	Tenant     string         `json:"tenant"`
	Key        string         `json:"key"`
	Title      string         `json:"title"`
	Format     string         `json:"format"`
	Text       string         `json:"text"`
	Readers    *[]string      `json:"readers"`
	Attributes map[string]any `json:"attributes"`
	Regions    []string       `json:"regions"`
	ValidFrom  *time.Time     `json:"valid_from"`
	ValidUntil *time.Time     `json:"valid_until"`
}

// ownPrincipal is a line of principals.jsonl, with the keys of what people say
// the principal may see.
type ownPrincipal struct {
	Name       string         `json:"name"`
	Tenant     string         `json:"tenant"`
	Groups     []string       `json:"groups"`
	Attributes map[string]any `json:"attributes"`
	Visible    []string       `json:"visible"`
}

// ownCase is a line of cases.jsonl. A case without evidence must find nothing
// forbidden.
type ownCase struct {
	ID           string             `json:"id"`
	Split        string             `json:"split"`
	Query        string             `json:"query"`
	Principal    string             `json:"principal"`
	Evidence     []groundedEvidence `json:"evidence"`
	Unauthorized []string           `json:"unauthorized_documents"`
	OutOfScope   []string           `json:"out_of_scope_documents"`
	Region       *string            `json:"region"`
	AsOf         *time.Time         `json:"as_of"`
	Tags         []string           `json:"tags"`
}

// loadOwn reads a data set of one's own: documents.jsonl, principals.jsonl and
// cases.jsonl, and Cedar policies where there is a directory policies. Quotes are
// compared by letters and digits.
func loadOwn(dir string) (*Dataset, error) {
	d := &Dataset{Name: filepath.Base(dir), Matching: Folded, Depth: 10, Visible: map[string]map[string]uint32{}}
	if info, err := os.Stat(filepath.Join(dir, "policies")); err == nil && info.IsDir() {
		d.Policies = filepath.Join(dir, "policies")
	}
	documents, err := readStrict[ownDocument](filepath.Join(dir, "documents.jsonl"))
	if err != nil {
		return nil, err
	}
	versions := map[string]uint32{}
	for _, doc := range documents {
		versions[textKey(doc.Tenant, doc.Key)]++
		d.Documents = append(d.Documents, Document{
			Tenant: doc.Tenant, Key: doc.Key, Version: versions[textKey(doc.Tenant, doc.Key)], Title: doc.Title, Format: doc.Format, Text: doc.Text,
			Readers: doc.Readers, Attributes: doc.Attributes, Regions: doc.Regions, ValidFrom: doc.ValidFrom, ValidUntil: doc.ValidUntil,
		})
	}
	principals, err := readStrict[ownPrincipal](filepath.Join(dir, "principals.jsonl"))
	if err != nil {
		return nil, err
	}
	for _, p := range principals {
		d.Principals = append(d.Principals, Principal{Name: p.Name, Tenant: p.Tenant, Groups: p.Groups, Attributes: p.Attributes, Roles: []string{"read"}})
		visible := map[string]uint32{}
		for _, key := range p.Visible {
			if visible[key] = versions[textKey(p.Tenant, key)]; visible[key] == 0 {
				return nil, fmt.Errorf("principal %s is said to see %s, which tenant %s does not have", p.Name, key, p.Tenant)
			}
		}
		d.Visible[p.Name] = visible
	}
	cases, err := readStrict[ownCase](filepath.Join(dir, "cases.jsonl"))
	for _, c := range cases {
		d.Cases = append(d.Cases, Case{
			ID: c.ID, Split: c.Split, Query: c.Query, Principal: c.Principal, Evidence: groundedCase{Evidence: c.Evidence}.evidence(),
			Unauthorized: c.Unauthorized, OutOfScope: c.OutOfScope, Region: c.Region, AsOf: c.AsOf, Tags: c.Tags,
		})
	}
	return d, err
}
