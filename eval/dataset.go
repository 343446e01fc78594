// Package eval is the gate: it drives the public API as the principals of a
// labelled data set and checks, before anything else, that nobody is shown what
// people say they may not see; then how well the rest is ranked.
// docs/evaluation.md says what is checked and how the figures are defined.
package eval

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"time"

	"sluice/client"
)

// Dataset is a labelled data set in one form, whatever its source.
type Dataset struct {
	Name       string
	Documents  []Document // every version, older versions before newer ones
	Principals []Principal
	Cases      []Case
	// Visible holds, per principal name, the documents it may list, with their
	// current version. It comes from people or from the source's own ownership
	// records, never from the code under test.
	Visible  map[string]map[string]uint32
	Matching Matching
	Cutoffs  []int     // further k for Recall@k and nDCG@k
	Depth    int       // results asked for in each search
	Notes    []string  // what the loader left out, for the report
	Policies string    `json:"-"` // directory of Cedar policies; "" for the starter set
	tenants  []string  // in place of those that the documents name; nil: those
	Planted  []Planted `json:"-"` // what documents tell language models to say
}

// Planted is an instruction to language models in a document: what it wants
// said, and the mark of an answer that says so.
type Planted struct{ Text, Mark string }

// Document is one version of one document.
type Document struct {
	Tenant     string
	Key        string
	Version    uint32
	Title      string
	Format     string
	Text       string
	Readers    *[]string // as in client.Document
	Attributes map[string]any
	Regions    []string
	ValidFrom  *time.Time
	ValidUntil *time.Time
}

// Principal is one who asks. Attributes leave out what is null; the region, if
// there is one, is among them.
type Principal struct {
	Name       string // the subject
	Tenant     string
	Groups     []string
	Attributes map[string]any
	Roles      []string // "read", "write", "admin"
}

// region is the principal's own region, "" for none.
func (p Principal) region() string {
	region, _ := p.Attributes["region"].(string)
	return region
}

// Case is one question of one principal. A case without evidence must find
// nothing forbidden; its ranking is not judged.
type Case struct {
	ID           string
	Split        string
	Query        string
	Principal    string
	Evidence     []Evidence
	Unauthorized []string // documents that must not appear: access
	OutOfScope   []string // documents that must not appear: region or validity
	Region       *string  // nil: the principal's own
	AsOf         *time.Time
	Exclude      []string // documents taken out before ranks are counted
	Tags         []string
	Facts        []string `json:",omitempty"` // that an answer says; none: the quotes
}

// Evidence is one item that answers a case: a quote in a version of a document,
// or, with no Quote, any of the Documents as a whole.
type Evidence struct {
	Documents []string
	Version   uint32
	Quote     string
	// Occurrence tells places apart where a quote occurs more than once: the n-th.
	Occurrence int `json:",omitempty"`
}

// Matching says how a result is compared with the evidence.
type Matching string

// Ways of matching.
const (
	Verbatim      Matching = "verbatim"       // the quote occurs as it stands
	Folded        Matching = "folded"         // the quote's letters and digits occur in this order
	WholeDocument Matching = "whole-document" // any passage of the document; ranks count documents
)

// maxFile bounds every data set file that is read into memory.
const maxFile = 64 << 20

// Load reads the data set in dir; the files in it tell which one it is.
func Load(dir string) (*Dataset, error) {
	loaders := []struct {
		marker string
		load   func(dir string) (*Dataset, error)
	}{
		{"labels-derived.yaml", loadGroundedAccess},
		{"documents.jsonl", loadOwn},
		{"corpus.jsonl", loadBEIR},
		{"questions_df.csv", loadChunking},
		{"kep-meta.jsonl", loadKEPs},
		{"queries.jsonl", loadMultiCorpus},
	}
	for _, l := range loaders {
		if _, err := os.Stat(filepath.Join(dir, l.marker)); err != nil {
			continue
		}
		d, err := l.load(dir)
		if err != nil {
			return nil, fmt.Errorf("loading data set %s: %w", dir, err)
		}
		if err := d.validate(); err != nil {
			return nil, fmt.Errorf("data set %s is refused: %w", dir, err)
		}
		return d, nil
	}
	return nil, fmt.Errorf("%s holds no known data set: give the directory of grounded-access, rag-multi-corpus, kubernetes-keps, chunking-evaluation, a data set in BEIR's format, or one of your own with documents.jsonl, principals.jsonl and cases.jsonl", dir)
}

// Digest identifies the content: every document, principal, case and label.
func (d *Dataset) Digest() (string, error) {
	data, err := json.Marshal(d)
	if err != nil {
		return "", fmt.Errorf("digest of data set %s: %w", d.Name, err)
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:]), nil
}

// Select returns the cases of one split, all of them for "".
func (d *Dataset) Select(split string) ([]Case, error) {
	if split == "" {
		return d.Cases, nil
	}
	var splits []string
	var selected []Case
	for _, c := range d.Cases {
		if c.Split == split {
			selected = append(selected, c)
		}
		if !slices.Contains(splits, c.Split) {
			splits = append(splits, c.Split)
		}
	}
	if len(selected) == 0 {
		return nil, fmt.Errorf("data set %s has no split %q, only %q", d.Name, split, splits)
	}
	return selected, nil
}

func (d *Dataset) principal(name string) (Principal, bool) {
	i := slices.IndexFunc(d.Principals, func(p Principal) bool { return p.Name == name })
	if i < 0 {
		return Principal{}, false
	}
	return d.Principals[i], true
}

// current returns the newest version of every document of a tenant by key.
func (d *Dataset) current(tenant string) map[string]Document {
	newest := map[string]Document{}
	for _, doc := range d.Documents {
		if doc.Tenant == tenant && doc.Version >= newest[doc.Key].Version {
			newest[doc.Key] = doc
		}
	}
	return newest
}

// Current yields the newest version of each of a tenant's documents, in the
// order of the data set, as they are written.
func (d *Dataset) Current(tenant string) iter.Seq2[client.Document, error] {
	newest := d.current(tenant)
	return func(yield func(client.Document, error) bool) {
		for _, doc := range d.Documents {
			if doc.Tenant == tenant && doc.Version == newest[doc.Key].Version && !yield(doc.wire(), nil) {
				return
			}
		}
	}
}

// Tenants, in the order in which the documents name them.
func (d *Dataset) Tenants() []string {
	names := slices.Clone(d.tenants)
	for _, doc := range d.Documents {
		if !slices.Contains(names, doc.Tenant) {
			names = append(names, doc.Tenant)
		}
	}
	return names
}

// wire is the document as the API takes it.
func (doc Document) wire() client.Document {
	return client.Document{
		Key: doc.Key, Title: doc.Title, Format: doc.Format, Text: doc.Text,
		Readers: doc.Readers, Attributes: doc.Attributes,
		Regions: doc.Regions, ValidFrom: doc.ValidFrom, ValidUntil: doc.ValidUntil,
	}
}

// applies reports whether the document applies in a region ("" for none) at a
// time. It is written apart from the product's own rule, which it judges.
func (doc Document) applies(region string, at time.Time) bool {
	if len(doc.Regions) > 0 && !slices.Contains(doc.Regions, region) {
		return false
	}
	if doc.ValidFrom != nil && at.Before(*doc.ValidFrom) {
		return false
	}
	return doc.ValidUntil == nil || at.Before(*doc.ValidUntil)
}
