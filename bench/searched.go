package bench

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"sluice/bench/figures"
	"sluice/bench/load"
	"sluice/filter"
	"sluice/index"
	"sluice/index/local"
	"sluice/index/text"
)

const appliedRows = 4096 // in a batch

// searched is this program's index of the vectors.
type searched struct {
	dir     string
	options local.Options
	index   *local.Index
	reader  index.Reader
}

// openSearched opens the index in a folder, or builds it there, with default
// settings, and records what it takes.
func openSearched(ctx context.Context, dir string, v *Vectors, log io.Writer, out map[string]float64) (_ *searched, err error) {
	analyzer, err := text.New(text.Default)
	if err != nil {
		return nil, err
	}
	s := &searched{dir: filepath.Join(dir, "index"), options: local.Options{Dimensions: v.Dims, Analyzer: analyzer, Log: slog.New(slog.DiscardHandler)}}
	took, err := s.built(ctx, v, log)
	if err != nil {
		return nil, err
	}
	out["build_cpu_s"] = took
	if err := s.open(ctx, v, out); err != nil {
		return nil, errors.Join(err, s.close())
	}
	fmt.Fprintf(log, "index: %+v, built in %.1f CPU s, opened in %.0f ms, %.0f bytes a vector in memory, %.0f on disk\n", s.index.Stats(),
		took, out["open_ms"], out["bytes_per_vector"], out["disk_bytes_per_vector"])
	return s, nil
}

// origin is what an index was built by, and the CPU seconds that it took.
type origin struct {
	Commit  string  `json:"commit"`
	Seconds float64 `json:"cpu_s"`
}

// built returns the CPU seconds that building took, in this run or in an
// earlier one of the same commit.
func (s *searched) built(ctx context.Context, v *Vectors, log io.Writer) (float64, error) {
	note, o := s.dir+".json", origin{Commit: figures.Commit(ctx)}
	if data, err := os.ReadFile(note); err == nil {
		var before origin
		if err := json.Unmarshal(data, &before); err == nil && before.Commit == o.Commit && !strings.HasSuffix(o.Commit, "-modified") {
			return before.Seconds, nil
		}
	}
	if err := errors.Join(os.RemoveAll(note), os.RemoveAll(s.dir)); err != nil {
		return 0, err
	}
	fmt.Fprintf(log, "building the index of %d vectors\n", v.count())
	used := cpuTime()
	if err := s.build(ctx, v); err != nil {
		return 0, err
	}
	o.Seconds = (cpuTime() - used).Seconds()
	data, err := json.Marshal(o)
	if err != nil {
		return 0, err
	}
	return o.Seconds, save(note, data)
}

// at opens the same files, linked beside them under a number, set to a recall.
func (s *searched) at(recall float64, number int) (*searched, error) {
	linked := &searched{dir: fmt.Sprintf("%s-%d", s.dir, number), options: s.options}
	linked.options.Recall = recall
	err := errors.Join(os.RemoveAll(linked.dir), local.Link(s.dir, linked.dir, vfs.Default))
	if err == nil {
		err = linked.openReader()
	}
	if err != nil {
		return nil, errors.Join(err, linked.close(), os.RemoveAll(linked.dir))
	}
	return linked, nil
}

func (s *searched) build(ctx context.Context, v *Vectors) (err error) {
	if err := os.MkdirAll(filepath.Dir(s.dir), 0o755); err != nil {
		return err
	}
	ix, err := local.Open(s.dir, s.options)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, ix.Close()) }()
	for from := 0; from < v.count(); from += appliedRows {
		var batch index.Batch
		for row := from; row < min(from+appliedRows, v.count()); row++ {
			batch.Put = append(batch.Put, index.Document{Ordinal: uint32(row), Rows: []index.Row{{Row: uint32(row), Vector: v.Row(row)}}})
		}
		if err := ix.Apply(ctx, batch); err != nil {
			return err
		}
	}
	if err := errors.Join(ix.Apply(ctx, index.Batch{Epoch: 1}), ix.Flush(ctx)); err != nil {
		return err
	}
	return ix.Compact(ctx)
}

// open records the time and the memory that it takes.
func (s *searched) open(ctx context.Context, v *Vectors, out map[string]float64) (err error) {
	before := anonymous()
	start := time.Now()
	if err := s.openReader(); err != nil {
		return err
	}
	out["open_ms"] = milliseconds(time.Since(start))
	if _, err := s.reader.Dense(ctx, filter.SetOf(0), v.query(0), neighbours); err != nil {
		return err
	}
	out["bytes_per_vector"] = (anonymous() - before) / float64(v.count())
	out["segments"] = float64(s.index.Stats().Segments)
	size, err := sizeOf(s.dir)
	out["disk_bytes_per_vector"] = float64(size) / float64(v.count())
	return err
}

func (s *searched) openReader() (err error) {
	if s.index, err = local.Open(s.dir, s.options); err != nil {
		return err
	}
	s.reader, err = s.index.Reader()
	return err
}

// anonymous is the memory of this process without mapped files; 0: not known.
func anonymous() float64 {
	debug.FreeOSMemory()
	usage, err := load.UsageOf(os.Getpid())
	if err != nil {
		return 0
	}
	return float64(usage.Anonymous)
}

func sizeOf(dir string) (size int64, err error) {
	err = filepath.WalkDir(dir, func(_ string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		info, err := entry.Info()
		if err == nil {
			size += info.Size()
		}
		return err
	})
	return size, err
}

func (s *searched) close() (err error) {
	if s.reader != nil {
		s.reader.Close()
	}
	if s.index != nil {
		err = s.index.Close()
	}
	return err
}

// turn searches for the first queries, as a peer does: all of a filter one after
// the other, in several passes, then one by one. One search goes before: what ran
// in between has used the processor's caches.
func (s *searched) turn(ctx context.Context, p *point, queries, passes int) (t searchTurn, err error) {
	t = searchTurn{Times: make([]float64, queries), CPUTimes: make([]float64, queries), Hits: make([][]int, queries)}
	for first := range min(len(p.sets), queries) {
		if _, err := s.search(ctx, p, first); err != nil {
			return t, err
		}
		start, used := time.Now(), cpuTime()
		for range passes {
			for i := first; i < queries; i += len(p.sets) {
				if _, err := s.search(ctx, p, i); err != nil {
					return t, err
				}
			}
		}
		t.Seconds += time.Since(start).Seconds() / float64(passes)
		t.CPUSeconds += (cpuTime() - used).Seconds() / float64(passes)
		for i := first; i < queries; i += len(p.sets) {
			start, used := time.Now(), cpuTime()
			hits, err := s.search(ctx, p, i)
			if err != nil {
				return t, err
			}
			t.Times[i], t.CPUTimes[i] = time.Since(start).Seconds(), (cpuTime() - used).Seconds()
			if t.Hits[i], err = p.rowsOf(i, hits); err != nil {
				return t, err
			}
		}
	}
	return t, nil
}

func (s *searched) search(ctx context.Context, p *point, query int) ([]index.Hit, error) {
	return s.reader.Dense(ctx, p.set(query), p.vectors.query(query), neighbours)
}
