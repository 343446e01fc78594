package filter_test

import (
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
		require.ErrorContains(t, err, "reader 1: ", "%q", text)
	}
	_, err := filter.ParseReaders(make([]string, 10_001))
	require.ErrorContains(t, err, "10001 readers")
}
