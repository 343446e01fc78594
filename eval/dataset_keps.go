package eval

import (
	"archive/tar"
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/ulikunitz/xz"
)

type kep struct {
	Dir       string   `json:"dir"`
	Title     string   `json:"title"`
	SIGs      []string `json:"sigs"`
	Authors   []string `json:"authors"`
	Reviewers []string `json:"reviewers"`
	Approvers []string `json:"approvers"`
}

type kepMember struct {
	User string   `json:"user"`
	SIGs []string `json:"sigs"`
}

type kepCitation struct {
	ID       string   `json:"id"`
	Text     string   `json:"text"`
	Exclude  []string `json:"exclude"`
	Relevant []string `json:"relevant"`
}

const (
	kepTenant = "kubernetes"
	// kepAllSIGs is a principal made for the evaluation: it is in every group that
	// any document names, so that every citation can be found.
	kepAllSIGs = "all-sigs"
	// kepDepth leaves ten documents after the citing one is taken out and
	// several passages of one document are counted as one.
	kepDepth = 50
)

// loadKEPs reads the newest snapshot of the Kubernetes Enhancement Proposals.
// Their readers are the groups of their SIGs and the users who wrote, reviewed or
// approved them. Each citation is asked by the principal all-sigs (split "test")
// and by three real members (split "members"): those who see the most documents,
// as many as nine in ten members see at most, and the median.
func loadKEPs(dir string) (*Dataset, error) {
	keps, err := readLines[kep](filepath.Join(dir, "kep-meta.jsonl"))
	if err != nil {
		return nil, err
	}
	members, err := readLines[kepMember](filepath.Join(dir, "principals.jsonl"))
	if err != nil {
		return nil, err
	}
	citations, err := readLines[kepCitation](filepath.Join(dir, "queries-citations.jsonl"))
	if err != nil {
		return nil, err
	}
	files, snapshot, err := newestSnapshot(dir)
	if err != nil {
		return nil, err
	}
	d := &Dataset{
		Name: "kubernetes-keps", Matching: WholeDocument, Depth: kepDepth, Visible: map[string]map[string]uint32{},
		Notes: []string{"snapshot " + snapshot, "weak labels: the cited proposal is relevant, others may be too"},
	}
	keys, err := d.addKEPs(keps, files)
	if err != nil {
		return nil, err
	}
	d.addMembers(members)
	d.addCitations(citations, keys)
	return d, nil
}

// newestSnapshot reads the Markdown files of the snapshot with the latest date
// in its name, by path.
func newestSnapshot(dir string) (map[string]kepFile, string, error) {
	snapshots, err := filepath.Glob(filepath.Join(dir, "keps-*.tar.xz"))
	if err != nil {
		return nil, "", err
	}
	if len(snapshots) == 0 {
		return nil, "", fmt.Errorf("no snapshot keps-*.tar.xz in %s", dir)
	}
	newest := slices.Max(snapshots)
	file, err := os.Open(newest)
	if err != nil {
		return nil, "", err
	}
	defer file.Close()
	files, err := readTarXZ(file)
	if err != nil {
		return nil, "", fmt.Errorf("reading %s: %w", newest, err)
	}
	return files, strings.TrimSuffix(filepath.Base(newest), ".tar.xz"), nil
}

// maxSnapshot bounds an unpacked archive.
const maxSnapshot = 512 << 20

// kepFile is a file of a snapshot. Home is its own path, or for a symbolic link
// the path that it points at: eight proposals have such a second name.
type kepFile struct {
	text string
	home string
}

// readTarXZ returns the Markdown files of an archive by path, links followed.
func readTarXZ(r io.Reader) (map[string]kepFile, error) {
	unpacked, err := xz.NewReader(r)
	if err != nil {
		return nil, err
	}
	archive := tar.NewReader(io.LimitReader(unpacked, maxSnapshot))
	files := map[string]kepFile{}
	links := map[string]string{}
	for {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return files, follow(files, links)
		}
		if err != nil {
			return nil, err
		}
		name := path.Clean(header.Name)
		if path.Ext(name) != ".md" {
			continue
		}
		if header.Typeflag == tar.TypeSymlink {
			links[name] = path.Join(path.Dir(name), header.Linkname)
			continue
		}
		text, err := readBounded(archive, name)
		if err != nil {
			return nil, err
		}
		files[name] = kepFile{text: string(text), home: name}
	}
}

// follow adds a file for every link.
func follow(files map[string]kepFile, links map[string]string) error {
	for name, target := range links {
		file, ok := files[target]
		if !ok {
			return fmt.Errorf("%s is a link to %s, which is not in the archive", name, target)
		}
		files[name] = file
	}
	return nil
}

