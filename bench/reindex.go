package bench

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"sluice/bench/figures"
	"sluice/chunk"
	"sluice/client"
	"sluice/document"
	"sluice/kernels/simd"
)

const (
	reindexFormat  = "markdown"
	presentChunker = "markdown/1" // the one of the format
	otherChunker   = "fixed/1"
	changedEvery   = 10 // chunks
)

// ReindexOptions says what Reindex measures.
type ReindexOptions struct {
	API       func(tenant string) (*client.Client, error) // of a daemon, as an administrator
	Old, New  string                                      // archives (.tar.xz) of two states of the same documents
	Documents int                                         // of New that are taken, spread evenly; 0: all
	Switched  int                                         // of these, in the collection that is switched to and fro (default 30)
	Cycles    int                                         // builds, switches, rollbacks and drops under load (default 100)
	Rate      float64                                     // searches a second meanwhile (default 50)
	Log       io.Writer
}

// Reindex measures updates and reindexes of a daemon. The caller sets the file's
// Command.
//
// full.seconds: ingesting New into an empty collection; changed10.seconds: the
// same, edited in so many places that a tenth of its chunks are others
// (changed10.share); update.seconds: New over Old (update.share of New's chunks
// are not in Old); ratio.changed10_to_full and ratio.update_to_full: how many
// times faster than full. unchanged.embedded_chunks and unchanged.seconds: a
// reindex by the chunker that serves. replan.seconds: cutting all documents by
// structure/1 for an estimate, without embedding. searches, failed_queries,
// refused_queries (429), mixed_answers (with a passage that the generation it names does not have) over
// cycles of build, switch, rollback twice and drop.
func Reindex(ctx context.Context, o ReindexOptions) (figures.File, error) {
	file := figures.New(ctx, simd.Best().Level)
	m := &reindexRun{ReindexOptions: o, out: file.Figures}
	var errs [2]error
	m.api, errs[0] = o.API("full")
	m.apart, errs[1] = o.API("update")
	if err := errors.Join(errs[:]...); err != nil {
		return figures.File{}, err
	}
	defer m.api.CloseIdle()
	defer m.apart.CloseIdle()
	return file, m.measure(ctx)
}

type reindexRun struct {
	ReindexOptions
	api   *client.Client
	apart *client.Client // of another tenant: what one has embedded is not there for the other
	out   map[string]float64
	docs  []client.Document
}

func (m *reindexRun) measure(ctx context.Context) (err error) {
	if m.docs, err = readDocuments(m.New, nil, m.Documents); err != nil {
		return err
	}
	taken := map[string]bool{}
	for _, d := range m.docs {
		taken[d.Key] = true
	}
	old, err := readDocuments(m.Old, taken, 0)
	if err != nil {
		return err
	}
	m.out["documents"] = float64(len(m.docs))
	for _, step := range []func(context.Context) error{
		m.full, m.changed, m.unchanged, m.replan, func(ctx context.Context) error { return m.update(ctx, old) }, m.cycles,
	} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return nil
}

// readDocuments reads the texts of an archive: those that are wanted (nil: all),
// at most so many, spread evenly.
func readDocuments(path string, wanted map[string]bool, most int) (docs []client.Document, err error) {
	data, err := os.ReadFile(filepath.Clean(path))
	if err != nil {
		return nil, err
	}
	err = eachText(data, func(name, text string) {
		if strings.TrimSpace(text) != "" && (wanted == nil || wanted[name]) {
			docs = append(docs, client.Document{Key: name, Format: reindexFormat, Text: text})
		}
	})
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", path, err)
	}
	if most <= 0 || most >= len(docs) {
		return docs, nil
	}
	spread := make([]client.Document, most)
	for i := range spread {
		spread[i] = docs[i*len(docs)/most]
	}
	return spread, nil
}

func (m *reindexRun) say(format string, args ...any) { fmt.Fprintf(m.Log, format+"\n", args...) }

// ingest creates the collection if it is not there, and returns how long the
// documents took.
func (m *reindexRun) ingest(ctx context.Context, api *client.Client, collection string, docs []client.Document) (float64, error) {
	if _, err := api.CreateCollection(ctx, collection, client.CollectionSettings{}); err != nil {
		return 0, err
	}
	began := time.Now()
	var failed error
	err := api.Ingest(ctx, collection, inOrder(docs), func(r client.WriteResult) error {
		if r.Error != nil {
			failed = errors.Join(failed, fmt.Errorf("%s: %s", r.Key, r.Error))
		}
		return nil
	})
	return time.Since(began).Seconds(), errors.Join(err, failed)
}

func inOrder(docs []client.Document) iter.Seq2[client.Document, error] {
	return func(yield func(client.Document, error) bool) {
		for _, d := range docs {
			if !yield(d, nil) {
				return
			}
		}
	}
}

