package retrieve

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sluice/filter"
)

// truth is who may read which document, as acknowledged. Every entry has a
// counter that is odd while a change of the document is under way.
type truth struct {
	mu      sync.Mutex
	entries map[string]entry
}

type entry struct {
	changes int
	exists  bool
	readers []filter.Reader
}

func (t *truth) change(key string, to func(*entry)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	e := t.entries[key]
	to(&e)
	e.changes++
	t.entries[key] = e
}

func (t *truth) copy() map[string]entry {
	t.mu.Lock()
	defer t.mu.Unlock()
	out := make(map[string]entry, len(t.entries))
	for key, e := range t.entries {
		out[key] = e
	}
	return out
}

// mutator changes documents, one after the other.
type mutator struct {
	h      *house
	truth  *truth
	random *rand.Rand
	names  []string
}

func (m *mutator) access() filter.Access {
	var list []filter.Reader
	for _, name := range m.names {
		if m.random.IntN(2) == 0 {
			list = append(list, filter.User(name))
		}
	}
	return filter.Access{Readers: filter.Readers{List: list}}
}

func (m *mutator) step() {
	key := fmt.Sprint("d", m.random.IntN(25))
	before, access := m.truth.copy()[key], m.access()
	m.truth.change(key, func(*entry) {}) // under way
	switch action := m.random.IntN(5); {
	case before.exists && action == 0:
		m.h.await(m.h.remove(key).Epoch)
		m.truth.change(key, func(e *entry) { e.exists = false })
	case before.exists && action < 4:
		m.h.await(m.h.setAccess(key, access).Epoch)
		m.truth.change(key, func(e *entry) { e.readers = access.Readers.List })
	default:
		text := fmt.Sprintf("harbour %s %d", key, m.random.Uint64())
		m.h.write(key, access, text)
		m.truth.change(key, func(e *entry) { e.exists, e.readers = true, access.Readers.List })
	}
}

// verify compares an answer with what held before and after it: where nothing
// changed meanwhile, exactly the documents that the principal may read are there.
func verify(t *testing.T, name string, before, after map[string]entry, seen []string, visible int) {
	least, most := 0, 0
	for key, e := range before {
		settled := e.changes%2 == 0 && after[key].changes == e.changes
		may := e.exists && slices.Contains(e.readers, filter.User(name))
		if settled {
			assert.Equal(t, may, slices.Contains(seen, key), "%s and %s", name, key)
		}
		if settled && may {
			least++
		}
		if !settled || may {
			most++
		}
	}
	for key := range after {
		if _, known := before[key]; !known {
			most++
		}
	}
	assert.GreaterOrEqual(t, visible, least)
	assert.LessOrEqual(t, visible, most)
}

// Searches and listings that start after an acknowledgement obey it, for every
// principal, whatever else happens at the same time.
func TestAcknowledgedChangesHoldUnderConcurrency(t *testing.T) {
	const seed = 11
	changes := 3000
	if testing.Short() {
		changes = 300
	}
	t.Logf("seed %d", seed)
	h := newHouse(t)
	names := []string{"ann", "bob", "cyd"}
	m := &mutator{h, &truth{entries: map[string]entry{}}, rand.New(rand.NewPCG(seed, 0)), names}
	done, asked := make(chan struct{}), make([]int, len(names))
	var asking sync.WaitGroup
	for i, name := range names {
		asking.Go(func() {
			for n := 0; ; n++ {
				select {
				case <-done:
					asked[i] = n
					return
				default:
				}
				before := m.truth.copy()
				r, err := h.engine.Search(context.Background(), h.request(person(name), strategies[n%len(strategies)], "harbour", 100))
				if !assert.NoError(t, err) {
					return
				}
				verify(t, name, before, m.truth.copy(), keysOf(r), r.Visible)
				before = m.truth.copy()
				page, _, err := h.engine.List(context.Background(), person(name), library, "", 1000)
				if !assert.NoError(t, err) {
					return
				}
				var keys []string
				for _, record := range page {
					keys = append(keys, record.Key)
				}
				verify(t, name, before, m.truth.copy(), keys, len(keys))
			}
		})
	}
	for range changes {
		m.step()
		if t.Failed() {
			break
		}
	}
	close(done)
	asking.Wait()
	require.False(t, t.Failed(), "seed %d", seed)
	t.Logf("%d changes, %v searches and as many listings", changes, asked)
}
