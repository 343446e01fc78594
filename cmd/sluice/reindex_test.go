package main

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/ulikunitz/xz"

	"sluice/bench"
	"sluice/client"
)

const rebuilt = "rebuilt" // the collection

// reindexTrial is a collection whose daemon is killed while its generations change.
type reindexTrial struct {
	t         *testing.T
	home      *home
	random    *rand.Rand
	documents int
}

func newReindexTrial(t *testing.T, seed uint64, documents int) *reindexTrial {
	people := map[string]person{"root": {tenant: "acme", roles: []string{"admin"}}, "ann": {tenant: "acme", roles: []string{"read"}}}
	return &reindexTrial{t: t, home: newHome(t, people), random: rand.New(rand.NewPCG(seed, 7)), documents: documents}
}

// document i has sections that both chunkers cut, each in its own way; every
// third is not for ann.
func (r *reindexTrial) document(i int) client.Document {
	var text strings.Builder
	fmt.Fprintf(&text, "# Report %d\n", i)
	for s := range 6 {
		fmt.Fprintf(&text, "\n## Part %d\n\nword%dx%d. %s\n", s, i, s, strings.Repeat(fmt.Sprintf("The %d. ship of fleet %d left. ", s, i), 12))
	}
	d := client.Document{Key: fmt.Sprint("k", i), Format: "markdown", Text: text.String()}
	if i%3 == 0 {
		d.Readers = &[]string{"user:root"}
	}
	return d
}

func (r *reindexTrial) fill(d *served) {
	r.t.Helper()
	d.collection("root", rebuilt)
	for i := range r.documents {
		_, err := d.as("root").Write(r.t.Context(), rebuilt, r.document(i))
		require.NoError(r.t, err)
	}
}

// check: every document is found by its own words, by those who may read it and
// by nobody else, from one generation, whatever its job was doing.
func (r *reindexTrial) check(d *served) client.Generations {
	r.t.Helper()
	g, err := d.as("root").Generations(r.t.Context(), rebuilt)
	require.NoError(r.t, err)
	require.Equal(r.t, "serving", g.Generations[0].Role)
	for i := range r.documents {
		for _, name := range []string{"root", "ann"} {
			answer, err := d.as(name).Search(r.t.Context(), rebuilt, client.SearchRequest{Query: fmt.Sprintf("word%dx3", i), Strategy: "sparse"})
			require.NoError(r.t, err)
			want := []string{fmt.Sprint("k", i)}
			if name == "ann" && i%3 == 0 {
				want = nil
			}
			var keys []string
			for _, result := range answer.Results {
				keys = append(keys, result.Document)
			}
			require.Equal(r.t, want, keys, "%s as %s, generation %d", r.document(i).Key, name, answer.Generation)
		}
	}
	return g
}

// killWhileBuilding starts a job, kills the daemon when so many documents are built (or
// later, when that is the end), and returns the next daemon.
func (r *reindexTrial) killWhileBuilding(d *served, chunker string) *served {
	r.t.Helper()
	least := r.random.IntN(r.documents)
	_, err := d.as("root").Reindex(r.t.Context(), rebuilt, client.ReindexRequest{Chunker: chunker})
	require.NoError(r.t, err)
	_ = d.as("root").WatchReindex(r.t.Context(), rebuilt, func(g client.Generations) error {
		if g.Progress == nil || g.Progress.Documents >= least {
			return context.Canceled
		}
		return nil
	})
	d.kill()
	d.wait()
	r.home.check()
	return r.home.serve()
}

// killWhile kills the daemon while a change is under way.
func (r *reindexTrial) killWhile(d *served, action string) *served {
	r.t.Helper()
	asked := make(chan struct{})
	api := d.as("root")
	go func() {
		defer close(asked)
		_, _ = api.ChangeReindex(context.Background(), rebuilt, action, nil) // the daemon may be gone
	}()
	if r.random.IntN(2) == 0 {
		<-asked
	}
	d.kill()
	d.wait()
	<-asked
	r.home.check()
	return r.home.serve()
}

// finish waits until no job runs.
func (r *reindexTrial) finish(d *served) client.Generations {
	r.t.Helper()
	require.NoError(r.t, d.as("root").WatchReindex(r.t.Context(), rebuilt, func(client.Generations) error { return nil }))
	return r.check(d)
}

