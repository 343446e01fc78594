package filter_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"sluice/filter"
)

const nestedSchema = `
entity Group in [Group];
entity User in [Group] { tenant: String, groups: Set<String> };
entity Document { tenant: String, owner?: String };
action read appliesTo { principal: User, resource: Document };
`

const nestedPolicies = `
permit (principal in Group::"g0", action, resource) when { resource has owner };
permit (principal, action, resource) when { !(resource has owner) };
forbid (principal in Group::"g1", action, resource) when { resource has owner && !principal.groups.contains("g1") };
`

// hierarchy is the file of a list of (group, parent).
func hierarchy(edges [][2]int) string {
	parents := map[int][]string{}
	for _, e := range edges {
		parents[e[0]] = append(parents[e[0]], fmt.Sprintf(`{"type":"Group","id":"g%d"}`, e[1]))
	}
	var entities []string
	for group, list := range parents {
		entities = append(entities, fmt.Sprintf(`{"uid":{"type":"Group","id":"g%d"},"attrs":{},"parents":[%s]}`, group, strings.Join(list, ",")))
	}
	return "[" + strings.Join(entities, ",") + "]"
}

// TestGroupsInGroups compares random hierarchies with a walk up from every group.
func TestGroupsInGroups(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var edges [][2]int
		for range rapid.IntRange(0, 8).Draw(t, "edges") {
			child := rapid.IntRange(1, 5).Draw(t, "child")
			edges = append(edges, [2]int{child, rapid.IntRange(0, child-1).Draw(t, "parent")})
		}
		policies, err := filter.ParsePolicies(nestedSchema, map[string]string{"a.cedar": nestedPolicies, filter.GroupsFile: hierarchy(edges)})
		require.NoError(t, err)
		stated := rapid.IntRange(0, 5).Draw(t, "stated")
		in := map[int]bool{stated: true}
		for range 6 {
			for _, e := range edges {
				in[e[1]] = in[e[1]] || in[e[0]]
			}
		}
		p := filter.Principal{Tenant: "t", Subject: "u", Groups: []string{fmt.Sprint("g", stated)}}
		view := filter.NewView("t", policies)
		var want []uint32
		for group := range 6 { // by readers
			view = view.Apply([]filter.Change{{Ordinal: uint32(group), Access: readersOf(filter.Group(fmt.Sprint("g", group)))}})
			if in[group] {
				want = append(want, uint32(group))
			}
		}
		owned := filter.Access{Readers: filter.Readers{Undeclared: true}, Attributes: filter.Attributes{"owner": "x"}}
		view = view.Apply([]filter.Change{{Ordinal: 100, Access: owned}}) // by policies
		if in[0] && (!in[1] || stated == 1) {
			want = append(want, 100)
		}
		set, err := view.Resolve(p)
		require.NoError(t, err)
		require.Equal(t, want, ordinals(set), "%v, in g%d", edges, stated)
		judge, err := view.Judge(policies, p)
		require.NoError(t, err)
		admitted, err := policies.Admits(p, owned)
		require.NoError(t, err)
		require.Equal(t, set.Contains(100), admitted)
		require.Equal(t, admitted, judge.Admits(owned))
	})
}

func TestHierarchiesThatAreRefused(t *testing.T) {
	entity := func(uid, more string) string {
		return fmt.Sprintf(`[{"uid":{"type":%s},"attrs":{},"parents":[],%s}]`, uid, more)
	}
	var chain, wide [][2]int
	for i := range 300 {
		chain, wide = append(chain, [2]int{i + 1, i}), append(wide, [2]int{0, i + 1})
	}
	for text, want := range map[string]string{
		`{`:                                    "JSON",
		entity(`"User","id":"u"`, `"tags":{}`): "only groups",
		entity(`"Group","id":""`, `"tags":{}`): "only groups",
		entity(`"Group","id":"g"`, `"tags":{"a":1}`):                                          "no tags",
		`[{"uid":{"type":"Group","id":"g"},"attrs":{"a":1},"parents":[]}]`:                    "no attributes",
		`[{"uid":{"type":"Group","id":"g"},"attrs":{},"parents":[{"type":"User","id":"u"}]}]`: "only in groups",
		hierarchy([][2]int{{0, 0}}):                                                           "in itself",
		hierarchy([][2]int{{0, 1}, {1, 2}, {2, 0}}):                                           "in itself",
		hierarchy(chain): "more than 256",
		hierarchy(wide):  "more than 256",
	} {
		_, err := filter.ParsePolicies(nestedSchema, map[string]string{"a.cedar": nestedPolicies, filter.GroupsFile: text})
		require.ErrorIs(t, err, filter.ErrInvalidPolicies, text)
		require.ErrorContains(t, err, filter.GroupsFile)
		require.ErrorContains(t, err, want)
	}
}

// The hierarchy is read with the policies, and is part of what they are.
func TestHierarchyIsReadWithThePolicies(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{filter.SchemaFile: nestedSchema, "a.cedar": nestedPolicies} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	flat, err := filter.LoadPolicies(dir)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(dir, filter.GroupsFile), []byte(hierarchy([][2]int{{1, 0}})), 0o600))
	nested, err := filter.LoadPolicies(dir)
	require.NoError(t, err)
	require.NotEqual(t, flat.Digest(), nested.Digest())
	again, err := filter.ParsePolicies(nested.Source())
	require.NoError(t, err)

	member := filter.Principal{Tenant: "t", Subject: "u", Groups: []string{"g1"}}
	for _, c := range []struct {
		policies *filter.Policies
		want     bool
	}{{flat, false}, {nested, true}, {again, true}} {
		admitted, err := c.policies.Admits(member, readersOf(filter.Group("g0")))
		require.NoError(t, err)
		require.Equal(t, c.want, admitted)
	}
}
