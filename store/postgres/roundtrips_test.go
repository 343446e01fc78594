package postgres

import (
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"sluice/filter"
	"sluice/store"
	"sluice/store/postgres/postgrestest"
)

// TestRoundTrips: a change of access takes two round trips to the database, and reading what
// it changed, which its acknowledgement waits for, two more.
func TestRoundTrips(t *testing.T) {
	proxy := postgrestest.NewProxy(t, postgrestest.URL(t))
	s := opened(t, proxy.URL)
	c, _, err := s.CreateCollection(t.Context(), "acme", "docs", store.Settings{Analyzer: "english"})
	require.NoError(t, err)
	_, err = s.Commit(t.Context(), c.ID, version(1))
	require.NoError(t, err)
	for name, call := range map[string]struct {
		trips int64
		do    func(i int) error
	}{
		"SetAccess": {2, func(i int) error {
			_, err := s.SetAccess(t.Context(), c.ID, "a", func(filter.Access) (filter.Access, error) {
				return version(1, filter.User(fmt.Sprint(i))).Access, nil
			})
			return err
		}},
		"Changes": {1, func(int) error { _, err := s.Changes(t.Context(), 0, 10); return err }},
		"Records": {1, func(int) error { _, err := s.Records(t.Context(), c.ID, []uint32{0}); return err }},
	} {
		least := int64(math.MaxInt64) // the first prepares its statements, and the store begins to listen
		for i := range 5 {
			before := proxy.RoundTrips()
			require.NoError(t, call.do(i), name)
			least = min(least, proxy.RoundTrips()-before)
		}
		require.Equal(t, call.trips, least, name)
	}
}
