package filter_test

import (
	"bufio"
	"compress/gzip"
	"encoding/json"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"sluice/filter"
	"sluice/needs"
)

func readYAML(t *testing.T, path string, into any) {
	t.Helper()
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	require.NoError(t, yaml.Unmarshal(text, into))
}

func parseAttributes(t testing.TB, decoded map[string]any) filter.Attributes {
	t.Helper()
	attributes, err := filter.ParseAttributes(decoded)
	require.NoError(t, err)
	return attributes
}

// TestGroundedAccess reproduces labels that people wrote: for every principal
// exactly the documents of visibility.yaml, by View and by Admits.
func TestGroundedAccess(t *testing.T) {
	const root = "../eval/testdata/grounded-access"
	policies, err := filter.LoadPolicies(filepath.Join(root, "policies"))
	require.NoError(t, err)
	var labels struct{ Documents map[string]map[string]any }
	readYAML(t, filepath.Join(root, "labels-derived.yaml"), &labels)
	var principals struct{ Principals map[string]map[string]any }
	readYAML(t, filepath.Join(root, "principals.yaml"), &principals)
	var visibility struct{ Principals map[string][]string }
	readYAML(t, filepath.Join(root, "eval", "visibility.yaml"), &visibility)
	require.Len(t, visibility.Principals, 5)

	corpus := newCorpus(policies)
	for key, label := range labels.Documents {
		if label["superseded"] == true {
			continue // an old version of another document
		}
		attributes := parseAttributes(t, pick(label, "classification", "departments", "projects"))
		require.NoError(t, policies.CheckDocument(attributes), key)
		corpus.add(label["tenant"].(string), key, filter.Access{Readers: filter.Readers{Undeclared: true}, Attributes: attributes})
	}
	require.Len(t, corpus.access, 35)

	for name, claims := range principals.Principals {
		principal := filter.Principal{
			Tenant:     claims["tenant"].(string),
			Subject:    name,
			Attributes: parseAttributes(t, pick(claims, "clearance", "department", "projects", "region")),
		}
		want := slices.Sorted(slices.Values(visibility.Principals[name]))
		require.NotEmpty(t, want)
		require.Equal(t, want, corpus.visible(t, principal), name)
	}
	count, last := policies.Faults()
	require.Zero(t, count, "%v", last)
}

func pick(from map[string]any, keys ...string) map[string]any {
	picked := map[string]any{}
	for _, key := range keys {
		if value, ok := from[key]; ok {
			picked[key] = value
		}
	}
	return picked
}

// corpus is documents of several tenants with their Views.
type corpus struct {
	policies *filter.Policies
	access   map[string]filter.Access
	tenants  map[string]string // of documents
	keys     []string          // by ordinal
	changes  map[string][]filter.Change
	views    map[string]*filter.View
}

func newCorpus(p *filter.Policies) *corpus {
	return &corpus{
		policies: p, access: map[string]filter.Access{}, tenants: map[string]string{},
		changes: map[string][]filter.Change{}, views: map[string]*filter.View{},
	}
}

func (c *corpus) add(tenant, key string, a filter.Access) {
	change := filter.Change{Ordinal: uint32(len(c.keys)), Access: a}
	c.keys = append(c.keys, key)
	c.access[key], c.tenants[key] = a, tenant
	c.changes[tenant] = append(c.changes[tenant], change)
}

func (c *corpus) view(tenant string) *filter.View {
	if c.views[tenant] == nil {
		c.views[tenant] = filter.NewView(tenant, c.policies).Apply(c.changes[tenant])
	}
	return c.views[tenant]
}

// visible returns the sorted keys that the principal may read, decided twice.
func (c *corpus) visible(t *testing.T, p filter.Principal) []string {
	t.Helper()
	set, err := c.view(p.Tenant).Resolve(p)
	require.NoError(t, err)
	resolved := []string{}
	for ordinal := range set.Each {
		resolved = append(resolved, c.keys[ordinal])
	}
	admitted := []string{}
	for key, a := range c.access {
		ok, err := c.policies.Admits(p, a)
		require.NoError(t, err)
		if ok && c.tenants[key] == p.Tenant {
			admitted = append(admitted, key)
		}
	}
	slices.Sort(resolved)
	slices.Sort(admitted)
	require.Equal(t, admitted, resolved, "Admits and Resolve differ for %s", p.Subject)
	return resolved
}

