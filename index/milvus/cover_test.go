package milvus

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"sluice/filter"
)

// matched evaluates an expression of the kinds that covers consist of.
func matched(t require.TestingT, e expression, ordinal uint32, class int64) bool {
	if e.all {
		return true
	}
	return slices.ContainsFunc(strings.Split(strings.Trim(e.text, "()"), ") || ("), func(clause string) bool {
		for _, term := range strings.Split(clause, " && ") {
			name, values, ok := strings.Cut(strings.TrimSuffix(term, "]"), " in [")
			require.True(t, ok, e.text)
			name, negated := strings.CutSuffix(name, " not")
			value := map[string]int64{"document": int64(ordinal), "class": class, "bucket": bucketOf(class)}[name]
			if slices.Contains(strings.Split(values, ","), fmt.Sprint(value)) == negated {
				return false
			}
		}
		return true
	})
}

// A cover misses no allowed document, whatever their classes are; its share is
// that of the allowed ones among those that it matches.
func TestCoversAreComplete(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		random := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
		documents, kinds := rapid.IntRange(1, 4000).Draw(t, "documents"), rapid.Int64Range(1, 3000).Draw(t, "classes")
		share, whole := rapid.Float64Range(0, 1).Draw(t, "share"), rapid.Bool().Draw(t, "by class")
		edit, classOf := noClasses().edit(), make([]int64, documents)
		permitted := map[int64]bool{}
		var allowed []uint32
		for ordinal := range uint32(documents) {
			class := random.Int64N(kinds)
			if _, decided := permitted[class]; !decided {
				permitted[class] = random.Float64() < share
			}
			classOf[ordinal] = class
			edit.put(ordinal, class)
			if whole && permitted[class] || !whole && random.Float64() < share {
				allowed = append(allowed, ordinal)
			}
		}
		set := filter.SetOf(allowed...)
		for _, c := range []cover{edit.coverOf(set), edit.byClass(set.Bitmap()), edit.listed(set)} {
			requireCovered(t, c, set, classOf)
		}
	})
}

func requireCovered(t *rapid.T, c cover, set filter.Set, classOf []int64) {
	if set.IsEmpty() {
		for _, e := range c.searches {
			require.True(t, e.isNothing(), "an empty Set must not reach a server")
		}
		return
	}
	n := 0
	for ordinal, class := range classOf {
		covered := slices.ContainsFunc(c.searches, func(e expression) bool { return matched(t, e, uint32(ordinal), class) })
		require.True(t, covered || !set.Contains(uint32(ordinal)), "document %d of class %d", ordinal, class)
		if covered {
			n++
		}
	}
	require.InDelta(t, float64(set.Len())/float64(n), c.share, 1e-9)
	for _, e := range c.searches {
		require.False(t, e.isNothing())
	}
}

// What covers are made of, at the sizes where one way becomes cheaper than another.
func TestCoversAreCheap(t *testing.T) {
	edit := noClasses().edit()
	for ordinal := range uint32(100_000) {
		edit.put(ordinal, int64(ordinal%100))
	}
	of := func(admits func(uint32) bool) cover {
		var allowed []uint32
		for ordinal := range uint32(100_000) {
			if admits(ordinal) {
				allowed = append(allowed, ordinal)
			}
		}
		return edit.coverOf(filter.SetOf(allowed...))
	}
	text := func(c cover) string {
		require.Len(t, c.searches, 1)
		return c.searches[0].String()
	}
	require.Equal(t, "class in [3]", text(of(func(d uint32) bool { return d%100 == 3 })))
	require.Equal(t, "class in [3]", text(of(func(d uint32) bool { return d%100 == 3 && d != 103 })), "a document less costs less than a list")
	require.Equal(t, "document in [5,7]", text(of(func(d uint32) bool { return d == 5 || d == 7 })))
	require.Equal(t, "(class in [3]) || (document in [5])", text(of(func(d uint32) bool { return d%100 == 3 || d == 5 })))
	require.Equal(t, "", text(of(func(d uint32) bool { return true })))
	require.Equal(t, "", text(of(func(d uint32) bool { return d != 500 })), "what is kept out here need not be told")
	require.Equal(t, "", text(of(func(d uint32) bool { return d%10 < 4 && d/100%3 == 0 })), "a third of many classes")
	require.Len(t, of(func(d uint32) bool { return d%397 == 0 && d%100 != 0 }).searches, 1)
}

func TestEditsOfClassesLeaveTheOthers(t *testing.T) {
	first := noClasses().edit()
	first.put(1, 7)
	first.put(2, 7)
	second := first.edit()
	second.remove(1, 7)
	second.put(1, 8)
	second.put(3, 7)
	third := second.edit()
	third.remove(1, 8)
	require.Equal(t, []uint32{1, 2}, first.members[7].ToArray())
	require.Equal(t, []uint32{2, 3}, second.members[7].ToArray())
	require.Equal(t, []uint32{1}, second.members[8].ToArray())
	require.NotContains(t, third.members, int64(8))
	require.Equal(t, []uint32{2, 3}, third.all.ToArray())
}

// A shard that is opened knows its documents' classes; one of rows under several is
// only known to be there.
func TestClassify(t *testing.T) {
	s := &shard{classes: noClasses(), classOf: map[uint32]int64{1: 5, 2: 5, 3: 7, 4: 7}}
	s.classify(map[uint32]bool{2: false, 3: true})
	require.Equal(t, []uint32{1, 2, 3, 4}, s.classes.all.ToArray())
	require.Equal(t, []uint32{1, 2}, s.classes.members[5].ToArray())
	require.Equal(t, []uint32{4}, s.classes.members[7].ToArray())
	require.Equal(t, map[uint32]int64{1: 5, 2: 5, 4: 7}, s.classOf)
}
