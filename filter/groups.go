package filter

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/cedar-policy/cedar-go"
)

// GroupsFile is the name of the file beside the policies that says which
// groups are in which: Cedar's JSON form of entities, groups with parents only.
const GroupsFile = "entities.json"

// maxGroupsAbove bounds the groups that one group is in, over all ways.
const maxGroupsAbove = 256

// groups is the hierarchy of groups: a group's entity, and all groups that its
// members are in because of it.
type groups struct {
	entities  cedar.EntityMap
	ancestors map[string][]string // sorted, without the group itself
}

// parseGroups reads a hierarchy. A group in itself, over whatever way, is a
// mistake.
func parseGroups(text string) (groups, error) {
	g := groups{ancestors: map[string][]string{}}
	if err := json.Unmarshal([]byte(text), &g.entities); err != nil {
		return g, fmt.Errorf("not a list of Cedar entities in JSON: %w", err)
	}
	for uid, entity := range g.entities {
		if err := checkGroup(entity); err != nil {
			return g, fmt.Errorf("%s: %w", uid, err)
		}
	}
	for uid := range g.entities {
		above := map[cedar.EntityUID]bool{}
		g.climb(uid, above)
		switch {
		case above[uid]:
			return g, fmt.Errorf("%s is in itself", uid)
		case len(above) > maxGroupsAbove:
			return g, fmt.Errorf("%s is in more than %d groups", uid, maxGroupsAbove)
		}
		g.ancestors[string(uid.ID)] = names(above)
	}
	return g, nil
}

func checkGroup(e cedar.Entity) error {
	if e.UID.Type != groupType || e.UID.ID == "" {
		return errors.New("only groups may be listed, each with a name")
	}
	if e.Attributes.Len() > 0 || e.Tags.Len() > 0 {
		return errors.New("groups have no attributes and no tags")
	}
	for parent := range e.Parents.All() {
		if parent.Type != groupType || parent.ID == "" {
			return fmt.Errorf("it cannot be in %s: only in groups", parent)
		}
	}
	return nil
}

// climb adds what the group is in to above.
func (g groups) climb(uid cedar.EntityUID, above map[cedar.EntityUID]bool) {
	for parent := range g.entities[uid].Parents.All() {
		if !above[parent] && len(above) <= maxGroupsAbove {
			above[parent] = true
			g.climb(parent, above)
		}
	}
}

func names(uids map[cedar.EntityUID]bool) (names []string) {
	for uid := range uids {
		names = append(names, string(uid.ID))
	}
	slices.Sort(names)
	return names
}

// of returns the groups and all that they are in.
func (g groups) of(stated []string) []string {
	if len(g.ancestors) == 0 {
		return stated
	}
	all := slices.Clone(stated)
	for _, group := range stated {
		all = append(all, g.ancestors[group]...)
	}
	slices.Sort(all)
	return slices.Compact(all)
}
