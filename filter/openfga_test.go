package filter_test

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"sluice/filter"
	"sluice/needs"
)

// fgaStore is a published relationship model with tuples and what must come of them.
type fgaStore struct {
	Model     string
	ModelFile string `yaml:"model_file"`
	Tuples    []fgaTuple
	Tests     []struct {
		Tuples []fgaTuple
		Check  []struct {
			User, Object string
			Assertions   map[string]bool
		}
		ListObjects []struct {
			User, Type string
			Assertions map[string][]string
		} `yaml:"list_objects"`
	}
}

type fgaTuple struct {
	User, Relation, Object string
	Condition              any
}

var (
	fgaType   = regexp.MustCompile(`^\s*type (\S+)`)
	fgaDefine = regexp.MustCompile(`^\s*define (\w+)\s*:\s*(.*)$`)
	fgaDirect = regexp.MustCompile(`\[[^\]]*\]`)
	// What is not a union of relations cannot be said by readers and groups in groups.
	fgaBeyond = regexp.MustCompile(`(?m)^[^#\n]*(\sand\s|\sbut not\s|\bwith\b)|^condition`)
)

// rewrites of a model: type, relation and the other relations it takes over,
// each by itself or "from" another.
func rewrites(model string) map[string]map[string][]string {
	all, typ := map[string]map[string][]string{}, ""
	for line := range strings.Lines(model) {
		line, _, _ = strings.Cut(strings.TrimRight(line, "\n"), " #")
		if m := fgaType.FindStringSubmatch(line); m != nil {
			typ = m[1]
			all[typ] = map[string][]string{}
		} else if m := fgaDefine.FindStringSubmatch(line); m != nil {
			all[typ][m[1]] = []string{}
			for _, term := range strings.Split(fgaDirect.ReplaceAllString(m[2], ""), " or ") {
				if term = strings.TrimSpace(term); term != "" {
					all[typ][m[1]] = append(all[typ][m[1]], term)
				}
			}
		}
	}
	return all
}

// fgaGroups turns usersets, such as folder:a#viewer, into groups in groups.
func fgaGroups(model map[string]map[string][]string, tuples []fgaTuple) (parents map[string][]string, objects map[string]bool) {
	parents, objects = map[string][]string{}, map[string]bool{}
	for _, t := range tuples {
		objects[t.Object] = true
		if user, _, userset := strings.Cut(t.User, "#"); userset {
			objects[user] = true
		} else if !strings.HasSuffix(user, ":*") {
			objects[user] = true
		}
		parents[t.User] = append(parents[t.User], t.Object+"#"+t.Relation)
	}
	for object := range objects {
		typ, _, _ := strings.Cut(object, ":")
		for relation, terms := range model[typ] {
			for _, term := range terms {
				name, from, indirect := strings.Cut(term, " from ")
				if !indirect {
					parents[object+"#"+name] = append(parents[object+"#"+name], object+"#"+relation)
					continue
				}
				for _, t := range tuples {
					if t.Object == object && t.Relation == from {
						parents[t.User+"#"+name] = append(parents[t.User+"#"+name], object+"#"+relation)
					}
				}
			}
		}
	}
	return parents, objects
}

// fgaPolicies permit within the tenant, with the hierarchy of groups.
func fgaPolicies(t *testing.T, parents map[string][]string) *filter.Policies {
	type uid struct {
		Type string `json:"type"`
		ID   string `json:"id"`
	}
	type entity struct {
		UID     uid      `json:"uid"`
		Attrs   struct{} `json:"attrs"`
		Parents []uid    `json:"parents"`
	}
	var entities []entity
	for group, above := range parents {
		e := entity{UID: uid{"Group", group}, Parents: []uid{}}
		slices.Sort(above)
		for _, name := range slices.Compact(above) {
			e.Parents = append(e.Parents, uid{"Group", name})
		}
		entities = append(entities, e)
	}
	text, err := json.Marshal(entities)
	require.NoError(t, err)
	policies, err := filter.ParsePolicies(nestedSchema, map[string]string{
		"a.cedar": `permit (principal, action, resource);`, filter.GroupsFile: string(text),
	})
	require.NoError(t, err)
	return policies
}

// TestOpenFGASampleStores takes every published store that is a union of
// relations: each userset becomes a group, each rewrite a group in a group, and
// each relation of an object a document for that group. Every check and every
// list of objects must come out as published.
func TestOpenFGASampleStores(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(needs.Data(t, "openfga-sample-stores"), "stores", "*", "*.fga.yaml"))
	require.NoError(t, err)
	stores, checks, lists := 0, 0, 0
	for _, file := range files {
		var s fgaStore
		readYAML(t, file, &s)
		model := s.Model
		if s.ModelFile != "" {
			text, err := os.ReadFile(filepath.Join(filepath.Dir(file), s.ModelFile))
			require.NoError(t, err)
			model = string(text)
		}
		if model == "" || fgaBeyond.MatchString(model) || strings.HasSuffix(s.ModelFile, ".mod") {
			continue
		}
		stores++
		for _, test := range s.Tests {
			tuples := slices.Concat(s.Tuples, test.Tuples)
			w := newFGAWorld(t, rewrites(model), tuples)
			for _, c := range test.Check {
				for relation, want := range c.Assertions {
					require.Equal(t, want, slices.Contains(w.reads(t, c.User), c.Object+"#"+relation), "%s: %s %s %s", file, c.User, relation, c.Object)
					checks++
				}
			}
			for _, l := range test.ListObjects {
				for relation, want := range l.Assertions {
					var got []string
					for _, key := range w.reads(t, l.User) {
						if object, r, _ := strings.Cut(key, "#"); r == relation && strings.HasPrefix(object, l.Type+":") {
							got = append(got, object)
						}
					}
					require.ElementsMatch(t, want, got, "%s: %s %s", file, l.User, relation)
					lists++
				}
			}
		}
	}
	t.Logf("%d stores of %d, %d checks, %d lists of objects", stores, len(files), checks, lists)
	require.GreaterOrEqual(t, stores, 9)
	require.GreaterOrEqual(t, checks, 40)
	require.GreaterOrEqual(t, lists, 7)
}

type fgaWorld struct {
	view *filter.View
	keys []string // object#relation, by ordinal
}

func newFGAWorld(t *testing.T, model map[string]map[string][]string, tuples []fgaTuple) *fgaWorld {
	parents, objects := fgaGroups(model, tuples)
	w := &fgaWorld{view: filter.NewView("fga", fgaPolicies(t, parents))}
	for _, object := range slices.Sorted(maps.Keys(objects)) {
		typ, _, _ := strings.Cut(object, ":")
		for relation := range model[typ] {
			key := object + "#" + relation
			w.view = w.view.Apply([]filter.Change{{Ordinal: uint32(len(w.keys)), Access: readersOf(filter.Group(key))}})
			w.keys = append(w.keys, key)
		}
	}
	return w
}

// reads returns the documents of a user, who is in the groups that tuples name.
func (w *fgaWorld) reads(t *testing.T, user string) (keys []string) {
	typ, _, _ := strings.Cut(user, ":")
	p := filter.Principal{Tenant: "fga", Subject: user, Groups: []string{user, typ + ":*"}}
	set, err := w.view.Resolve(p)
	require.NoError(t, err)
	for ordinal := range set.Each {
		keys = append(keys, w.keys[ordinal])
	}
	return keys
}
