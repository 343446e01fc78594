package lru

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTheLeastRecentlyUsedGoesFirst(t *testing.T) {
	c := New[string, int](10)
	c.Put("a", 1, 4)
	c.Put("b", 2, 4)
	_, _ = c.Get("a")
	c.Put("c", 3, 4)
	_, there := c.Get("b")
	require.False(t, there)
	for key, want := range map[string]int{"a": 1, "c": 3} {
		got, there := c.Get(key)
		require.True(t, there)
		require.Equal(t, want, got)
	}
}

func TestWeightStaysWithinTheBudget(t *testing.T) {
	c := New[int, int](100)
	for i := range 1000 {
		c.Put(i%150, i, i%40)
		require.LessOrEqual(t, c.weight, 100)
		require.Equal(t, c.order.Len(), len(c.entries))
	}
	c.Put(7, 7, 101)
	_, there := c.Get(7)
	require.False(t, there, "heavier than the budget")
	made := 0
	for range 2 {
		require.Equal(t, 9, c.GetOrPut(1000, 1, func() int { made++; return 9 }))
	}
	require.Equal(t, 1, made)
}