func TestKillsDuringAReindexLoseNothing(t *testing.T) {
	t.Parallel()
	rounds, documents := 6, 60
	if testing.Short() {
		rounds, documents = 1, 12
	}
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := newReindexTrial(t, seed, documents)
	d := r.home.serve()
	r.fill(d)
	for i := range rounds {
		chunker := []string{"fixed/1", "structure/1", "markdown/1"}[i%3]
		d = r.killWhileBuilding(d, chunker)
		r.check(d)
		g := r.finish(d)
		require.Equal(t, chunker, g.Generations[0].Chunker, "the next daemon went on with it")
		require.Len(t, g.Generations, 2)
		for _, action := range []string{"rollback", "drop"} {
			d = r.killWhile(d, action)
			r.check(d)
		}
		if g = r.check(d); len(g.Generations) > 1 {
			_, err := d.as("root").ChangeReindex(t.Context(), rebuilt, "drop", nil)
			require.NoError(t, err)
		}
	}
	r.check(d)
	d.stop()
	r.home.check()
}

// Searches at a steady rate see one generation each, and none fails, while
// generations are built, switched, rolled back and dropped.
func TestSearchesSeeOneGeneration(t *testing.T) {
	t.Parallel()
	r := newReindexTrial(t, 1, 6)
	d := r.home.serve()
	r.fill(d)
	archive := archiveOf(t, r)
	file, err := bench.Reindex(t.Context(), bench.ReindexOptions{
		API: func(string) (*client.Client, error) { return d.as("root"), nil },
		Old: archive, New: archive, Cycles: 4, Switched: 6, Rate: 20, Log: t.Output(),
	})
	require.NoError(t, err)
	require.Zero(t, file.Figures["unchanged.embedded_chunks"])
	require.NotZero(t, file.Figures["searches"])
	require.Zero(t, file.Figures["failed_queries"])
	require.Zero(t, file.Figures["mixed_answers"])
}

// archiveOf packs the trial's documents as the benchmark reads them.
func archiveOf(t *testing.T, r *reindexTrial) string {
	t.Helper()
	var packed bytes.Buffer
	compressed, err := xz.NewWriter(&packed)
	require.NoError(t, err)
	archive := tar.NewWriter(compressed)
	for i := range r.documents {
		text := r.document(i).Text
		require.NoError(t, archive.WriteHeader(&tar.Header{Name: fmt.Sprint(i, ".md"), Mode: 0o600, Size: int64(len(text)), Typeflag: tar.TypeReg}))
		_, err := archive.Write([]byte(text))
		require.NoError(t, err)
	}
	require.NoError(t, errors.Join(archive.Close(), compressed.Close()))
	path := r.home.path("documents.tar.xz")
	require.NoError(t, os.WriteFile(path, packed.Bytes(), 0o600))
	return path
}

func TestReindexCommand(t *testing.T) {
	t.Parallel()
	r := newReindexTrial(t, 1, 3)
	d := r.home.serve()
	r.fill(d)
	estimate := d.run("root", "reindex", "-c", rebuilt, "--chunker", "fixed/1")
	require.Zero(t, estimate.code, "%s", estimate)
	require.Contains(t, estimate.out, "fixed/1: 3 documents")
	require.Contains(t, estimate.out, "Nothing was started")
	done := d.run("root", "reindex", "-c", rebuilt, "--chunker", "fixed/1", "--yes")
	require.Zero(t, done.code, "%s", done)
	require.Contains(t, done.out, "passed  structure: 3 documents agree")
	require.Contains(t, done.out, "serving   fixed/1")
	again := d.run("root", "reindex", "-c", rebuilt, "--chunker", "fixed/1", "--yes")
	require.Equal(t, 1, again.code)
	require.Contains(t, again.err, "drop it first")
	require.Zero(t, d.run("root", "reindex", "rollback", "-c", rebuilt).code)
	require.Contains(t, d.run("root", "reindex", "status", "-c", rebuilt).out, "serving   by format")
	require.Zero(t, d.run("root", "reindex", "drop", "-c", rebuilt).code)
	require.Equal(t, 1, d.run("root", "reindex", "-c", rebuilt, "--chunker", "none/1").code)
	done = d.run("root", "reindex", "-c", rebuilt, "--chunker", "fixed/1", "--yes")
	require.Zero(t, done.code, "%s", done)
	d.stop()
	deep := sluice(t, "check", "--deep", r.home.data())
	require.Zero(t, deep.code, "%s", deep)
	d = r.home.serve()
	require.Zero(t, d.run("root", "reindex", "drop", "-c", rebuilt).code)
	d.stop()
	deep = sluice(t, "check", "--deep", r.home.data())
	require.Zero(t, deep.code, "%s", deep)
	dumped := sluice(t, "dump", r.home.data())
	require.Equal(t, 3, strings.Count(dumped.out, "\n"), "the generation that serves\n%s", dumped)
}
