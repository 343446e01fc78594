package milvus

import (
	"math"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestExpressions(t *testing.T) {
	require.Equal(t, "document in [1,7]", in(documentField, []uint32{1, 7}).String())
	require.Equal(t, "class in [65,-1,1]", inClasses([]int64{65, -1, 1}).String())
	require.Equal(t, "class not in [-3]", notIn(classField, []int64{-3}).String())
	require.Equal(t, "row >= 4 && row < 9", between(rowField, 4, 9).String())
	require.Equal(t, "(class in [5]) || (document in [1])", in(classField, []int64{5}).or(in(documentField, []uint32{1})).String())
}

// An empty list is no expression: `f in []` is read in more than one way.
func TestNothingAndEverything(t *testing.T) {
	nothing, some := in(documentField, []uint32(nil)), in(classField, []int64{5})
	require.True(t, nothing.isNothing())
	require.True(t, expression{}.isNothing())
	require.False(t, everything().isNothing())
	require.False(t, notIn(documentField, []uint32{}).isNothing())
	require.Equal(t, some, some.or(nothing))
	require.Equal(t, some, nothing.or(some))
	require.True(t, nothing.or(expression{}).isNothing())
	require.True(t, some.or(everything()).all)
	require.True(t, everything().or(some).all)
}

// term is all that an expression ever consists of: known fields and numbers.
var term = regexp.MustCompile(`^(\(*(row|document|class|bucket|epoch)( not)? in \[-?\d+(,-?\d+)*\]\)*( (\|\||&&) )?)+$`)

func TestExpressionsAreNumbersAlone(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		e := expression{}
		for range rapid.IntRange(1, 4).Draw(t, "parts") {
			classes := rapid.SliceOfN(rapid.Int64(), 0, 5).Draw(t, "classes")
			ordinals := rapid.SliceOfN(rapid.Uint32(), 0, 5).Draw(t, "ordinals")
			e = e.or(in(classField, classes)).or(in(documentField, ordinals))
			e = e.or(inClasses(classes))
			if len(ordinals) > 0 {
				e = e.or(notIn(documentField, ordinals))
			}
		}
		if !e.isNothing() {
			require.Regexp(t, term, e.String())
		}
	})
	require.Equal(t, "class in [-9223372036854775808,4294967295]", in(classField, []int64{math.MinInt64, math.MaxUint32}).String())
}
