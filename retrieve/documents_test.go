package retrieve

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"sluice/store"
)

func TestForbiddenAndMissingDocumentsAreAlike(t *testing.T) {
	h := newHouse(t)
	h.write("theirs", readable("user:other"), "harbour")

	_, forbidden := h.engine.Document(t.Context(), person("me"), library, "theirs")
	_, missing := h.engine.Document(t.Context(), person("me"), library, "nothing")

	require.ErrorIs(t, forbidden, store.ErrNotFound)
	require.Equal(t, missing.Error(), forbidden.Error())
}

func TestDocumentOfTheLatestAccess(t *testing.T) {
	h := newHouse(t)
	h.write("a", readable("user:me"), "harbour")
	h.setAccess("a", readable("user:other")) // and searches may not know yet
	_, err := h.engine.Document(t.Context(), person("me"), library, "a")
	require.ErrorIs(t, err, store.ErrNotFound)
}

func TestListingByPages(t *testing.T) {
	h := newHouse(t)
	var want []string
	for i := range 57 {
		access := readable("user:other")
		if i%3 == 0 {
			access = readable("user:me")
			want = append(want, fmt.Sprint("d", i))
		}
		h.put(fmt.Sprint("d", i), access, "harbour")
	}
	h.awaitAll()
	for _, n := range []int{1, 2, 18, 19, 20, 1000} {
		require.Equal(t, want, h.list(person("me"), n), "pages of %d", n)
	}
	require.Empty(t, h.list(person("nobody"), 3))
}

// A page that is exactly full says that there is no more.
func TestListingSaysWhetherMoreFollow(t *testing.T) {
	h := newHouse(t)
	for i := range 4 {
		h.write(fmt.Sprint(i), readable(), "harbour")
	}
	page, more, err := h.engine.List(t.Context(), person("me"), library, "", 4)
	require.NoError(t, err)
	require.Len(t, page, 4)
	require.False(t, more)
	page, more, err = h.engine.List(t.Context(), person("me"), library, "", 3)
	require.NoError(t, err)
	require.Len(t, page, 3)
	require.True(t, more)
}

func TestCursorsNameOnlyWhatMayBeRead(t *testing.T) {
	h := newHouse(t)
	h.write("mine", readable("user:me"), "harbour")
	h.write("theirs", readable("user:other"), "harbour")

	_, _, forbidden := h.engine.List(t.Context(), person("me"), library, "theirs", 5)
	_, _, missing := h.engine.List(t.Context(), person("me"), library, "nothing", 5)

	require.ErrorIs(t, forbidden, store.ErrInvalid)
	require.Equal(t, missing.Error(), forbidden.Error())
	page, _, err := h.engine.List(t.Context(), person("me"), library, "mine", 5)
	require.NoError(t, err)
	require.Empty(t, page)
}

func TestListingObeysTheLatestState(t *testing.T) {
	h := newHouse(t)
	for _, key := range []string{"a", "b", "c", "d"} {
		h.write(key, readable("user:me"), "harbour")
	}
	m := &meddler{Store: h.store, beforeRecords: func() {
		h.setAccess("a", readable("user:other"))
		h.remove("c")
	}}
	h.engine = NewEngine(m, h.serving, h.embedder)

	page, more, err := h.engine.List(t.Context(), person("me"), library, "", 2)

	require.NoError(t, err)
	require.False(t, more)
	require.Equal(t, []string{"b", "d"}, []string{page[0].Key, page[1].Key})
}
