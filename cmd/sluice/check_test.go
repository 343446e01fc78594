package main

import (
	"bytes"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"sluice/client"
	"sluice/store/pebble"
)

// stocked is a data directory with some documents, closed by a clean stop.
func stocked(t *testing.T) *home {
	t.Helper()
	h := newHome(t, onePerson)
	d := h.serve()
	d.collection("ann", "docs")
	for i := range 20 {
		_, err := d.as("ann").Write(t.Context(), "docs", note(fmt.Sprint("d", i), fmt.Sprintf("Harbour %d opens at %d o'clock.", i, i)))
		require.NoError(t, err)
	}
	d.stop()
	h.check()
	return h
}

// files lists the files below a directory, by their paths in it.
func files(t *testing.T, dir string) (names []string) {
	t.Helper()
	require.NoError(t, filepath.WalkDir(dir, func(file string, entry fs.DirEntry, err error) error {
		if err == nil && entry.Type().IsRegular() {
			names = append(names, file)
		}
		return err
	}))
	return names
}

// flip changes one bit of a file, counted from its end if negative, and returns
// what undoes it.
func flip(t *testing.T, file string, at int) (undo func()) {
	t.Helper()
	content, err := os.ReadFile(file)
	require.NoError(t, err)
	damaged := bytes.Clone(content)
	damaged[(at+len(damaged))%len(damaged)] ^= 4
	require.NoError(t, os.WriteFile(file, damaged, 0o600))
	return func() { require.NoError(t, os.WriteFile(file, content, 0o600)) }
}

// Of a daemon that was stopped, a flipped bit is noticed wherever it matters.
// It does not in the log, which is empty by then, in what pebble was opened
// with, and in a manifest that is as good without its end.
func TestCheckFindsFlippedBits(t *testing.T) {
	t.Parallel()
	const seed = 3
	h := stocked(t)
	epoch := storeEpoch(t, h)
	random, noticed := rand.New(rand.NewPCG(seed, 0)), map[string]int{}
	for _, file := range files(t, h.data()) {
		info, err := os.Stat(file)
		require.NoError(t, err)
		for range min(3, info.Size()) {
			at := random.IntN(int(info.Size()))
			undo := flip(t, file, at)
			if r := sluice(t, "check", h.data()); r.code == 0 {
				require.NotContains(t, []string{".sst", ".seg"}, filepath.Ext(file), "seed %d: %s, byte %d of %d", seed, file, at, info.Size())
				require.Equal(t, epoch, storeEpoch(t, h), "seed %d: %s, byte %d of %d", seed, file, at, info.Size())
			} else {
				place, _, _ := strings.Cut(strings.TrimPrefix(file, h.data()+"/"), "/")
				require.Contains(t, r.String(), place, "it says where")
				noticed[filepath.Ext(file)]++
			}
			undo()
		}
	}
	require.GreaterOrEqual(t, noticed[".sst"], 3)
	require.GreaterOrEqual(t, noticed[".seg"], 3)
	h.check()
}

func storeEpoch(t *testing.T, h *home) uint64 {
	t.Helper()
	s, err := pebble.Open(storeDir(h.data()), pebble.Options{ReadOnly: true})
	require.NoError(t, err)
	epoch, err := s.Epoch(t.Context())
	require.NoError(t, err)
	require.NoError(t, s.Close())
	return epoch
}

// A store that lost its end, or is an older copy, is behind its index.
func TestCheckFindsAStoreBehindItsIndex(t *testing.T) {
	t.Parallel()
	h := stocked(t)
	backup := filepath.Join(t.TempDir(), "store")
	require.NoError(t, os.CopyFS(backup, os.DirFS(storeDir(h.data()))))
	d := h.serve()
	_, err := d.as("ann").Write(t.Context(), "docs", note("later", "The harbour is closed."))
	require.NoError(t, err)
	d.stop()
	require.NoError(t, os.RemoveAll(storeDir(h.data())))
	require.NoError(t, os.CopyFS(storeDir(h.data()), os.DirFS(backup)))

	r := sluice(t, "check", h.data())
	require.Equal(t, 1, r.code, "%s", r)
	require.Contains(t, r.out, "writes are lost, or the store is an older copy")

	d = h.serve()
	require.Contains(t, d.err.text(), "the index is ahead of the store")
	require.Len(t, found(t, d.as("ann"), "docs", "harbour"), 20)
	d.stop()
	h.check()
}

// A daemon mends its index by itself, whatever happened to it.
func TestADamagedIndexIsBuiltAgain(t *testing.T) {
	t.Parallel()
	h := stocked(t)
	answers := func() (all []client.SearchResponse) {
		d := h.serve()
		for _, strategy := range []string{"sparse", "dense", "hybrid"} {
			r, err := d.as("ann").Search(t.Context(), "docs", client.SearchRequest{Query: "When does harbour 7 open?", K: 20, Strategy: strategy, Explain: true})
			require.NoError(t, err)
			all = append(all, r)
		}
		d.stop()
		return all
	}
	before := answers()
	require.Len(t, before[0].Results, 20)
	for what, damage := range map[string]func(file string){
		"flipped": func(file string) { flip(t, file, -20) }, // in the footer: vectors and postings are left to check
		"cut":     func(file string) { require.NoError(t, os.Truncate(file, 40)) },
		"removed": func(file string) { require.NoError(t, os.Remove(file)) },
	} {
		for _, file := range files(t, indexDir(h.data())) {
			damage(file)
			require.Equal(t, before, answers(), "%s %s", what, file)
			h.check()
		}
	}
	require.NoError(t, os.RemoveAll(indexDir(h.data())))
	require.Equal(t, before, answers(), "all of it removed")
	h.check()
}

// What reads an embedded store says of the data directory of a daemon on a
// database what to do instead, and leaves it as it is.
func TestStoreElsewhere(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	require.NoError(t, os.MkdirAll(filepath.Join(data, "index", "7f0c"), 0o700))
	for _, args := range [][]string{{"check", data}, {"dump", data}, {"snapshot", data, "monday"}} {
		r := sluice(t, args...)
		require.NotZero(t, r.code, args)
		require.Contains(t, r.err, "pg_dump", args)
	}
	entries, err := os.ReadDir(data)
	require.NoError(t, err)
	require.Len(t, entries, 1)
}
