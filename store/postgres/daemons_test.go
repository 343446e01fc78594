package postgres

import (
	"fmt"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"sluice/chunk"
	"sluice/filter"
	"sluice/store"
	"sluice/store/encode"
	"sluice/store/postgres/postgrestest"
)

func opened(t *testing.T, url string) *Store {
	t.Helper()
	s, err := Open(t.Context(), url, Options{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s
}

func version(identity byte, readers ...filter.Reader) store.Version {
	return store.Version{
		Key: "a", Chunker: "whole/1", Model: "m", Identity: [32]byte{identity}, Text: "tide", Chunks: []chunk.Chunk{{End: 4}},
		Dimensions: 2, Vectors: []float32{1, 0}, Access: filter.Access{Readers: filter.Readers{List: readers}},
	}
}

// TestChangesNameTheirDaemon: each daemon knows its own changes from the others'.
func TestChangesNameTheirDaemon(t *testing.T) {
	url := postgrestest.URL(t)
	a, b := opened(t, url), opened(t, url)
	c, _, err := a.CreateCollection(t.Context(), "acme", "docs", store.Settings{Analyzer: "english"})
	require.NoError(t, err)
	_, err = b.Commit(t.Context(), c.ID, version(1, "group:hr"))
	require.NoError(t, err)
	for s, want := range map[*Store][]bool{a: {false, true}, b: {true, false}} {
		changes, err := s.Changes(t.Context(), 0, 10)
		require.NoError(t, err)
		var elsewhere []bool
		for _, change := range changes {
			elsewhere = append(elsewhere, change.Elsewhere)
		}
		require.Equal(t, want, elsewhere)
	}
}

// TestClassIsOfTheRows: it is that of the access that the rows were written with,
// for every daemon, until there are others.
func TestClassIsOfTheRows(t *testing.T) {
	s := opened(t, postgrestest.URL(t))
	c, _, err := s.CreateCollection(t.Context(), "acme", "docs", store.Settings{Analyzer: "english"})
	require.NoError(t, err)
	class := func() uint64 {
		r, err := s.Lookup(t.Context(), c.ID, "a")
		require.NoError(t, err)
		return r.Class
	}
	first, next := version(1, "group:hr"), version(2, "user:ann")
	_, err = s.Commit(t.Context(), c.ID, first)
	require.NoError(t, err)
	require.Equal(t, first.Access.Class(), class())
	_, err = s.SetAccess(t.Context(), c.ID, "a", func(filter.Access) (filter.Access, error) { return next.Access, nil })
	require.NoError(t, err)
	require.Equal(t, first.Access.Class(), class())
	_, err = s.Commit(t.Context(), c.ID, next)
	require.NoError(t, err)
	require.Equal(t, next.Access.Class(), class())
}

// TestUpgrade: tables of version 1 are brought to the present one, with what is in them.
func TestUpgrade(t *testing.T) {
	url := postgrestest.URL(t)
	tables, err := os.ReadFile("migrations/1.sql")
	require.NoError(t, err)
	postgrestest.Exec(t, url, `do $$ begin execute 'create schema ' || current_setting('search_path'); end $$;
		create table schema_version (number integer not null); insert into schema_version values (1);`)
	postgrestest.Exec(t, url, string(tables))
	postgrestest.Exec(t, url, fmt.Sprintf(`insert into changes values (1, 2, 1, 0); update meta set epoch = 1, last_collection = 1;
		insert into collections values (1, 'acme', 'docs', 'english', 0, '', 0, 0, 0); insert into counters values (1, 1, 1);
		insert into documents values (1, 0, 'a', 1, '', 'text', 'whole/1', 'm', sha256(''), 0, 1, false, '\x%x', 1, 0)`, encode.AppendAccess(nil, filter.Access{})))
	s := opened(t, url)
	changes, err := s.Changes(t.Context(), 0, 10)
	require.NoError(t, err)
	require.Equal(t, []store.Change{{Epoch: 1, Kind: store.CollectionCreated, Collection: 1, Elsewhere: true}}, changes)
	var class int
	require.NoError(t, s.pool.QueryRow(t.Context(), "select class from documents").Scan(&class))
	require.Equal(t, 1, class, "one that all daemons take")
	_, err = s.Commit(t.Context(), 1, version(7, "group:hr"))
	require.NoError(t, err)
}