func (m *reindexRun) full(ctx context.Context) (err error) {
	if m.out["full.seconds"], err = m.ingest(ctx, m.api, "full", m.docs); err != nil {
		return err
	}
	texts, err := chunkTexts(m.docs)
	m.out["chunks"] = float64(len(texts))
	m.say("%d documents from scratch: %.1f s", len(m.docs), m.out["full.seconds"])
	return err
}

// changed edits one chunk in ten, in place.
func (m *reindexRun) changed(ctx context.Context) error {
	edited, err := edit(m.docs)
	if err != nil {
		return err
	}
	return m.compare(ctx, m.api, "changed10", "full", m.docs, edited)
}

func (m *reindexRun) update(ctx context.Context, old []client.Document) error {
	if _, err := m.ingest(ctx, m.apart, "update", old); err != nil {
		return err
	}
	return m.compare(ctx, m.apart, "update", "update", old, m.docs)
}

// compare writes after over before, which the collection has.
func (m *reindexRun) compare(ctx context.Context, api *client.Client, name, collection string, before, after []client.Document) (err error) {
	had, err := chunkTexts(before)
	if err != nil {
		return err
	}
	has, err := chunkTexts(after)
	if err != nil {
		return err
	}
	fresh := 0
	for text := range has {
		if !had[text] {
			fresh++
		}
	}
	if m.out[name+".seconds"], err = m.ingest(ctx, api, collection, after); err != nil {
		return err
	}
	m.out[name+".share"] = float64(fresh) / float64(len(has))
	m.out["ratio."+name+"_to_full"] = m.out["full.seconds"] / m.out[name+".seconds"]
	m.say("%s: %.1f %% of the chunks are others: %.1f s, %.1f times faster", name, 100*m.out[name+".share"], m.out[name+".seconds"], m.out["ratio."+name+"_to_full"])
	return nil
}

// chunkTexts is what is embedded of documents, by the chunker of their format.
func chunkTexts(docs []client.Document) (map[string]bool, error) {
	texts := map[string]bool{}
	for _, d := range docs {
		parsed, chunks, err := cut(d, presentChunker)
		if err != nil {
			return nil, err
		}
		for _, c := range chunks {
			texts[parsed.Title+"\x00"+chunk.EmbedText(parsed.Text, c)] = true
		}
	}
	return texts, nil
}

func cut(d client.Document, chunker string) (document.Document, []chunk.Chunk, error) {
	parsed, err := document.Parse(d.Format, []byte(d.Text))
	if err != nil {
		return parsed, nil, fmt.Errorf("%s: %w", d.Key, err)
	}
	c, err := chunk.Named(chunker)
	if err != nil {
		return parsed, nil, err
	}
	return parsed, c.Chunk(parsed), nil
}

// edit changes a letter of every tenth chunk, so that no other chunk changes.
func edit(docs []client.Document) ([]client.Document, error) {
	edited, at := slices.Clone(docs), 0
	for i, d := range docs {
		parsed, chunks, err := cut(d, presentChunker)
		if err != nil {
			return nil, err
		}
		text := []byte(parsed.Text)
		for _, c := range chunks {
			if at++; at%changedEvery == 0 {
				misspell(text[c.Start:c.End])
			}
		}
		edited[i].Text = string(text)
	}
	return edited, nil
}

// misspell changes the last small letter, if there is any.
func misspell(text []byte) {
	i := bytes.LastIndexFunc(text, func(r rune) bool { return 'a' <= r && r < 'z' })
	if i >= 0 {
		text[i]++
	}
}

// unchanged reindexes by the chunker that serves.
func (m *reindexRun) unchanged(ctx context.Context) error {
	began := time.Now()
	g, err := m.reindex(ctx, "full", presentChunker)
	if err != nil {
		return err
	}
	m.out["unchanged.seconds"] = time.Since(began).Seconds()
	m.out["unchanged.embedded_chunks"] = float64(g.Job.Embedded)
	m.out["unchanged.reused_chunks"] = float64(g.Job.Reused)
	m.say("unchanged: %d chunks embedded, %d reused: %.1f s", g.Job.Embedded, g.Job.Reused, m.out["unchanged.seconds"])
	_, err = m.api.ChangeReindex(ctx, "full", "drop", nil)
	return err
}

// reindex returns the generation that then serves.
func (m *reindexRun) reindex(ctx context.Context, collection, chunker string) (g client.Generation, err error) {
	if _, err := m.api.Reindex(ctx, collection, client.ReindexRequest{Chunker: chunker}); err != nil {
		return g, err
	}
	if err := m.api.WatchReindex(ctx, collection, func(client.Generations) error { return nil }); err != nil {
		return g, err
	}
	all, err := m.api.Generations(ctx, collection)
	if err != nil {
		return g, err
	}
	for _, one := range all.Generations {
		if one.Role == "building" {
			return g, fmt.Errorf("the reindex of %s by %s is %s: %s", collection, chunker, one.Job.State, one.Job.Reason)
		}
	}
	return all.Generations[0], nil
}

