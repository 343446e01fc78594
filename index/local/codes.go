package local

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"

	"golang.org/x/time/rate"

	"sluice/index"
	"sluice/index/local/ivf"
)

const (
	codesSuffix = ".ivf"

	// A sealed segment of fewer rows is scanned in float32, one of at least
	// defaultListedRows gets lists when it is merged.
	defaultCodedRows  = 1024
	defaultListedRows = 4096
)

// codesName is the file beside a segment that holds its vector codes.
func codesName(id uint64) string { return fmt.Sprintf("%016x%s", id, codesSuffix) }

// codes are a segment's vector codes, in memory.
type codes struct {
	index *ivf.Index
	free  func()
}

// buildThreads is how many goroutines make codes: half of what the searches could use.
func (o Options) buildThreads() int { return max(o.Cores/2, 1) }

// lists is how many lists a segment of so many rows gets.
func (o Options) lists(rows int) int {
	if rows < o.listedRows {
		return 0
	}
	return ivf.Lists(rows)
}

// writeCodes gives a segment codes, in a file and in memory, if it has enough rows.
func (ix *Index) writeCodes(ctx context.Context, seg *segment, lists int, limit *rate.Limiter) error {
	if seg.rows() < ix.options.codedRows {
		return nil
	}
	vector := func(row int) []float32 { return seg.vector(uint32(row)) }
	built, err := ix.space.Build(ctx, seg.rows(), vector, ivf.Options{
		Lists: lists, Threads: ix.options.buildThreads(), Seed: seg.id, Owner: seg.sum})
	if err != nil {
		return err
	}
	err = writeFile(ix.options.FS, ix.dir, codesName(seg.id), func(w io.Writer) error {
		_, err := paced(ctx, w, limit).Write(built.Bytes())
		return err
	})
	if err != nil {
		return err
	}
	return openCodes(ix.dir, ix.options, ix.space, seg)
}

// openCodes loads the codes of a segment, if it has any.
func openCodes(dir string, options Options, space *ivf.Space, seg *segment) error {
	path := options.FS.PathJoin(dir, codesName(seg.id))
	data, free, err := loadFile(options.FS, path, options.Log)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("opening vector codes %s: %w", path, err)
	}
	x, err := space.Open(data)
	switch {
	case errors.Is(err, ivf.ErrNewer):
		err = fmt.Errorf("opening %s: %w: %w", path, index.ErrNewerFormat, err)
	case err != nil:
		err = fmt.Errorf("opening %s: %w: %w", path, index.ErrRebuild, err)
	case x.Owner() != seg.sum || x.Rows() != seg.rows():
		err = fmt.Errorf("%s is not of its segment: %w", path, index.ErrRebuild)
	}
	if err != nil {
		free()
		return err
	}
	seg.codes = &codes{x, free}
	return nil
}

// needsLists reports whether a sealed segment has outgrown scans of all rows:
// one that Flush sealed, or that an earlier version wrote.
func (s *segment) needsLists(o Options) bool {
	return s.rows() >= o.listedRows && (s.codes == nil || !s.codes.index.Listed())
}