// addKEPs makes every file a document of the proposal whose directory it is in,
// and returns the keys by directory. A file outside all proposals is its SIG's:
// "keps/<sig>/…".
func (d *Dataset) addKEPs(keps []kep, files map[string]kepFile) (map[string][]string, error) {
	byDir := map[string]kep{}
	for _, k := range keps {
		byDir[k.Dir] = k
	}
	keys := map[string][]string{}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		parts := strings.SplitN(name, "/", 3)
		if len(parts) < 3 {
			return nil, fmt.Errorf("the snapshot holds %s, not keps/<sig>/…", name)
		}
		k, ok := kepOf(byDir, files[name].home)
		if !ok {
			k = kep{SIGs: parts[1:2]}
		}
		keys[k.Dir] = append(keys[k.Dir], name)
		d.Documents = append(d.Documents, k.document(name, files[name].text))
	}
	return keys, nil
}

func (k kep) document(name, text string) Document {
	readers := k.readers()
	return Document{
		Tenant: kepTenant, Key: name, Version: 1, Title: k.Title,
		Format: "markdown", Text: text, Readers: &readers,
	}
}

func kepOf(byDir map[string]kep, name string) (kep, bool) {
	for dir := path.Dir(name); dir != "."; dir = path.Dir(dir) {
		if k, ok := byDir[dir]; ok {
			return k, true
		}
	}
	return kep{}, false
}

func (k kep) readers() []string {
	var readers []string
	for _, sig := range k.SIGs {
		readers = append(readers, "group:"+sig)
	}
	for _, user := range slices.Concat(k.Authors, k.Reviewers, k.Approvers) {
		readers = append(readers, "user:"+user)
	}
	slices.Sort(readers)
	return slices.Compact(readers)
}

func (d *Dataset) addMembers(members []kepMember) {
	d.addPrincipal(Principal{Name: kepAllSIGs, Tenant: kepTenant, Groups: d.groups(), Roles: []string{"read"}})
	for _, m := range d.chosen(members) {
		d.addPrincipal(m.principal())
	}
}

func (d *Dataset) addPrincipal(p Principal) {
	d.Principals = append(d.Principals, p)
	d.Visible[p.Name] = d.visibleByReaders(p)
}

func (m kepMember) principal() Principal {
	return Principal{Name: m.User, Tenant: kepTenant, Groups: m.SIGs, Roles: []string{"read"}}
}

// groups lists every group that a document names as a reader.
func (d *Dataset) groups() []string {
	set := map[string]bool{}
	for _, doc := range d.Documents {
		for _, reader := range *doc.Readers {
			if group, ok := strings.CutPrefix(reader, "group:"); ok {
				set[group] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(set))
}

// chosen returns, of the members of a SIG ordered by how many documents they
// see, the last, the one at nine tenths and the middle one.
func (d *Dataset) chosen(members []kepMember) []kepMember {
	inSIG := slices.DeleteFunc(slices.Clone(members), func(m kepMember) bool { return len(m.SIGs) == 0 })
	sees := map[string]int{}
	for _, m := range inSIG {
		sees[m.User] = len(d.visibleByReaders(m.principal()))
	}
	slices.SortFunc(inSIG, func(a, b kepMember) int {
		return cmp.Or(cmp.Compare(sees[a.User], sees[b.User]), cmp.Compare(a.User, b.User))
	})
	n := len(inSIG)
	if n == 0 {
		return nil
	}
	return []kepMember{inSIG[n-1], inSIG[n*9/10], inSIG[n/2]}
}

// visibleByReaders applies the rule of NOTICE.txt: a member's SIGs meet the
// proposal's, or the member is an author, a reviewer or an approver.
func (d *Dataset) visibleByReaders(p Principal) map[string]uint32 {
	admits := map[string]bool{"user:" + p.Name: true}
	for _, group := range p.Groups {
		admits["group:"+group] = true
	}
	visible := map[string]uint32{}
	for _, doc := range d.Documents {
		if slices.ContainsFunc(*doc.Readers, func(r string) bool { return admits[r] }) {
			visible[doc.Key] = doc.Version
		}
	}
	return visible
}

func (d *Dataset) addCitations(citations []kepCitation, keys map[string][]string) {
	for _, c := range citations {
		for _, p := range d.Principals {
			d.Cases = append(d.Cases, c.asCase(p.Name, d.Visible[p.Name], keys))
		}
	}
}

// asCase counts as evidence the cited proposals that the principal may read, and
// as unauthorized those it may not.
func (c kepCitation) asCase(principal string, visible map[string]uint32, keys map[string][]string) Case {
	asked := Case{ID: c.ID + "/" + principal, Split: "members", Query: c.Text, Principal: principal, Tags: []string{principal}}
	if principal == kepAllSIGs {
		asked.Split = "test"
	}
	for _, dir := range c.Exclude {
		asked.Exclude = append(asked.Exclude, keys[dir]...)
	}
	for _, dir := range c.Relevant {
		readable := slices.DeleteFunc(slices.Clone(keys[dir]), func(key string) bool { return visible[key] == 0 })
		if len(readable) > 0 {
			asked.Evidence = append(asked.Evidence, Evidence{Documents: readable, Version: 1})
		} else {
			asked.Unauthorized = append(asked.Unauthorized, keys[dir]...)
		}
	}
	return asked
}
