package conformance

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sluice/filter"
	"sluice/store"
)

// testKeeps commits versions that leave fields of the access row open.
func testKeeps(t *testing.T, f *fixture) {
	row := func(name string, day int) filter.Access {
		a := readableBy(name)
		a.Attributes = filter.Attributes{"of": name}
		a.Applicability = filter.Applicability{
			Regions:    []string{name},
			ValidFrom:  time.Date(2026, 1, day, 0, 0, 0, 0, time.UTC),
			ValidUntil: time.Date(2026, 2, day, 0, 0, 0, 0, time.UTC),
		}
		return a
	}
	c, old, brought := f.collection("acme", "docs"), row("ann", 1), row("bob", 2)
	for fields := range filter.AccessFields(1 << 5) {
		for name, again := range map[string]store.Version{"new content": version("k", "another text", 2), "the same": version("k", "a text", 2)} {
			v := version("k", "a text", 2)
			v.Access, v.Keeps = old, fields // a new document has nothing to keep
			equal(t, old, f.commit(c, v).Access)
			again.Access, again.Keeps = brought, fields
			receipt := f.commit(c, again)
			want := brought.Keeping(fields, old)
			equal(t, want, receipt.Access)
			stored, err := f.Lookup(f.ctx, c, "k")
			require.NoError(t, err)
			equal(t, want, stored.Access)
			require.Equal(t, name == "the same" && fields == 1<<5-1, receipt.Unchanged, "%s, %b", name, fields)
			f.delete(c, "k")
		}
	}
}

// testKeepsRace writes a document again and again without readers while they
// change: no write brings back what was revoked, or opens the document.
func testKeepsRace(t *testing.T, f *fixture) {
	const writers, revocations = 4, 50
	c := f.collection("acme", "docs")
	f.commit(c, version("k", "a text", 1))
	done := make(chan struct{})
	var writing sync.WaitGroup
	for w := range writers {
		writing.Go(func() {
			for i := 0; ; i++ {
				select {
				case <-done:
					return
				default:
				}
				v := version("k", fmt.Sprint("text ", w, " ", i%2), 1)
				v.Access, v.Keeps = filter.Access{Readers: filter.Readers{Undeclared: true}}, filter.ReadersField
				f.commit(c, v)
			}
		})
	}
	for i := range revocations {
		row := readableBy(fmt.Sprint("reader ", i))
		_, err := f.SetAccess(f.ctx, c, "k", func(filter.Access) (filter.Access, error) { return row, nil })
		require.NoError(t, err)
		for range 3 {
			stored, err := f.Lookup(f.ctx, c, "k")
			require.NoError(t, err)
			equal(t, row.Readers, stored.Access.Readers)
		}
	}
	close(done)
	writing.Wait()
}
