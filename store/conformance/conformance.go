// Package conformance is the test suite of the store's contract. Every home of
// the store runs it.
package conformance

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"sluice/chunk"
	"sluice/filter"
	"sluice/store"
)

// Open opens a store. After its Close the same data can be opened again.
type Open func() (store.Store, error)

// Home makes a new, empty place for a store.
type Home func() Open

// Run runs the suite.
func Run(t *testing.T, home Home) {
	tests := map[string]func(*testing.T, *fixture){
		"collections":         testCollections,
		"collection names":    testCollectionNames,
		"settings":            testSettings,
		"collection race":     testCollectionRace,
		"commit":              testCommit,
		"content":             testContent,
		"codes":               testCodes,
		"content and access":  testAccessForms,
		"commit refused":      testCommitRefused,
		"keeps":               testKeeps,
		"keeps race":          testKeepsRace,
		"vectors needed":      testVectorsNeeded,
		"keys":                testKeys,
		"delete":              testDelete,
		"set access":          testSetAccess,
		"set access race":     testSetAccessRace,
		"records":             testRecords,
		"scan":                testScan,
		"scan under writes":   testScanUnderWrites,
		"policies":            testPolicies,
		"changes":             testChanges,
		"trim":                testTrim,
		"wait":                testWait,
		"concurrent commits":  testConcurrentCommits,
		"nothing is reused":   testNothingReused,
		"context":             testContext,
		"close":               testClose,
		"close ends waits":    testCloseEndsWaits,
		"reopen":              testReopen,
		"consistent contents": testConsistentContents,
		"generations":         testGenerations,
		"generations, access": testSetAccessOverGenerations,
		"generations refused": testGenerationsRefused,
		"queries":             testQueries,
		"embeddings":          testEmbeddings,
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, home())
			test(t, f)
			f.verify()
			require.NoError(t, f.Close())
		})
	}
	t.Run("model", func(t *testing.T) { testModel(t, home) })
	t.Run("generations model", func(t *testing.T) { testGenerationsModel(t, home) })
}

// testingT is what *testing.T and *rapid.T share.
type testingT interface {
	require.TestingT
	Helper()
}

// fixture is an open store under test.
type fixture struct {
	store.Store
	t    testingT
	ctx  context.Context
	open Open
}

func newFixture(t testingT, open Open) *fixture {
	f := &fixture{t: t, ctx: context.Background(), open: open}
	f.reopen()
	return f
}

// reopen closes the store, if it is open, and opens it again.
func (f *fixture) reopen() {
	f.t.Helper()
	if f.Store != nil {
		require.NoError(f.t, f.Close())
	}
	s, err := f.open()
	require.NoError(f.t, err)
	f.Store = s
}

// verify runs the store's own check, if it has one.
func (f *fixture) verify() {
	f.t.Helper()
	if c, ok := f.Store.(store.Checker); ok {
		require.NoError(f.t, c.Check(f.ctx, func(fault store.Fault) {
			f.t.Errorf("check: %s: %s", fault.Where, fault.What)
		}))
	}
}

func (f *fixture) collection(tenant, name string) uint32 {
	f.t.Helper()
	c, _, err := f.CreateCollection(f.ctx, tenant, name, store.Settings{Analyzer: "english"})
	require.NoError(f.t, err)
	return c.ID
}

func (f *fixture) commit(collection uint32, v store.Version) store.Receipt {
	f.t.Helper()
	r, err := f.Commit(f.ctx, collection, v)
	require.NoError(f.t, err)
	return r
}

func (f *fixture) delete(collection uint32, key string) store.Receipt {
	f.t.Helper()
	r, err := f.Delete(f.ctx, collection, key)
	require.NoError(f.t, err)
	return r
}

func (f *fixture) content(collection, ordinal uint32) store.Content {
	f.t.Helper()
	c, err := f.Content(f.ctx, collection, ordinal, true)
	require.NoError(f.t, err)
	return c
}

func (f *fixture) epoch() uint64 {
	f.t.Helper()
	epoch, err := f.Epoch(f.ctx)
	require.NoError(f.t, err)
	return epoch
}

// changes leaves out through which daemon they were made: a store that was opened
// again is another one, where it matters.
func (f *fixture) changes(after uint64) []store.Change {
	f.t.Helper()
	changes, err := f.Changes(f.ctx, after, 1<<30)
	require.NoError(f.t, err)
	for i := range changes {
		changes[i].Elsewhere = false
	}
	return changes
}

func (f *fixture) scan(collection, from uint32) []store.Record {
	f.t.Helper()
	var records []store.Record
	for r, err := range f.Scan(f.ctx, collection, from) {
		require.NoError(f.t, err)
		records = append(records, r)
	}
	return records
}

// equal fails with a diff unless got is want.
func equal[T any](t testingT, want, got T) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("want -, got +:\n%s", diff)
		t.FailNow()
	}
}

// version makes a version with a text of its own and n chunks of 3 dimensions.
func version(key, text string, n int) store.Version {
	v := store.Version{
		Key: key, Title: "On " + key, Format: "markdown", Chunker: "markdown/1", Model: "m1",
		Identity: sha256.Sum256([]byte(text)), Text: text, Dimensions: 3,
		Access: filter.Access{Readers: filter.Readers{List: []filter.Reader{filter.User("ann")}}},
	}
	for i := range n {
		start, end := i*len(text)/n, (i+1)*len(text)/n
		v.Chunks = append(v.Chunks, chunk.Chunk{Start: start, End: end, Headings: []string{"top", fmt.Sprint(i)}, Index: strings.Repeat("i", i%2)})
		v.Vectors = append(v.Vectors, float32(start), float32(end), float32(i)+0.5)
		v.Codes = append(v.Codes, fmt.Appendf(nil, "codes of %x %d", v.Identity[:4], i))
	}
	return v
}

// codes returns the token codes of the record's rows, nil where there are none.
func (f *fixture) codes(r store.Record) (codes [][]byte) {
	f.t.Helper()
	var rows []uint32
	for i := range r.Rows {
		rows = append(rows, r.FirstRow+i)
	}
	require.NoError(f.t, f.Codes(f.ctx, r.Collection, rows, func(at int, its []byte) {
		require.Equal(f.t, len(codes), at, "in order, none left out")
		codes = append(codes, bytes.Clone(its))
	}))
	return codes
}

// contentOf is what a store must return for v, committed as r.
func contentOf(r store.Record, v store.Version) store.Content {
	return store.Content{Record: r, Text: v.Text, Chunks: v.Chunks, Dimensions: v.Dimensions, Vectors: v.Vectors}
}

// readableBy is an access row for one user.
func readableBy(subject string) filter.Access {
	return filter.Access{Readers: filter.Readers{List: []filter.Reader{filter.User(subject)}}}
}

// soon bounds what must happen without delay, so that a failure is no hang.
func soon(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, 30*time.Second)
}