// TestKEPs checks the readers of 649 real proposals for 1,515 real people
// against the rule of the data set, evaluated independently here, and against
// the statistics that its notice publishes.
func TestKEPs(t *testing.T) {
	root := needs.Data(t, "kubernetes-keps")
	type kep struct {
		Dir, Title                          string
		SIGs, Authors, Reviewers, Approvers []string
	}
	type member struct {
		User string
		SIGs []string
	}
	keps, members := readJSONLines[kep](t, filepath.Join(root, "kep-meta.jsonl")), readJSONLines[member](t, filepath.Join(root, "principals.jsonl"))
	require.Len(t, keps, 649)
	require.Len(t, members, 1515)

	policies := starter(t)
	view := filter.NewView("kubernetes", policies)
	access := make([]filter.Access, len(keps))
	people := make([][]string, len(keps))
	for i, k := range keps {
		people[i] = slices.Concat(k.Authors, k.Reviewers, k.Approvers)
		readers, err := filter.ParseReaders(slices.Concat(prefixed("group:", k.SIGs), prefixed("user:", people[i])))
		require.NoError(t, err)
		access[i] = filter.Access{Readers: readers}
		view = view.Apply([]filter.Change{{Ordinal: uint32(i), Access: access[i]}})
	}

	var counts []int
	decisions := 0
	for _, m := range members {
		principal := filter.Principal{Tenant: "kubernetes", Subject: m.User, Groups: m.SIGs}
		set, err := view.Resolve(principal)
		require.NoError(t, err)
		for i, k := range keps {
			want := intersects(m.SIGs, k.SIGs) || slices.Contains(people[i], m.User)
			if want != set.Contains(uint32(i)) {
				t.Fatalf("%s reads %s: want %v", m.User, k.Dir, want)
			}
			decisions++
		}
		if len(m.SIGs) > 0 {
			counts = append(counts, set.Len())
		}
	}
	slices.Sort(counts)
	require.Equal(t, 1515*649, decisions)
	require.Len(t, counts, 606)
	t.Logf("documents per member of a group: min %d, median %d, p90 %d, max %d", counts[0], counts[303], counts[545], counts[605])
	require.Equal(t, []int{0, 51, 187, 483}, []int{counts[0], counts[303], counts[545], counts[605]})
}

func readJSONLines[T any](t *testing.T, path string) []T {
	t.Helper()
	file, err := os.Open(path)
	require.NoError(t, err)
	defer file.Close()
	var lines []T
	decoder := json.NewDecoder(bufio.NewReader(file))
	for {
		var line T
		if err := decoder.Decode(&line); err == io.EOF {
			return lines
		} else {
			require.NoError(t, err)
		}
		lines = append(lines, line)
	}
}

func prefixed(prefix string, names []string) []string {
	out := make([]string, len(names))
	for i, name := range names {
		out[i] = prefix + name
	}
	return out
}

func intersects(a, b []string) bool {
	return slices.ContainsFunc(a, func(s string) bool { return slices.Contains(b, s) })
}

// TestAmericasLarge takes a real access matrix as reader lists: 10,127
// documents, 3,485 users, 185,294 pairs, and gives every pair back.
func TestAmericasLarge(t *testing.T) {
	permissions := readMatrix(t, needs.Data(t, "hp-rbac/americas_large.tsv.gz"))
	require.Len(t, permissions, 10127)
	names := slices.Sorted(maps.Keys(permissions))
	documents := map[string][]uint32{}
	var changes []filter.Change
	pairs := 0
	for i, name := range names {
		readers, err := filter.ParseReaders(prefixed("user:", permissions[name]))
		require.NoError(t, err)
		changes = append(changes, filter.Change{Ordinal: uint32(i), Access: filter.Access{Readers: readers}})
		for _, user := range permissions[name] {
			documents[user] = append(documents[user], uint32(i))
			pairs++
		}
	}
	require.Len(t, documents, 3485)
	require.Equal(t, 185294, pairs)
	view := filter.NewView("hp", starter(t)).Apply(changes)
	for user, want := range documents {
		set, err := view.Resolve(filter.Principal{Tenant: "hp", Subject: user})
		require.NoError(t, err)
		require.True(t, filter.SetOf(want...).Equal(set), "user %s", user)
	}
}

func readMatrix(t *testing.T, path string) map[string][]string {
	t.Helper()
	file, err := os.Open(path)
	require.NoError(t, err)
	defer file.Close()
	unzipped, err := gzip.NewReader(file)
	require.NoError(t, err)
	usersOf := map[string][]string{}
	scanner := bufio.NewScanner(unzipped)
	for scanner.Scan() {
		user, permission, ok := strings.Cut(scanner.Text(), "\t")
		require.True(t, ok)
		usersOf[permission] = append(usersOf[permission], user)
	}
	require.NoError(t, scanner.Err())
	return usersOf
}

func starter(t testing.TB) *filter.Policies {
	t.Helper()
	policies, err := filter.StarterPolicies()
	require.NoError(t, err)
	return policies
}
