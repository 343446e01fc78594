package filter_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"sluice/filter"
)

func TestParseReaders(t *testing.T) {
	readers, err := filter.ParseReaders([]string{"user:u:1", "public", "group:g", "user:u:1", "group:G"})
	require.NoError(t, err)
	require.Equal(t, filter.Readers{List: []filter.Reader{"group:G", "group:g", "public", "user:u:1"}}, readers)
}

// TestNoReadersIsNobody: a missing list must never become "everybody".
func TestNoReadersIsNobody(t *testing.T) {
	for _, list := range [][]string{nil, {}} {
		readers, err := filter.ParseReaders(list)
		require.NoError(t, err)
		require.False(t, readers.Undeclared)
		require.Empty(t, readers.List)
	}
}

func TestParseReadersRefuses(t *testing.T) {
	for _, text := range []string{
		"", "u", "user:", "group:", "user", "User:x", "Public", "public:", " public", "role:x", ":x", "user\x00:x",
		"user:\xff", "user:" + strings.Repeat("x", 512),
	} {
		_, err := filter.ParseReaders([]string{"public", text})
		require.ErrorContains(t, err, "entry 2: ", "%q", text)
	}
	_, err := filter.ParseReaders(make([]string, 10_001))
	require.ErrorContains(t, err, "10001 readers")
}

// Readers that come and go neither use numbers up nor leave room behind, and
// decide no less exactly for it.
func TestReadersComeAndGo(t *testing.T) {
	view := filter.NewView("acme", starter(t)).Apply([]filter.Change{
		{Ordinal: 1, Access: readersOf("group:a", "user:u", "group:a")}, {Ordinal: 700, Access: readersOf("group:b", "group:a")},
	})
	const each = 10_000
	for round := range 20 {
		names := make([]filter.Reader, each)
		for i := range names {
			names[i] = filter.User(fmt.Sprint(round, " ", i))
		}
		view = view.Apply([]filter.Change{{Ordinal: 2, Access: readersOf(names...)}})
		last, room := view.ReaderNumbers()
		require.LessOrEqual(t, last, uint32(3*each+1<<16))
		require.LessOrEqual(t, room, 3*each+1<<16+256)
		reads := func(p filter.Principal) []uint32 {
			set, err := view.Resolve(p)
			require.NoError(t, err)
			return ordinals(set)
		}
		for subject, want := range map[string][]uint32{fmt.Sprint(round, " 9999"): {2}, fmt.Sprint(round-1, " 9999"): nil, "u": {1}} {
			require.Equal(t, want, reads(filter.Principal{Tenant: "acme", Subject: subject}), "round %d, %s", round, subject)
		}
		require.Equal(t, []uint32{1, 700}, reads(filter.Principal{Tenant: "acme", Subject: "x", Groups: []string{"a"}}))
	}
	view = view.Apply([]filter.Change{{Ordinal: 1, Deleted: true}, {Ordinal: 2, Deleted: true}, {Ordinal: 700, Access: readersOf("group:b")}})
	require.Equal(t, []filter.Reader{"group:b"}, slices.Collect(view.Readers))
}