func (m *reindexRun) replan(ctx context.Context) error {
	began := time.Now()
	for _, d := range m.docs {
		if _, _, err := cut(d, "structure/1"); err != nil {
			return err
		}
	}
	m.out["replan.seconds"] = time.Since(began).Seconds()
	return ctx.Err()
}

// cycles switches a collection to and fro while it is searched.
func (m *reindexRun) cycles(ctx context.Context) error {
	docs := m.docs[:min(len(m.docs), max(1, m.Switched))]
	if _, err := m.ingest(ctx, m.api, "switched", docs); err != nil {
		return err
	}
	s := &searchers{api: m.api, passages: map[string]map[passageAt]bool{}, chunkers: map[uint32]string{}}
	if err := s.learn(docs); err != nil {
		return err
	}
	searching, stop := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() { defer close(done); s.run(searching, m.Rate) }()
	err := m.turns(ctx, s)
	stop()
	<-done
	failed, mixed := s.judge()
	m.out["cycles"], m.out["searches"] = float64(m.Cycles), float64(len(s.answers))+float64(s.failed.Load())
	m.out["failed_queries"], m.out["mixed_answers"] = float64(failed), float64(mixed)
	m.out["refused_queries"] = float64(s.refused.Load())
	m.say("%d cycles: %.0f searches, %d failed, %d mixed, %.0f refused for want of room", m.Cycles, m.out["searches"], failed, mixed, m.out["refused_queries"])
	return err
}

func (m *reindexRun) turns(ctx context.Context, s *searchers) error {
	first, err := m.api.Generations(ctx, "switched")
	if err != nil {
		return err
	}
	s.chunkers[first.Generations[0].ID] = presentChunker
	for i := range m.Cycles {
		chunker := []string{otherChunker, presentChunker}[i%2]
		g, err := m.reindex(ctx, "switched", chunker)
		if err != nil {
			return err
		}
		s.chunkers[g.ID] = chunker
		for _, action := range []string{"rollback", "rollback", "drop"} {
			if _, err := m.api.ChangeReindex(ctx, "switched", action, nil); err != nil {
				return fmt.Errorf("%s: %w", action, err)
			}
		}
	}
	return nil
}

type passageAt struct {
	document   string
	start, end int
}

// searchers search at a rate, and keep what they find.
type searchers struct {
	api      *client.Client
	queries  []string
	passages map[string]map[passageAt]bool // that each chunker makes
	chunkers map[uint32]string             // of each generation
	failed   atomic.Int64
	refused  atomic.Int64 // with 429

	mu      sync.Mutex
	answers []client.SearchResponse
	flight  sync.WaitGroup
}

// learn cuts the documents by both chunkers, and takes queries from them.
func (s *searchers) learn(docs []client.Document) error {
	for _, chunker := range []string{presentChunker, otherChunker} {
		s.passages[chunker] = map[passageAt]bool{}
		for _, d := range docs {
			parsed, chunks, err := cut(d, chunker)
			if err != nil {
				return err
			}
			for _, c := range chunks {
				s.passages[chunker][passageAt{d.Key, c.Start, c.End}] = true
			}
			words := strings.Fields(parsed.Text)
			s.queries = append(s.queries, strings.Join(words[len(words)/3:min(len(words), len(words)/3+6)], " "))
		}
	}
	return nil
}

// run begins so many searches a second, however long they take.
func (s *searchers) run(ctx context.Context, rate float64) {
	ticker := time.NewTicker(time.Duration(float64(time.Second) / rate))
	defer ticker.Stop()
	defer s.flight.Wait()
	for i := 0; ; i++ {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		s.flight.Go(func() { s.search(context.WithoutCancel(ctx), s.queries[i%len(s.queries)]) })
	}
}

func (s *searchers) search(ctx context.Context, query string) {
	answer, err := s.api.Search(ctx, "switched", client.SearchRequest{Query: query})
	var problem *client.Problem
	if errors.As(err, &problem) && problem.Status == http.StatusTooManyRequests {
		s.refused.Add(1)
		return
	}
	if err != nil {
		s.failed.Add(1)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answers = append(s.answers, answer)
}

// judge counts answers that are none, and those that are of two generations.
func (s *searchers) judge() (failed, mixed int) {
	failed = int(s.failed.Load())
	for _, answer := range s.answers {
		if len(answer.Results) == 0 || len(answer.Degraded) > 0 {
			failed++
		}
		chunker := s.chunkers[answer.Generation]
		if slices.ContainsFunc(answer.Results, func(r client.SearchResult) bool {
			return !s.passages[chunker][passageAt{r.Document, r.Start, r.End}]
		}) {
			mixed++
		}
	}
	return failed, mixed
}
