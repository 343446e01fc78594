package milvus

import (
	"cmp"
	"slices"

	"github.com/RoaringBitmap/roaring/v2"

	"sluice/filter"
)

const (
	idsPerSearch = 1000 // values in one list: 8 ms on a server where five take 2.5 ms
	leastShare   = 2    // a class is taken whole where at least one in so many of its documents is allowed

	// What a search costs, in microseconds: as such, a value of a list, a row found.
	costSearch, costValue, costRow = 1500, 8, 10
	nominalDepth                   = 70
)

// cover is how the server is asked for a Set: searches that together find every
// allowed row, and some that are not. Those are left out here, and searches go on
// until there are enough without them; so a cover decides speed, and nothing else.
type cover struct {
	searches []expression
	share    float64 // of what they match that is allowed, about
}

func (c cover) cost() float64 {
	cost := 0.0
	for _, e := range c.searches {
		// A value has eight bytes or so.
		cost += costSearch + costValue*float64(len(e.text))/8 + costRow*nominalDepth/c.share
	}
	return cost
}

// coverOf chooses the cheapest of: the classes that are mostly allowed with a
// list of the other documents; everything but a list; everything.
func (c classes) coverOf(set filter.Set) cover {
	allowed := set.Bitmap()
	allowed.And(c.all)
	if allowed.IsEmpty() {
		return cover{share: 1}
	}
	covers := []cover{c.byClass(allowed), c.whole(allowed)}
	if excluded := roaring.AndNot(c.all, allowed); excluded.GetCardinality() <= idsPerSearch {
		covers = append(covers, cover{[]expression{notIn(documentField, excluded.ToArray())}, 1})
	}
	return slices.MinFunc(covers, func(a, b cover) int { return cmp.Compare(a.cost(), b.cost()) })
}

func (c classes) whole(allowed *roaring.Bitmap) cover {
	return cover{[]expression{everything()}, float64(allowed.GetCardinality()) / float64(c.all.GetCardinality())}
}

// listed names every allowed document.
func (c classes) listed(set filter.Set) cover {
	allowed := set.Bitmap()
	allowed.And(c.all)
	var searches []expression
	for ids := range slices.Chunk(allowed.ToArray(), idsPerSearch) {
		searches = append(searches, in(documentField, ids))
	}
	return cover{searches, 1}
}

// partly is a class with how many of its documents are allowed.
type partly struct {
	class   int64
	allowed uint64
}

func (c classes) byClass(allowed *roaring.Bitmap) cover {
	listed, rest := []int64{}, allowed.Clone()
	matched := allowed.GetCardinality()
	for _, p := range c.mostlyAllowed(allowed) {
		listed = append(listed, p.class)
		rest.AndNot(c.members[p.class])
		matched += c.members[p.class].GetCardinality() - p.allowed
	}
	share := float64(allowed.GetCardinality()) / float64(matched)
	if rest.IsEmpty() {
		return cover{[]expression{inClasses(listed)}, share}
	}
	search := in(classField, listed)
	var searches []expression
	for ids := range slices.Chunk(rest.ToArray(), idsPerSearch) {
		searches = append(searches, search.or(in(documentField, ids)))
		search = expression{}
	}
	return cover{searches, share}
}

// mostlyAllowed returns the classes that are worth naming, as many as fit a list.
func (c classes) mostlyAllowed(allowed *roaring.Bitmap) (found []partly) {
	for class, members := range c.members {
		if n := allowed.AndCardinality(members); leastShare*n >= members.GetCardinality() {
			found = append(found, partly{class, n})
		}
	}
	slices.SortFunc(found, func(a, b partly) int {
		return cmp.Or(cmp.Compare(b.allowed, a.allowed), cmp.Compare(a.class, b.class))
	})
	return found[:min(len(found), idsPerSearch)]
}
