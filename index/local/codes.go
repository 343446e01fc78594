package local

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"runtime"

	"sluice/filter"
	"sluice/filter/lru"
	"sluice/index"
	"sluice/index/local/ivf"
)

const (
	codesSuffix = ".ivf"

	// A sealed segment of fewer rows is scanned in float32, one of at least
	// defaultListedRows gets lists when it is merged.
	defaultCodedRows  = 1024
	defaultListedRows = 4096

	// What a segment remembers of the sets it was searched with, in bytes.
	allowedBudgetPerRow = 32
	leastAllowedBudget  = 1 << 20
)

// codesName is the file beside a segment that holds its vector codes.
func codesName(id uint64) string { return fmt.Sprintf("%016x%s", id, codesSuffix) }

// codes are a segment's vector codes, in memory, and what of them past
// searches have left.
type codes struct {
	index   *ivf.Index
	free    func()
	allowed *lru.Cache[filter.Set, *ivf.Allowed] // the segment's slots; deletions are not considered
}

func newCodes(x *ivf.Index, free func()) *codes {
	budget := max(allowedBudgetPerRow*x.Rows(), leastAllowedBudget)
	return &codes{index: x, free: free, allowed: lru.New[filter.Set, *ivf.Allowed](budget)}
}

// buildThreads is how many goroutines make codes: half of what the searches could use.
func (o Options) buildThreads() int {
	if o.BuildThreads > 0 {
		return o.BuildThreads
	}
	return max(runtime.GOMAXPROCS(0)/2, 1)
}

// lists is how many lists a segment of so many rows gets.
func (o Options) lists(rows int) int {
	if rows < o.listedRows {
		return 0
	}
	return ivf.Lists(rows)
}

// writeCodes gives a segment codes, in a file and in memory, if it has enough rows.
func (ix *Index) writeCodes(ctx context.Context, seg *segment, lists int) error {
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
		_, err := w.Write(built.Bytes())
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
	seg.codes = newCodes(x, free)
	return nil
}

// needsLists reports whether a sealed segment has outgrown scans of all rows:
// one that Flush sealed, or that an earlier version wrote.
func (s *segment) needsLists(o Options) bool {
	return s.rows() >= o.listedRows && (s.codes == nil || !s.codes.index.Listed())
}

// allowedSlots returns the slots of the segment that a set admits, deleted or
// not. Sets are remembered: they are values that live as long as an epoch.
func (s *segment) allowedSlots(set filter.Set) *ivf.Allowed {
	if a, ok := s.codes.allowed.Get(set); ok {
		return a
	}
	words := make([]uint64, (s.rows()+63)/64)
	s.eachShared(set, func(d document) bool {
		setBits(words, d.lo, d.hi)
		return true
	})
	a := ivf.NewAllowed(words)
	s.codes.allowed.Put(set, a, a.Size(s.codes.index))
	return a
}

// fewDocuments is how many times smaller than a set a segment is whose
// documents are looked up in the set, one by one.
const fewDocuments = 8

// eachShared calls visit for the documents of the segment that are in the set,
// until it returns false.
func (s *segment) eachShared(set filter.Set, visit func(document) bool) {
	if s.documents()*fewDocuments > set.Len() {
		s.join(set, visit)
		return
	}
	for d := range s.documents() {
		if set.Contains(s.ordinal(d)) && !visit(s.document(d)) {
			return
		}
	}
}

// join walks both in order, in time logarithmic in the gaps between what they share.
func (s *segment) join(set filter.Set, visit func(document) bool) {
	var some [512]uint32
	d, ordinals := 0, set.Many()
	for n := ordinals.NextMany(some[:]); n > 0; n = ordinals.NextMany(some[:]) {
		for _, ordinal := range some[:n] {
			if d = s.seek(d, ordinal); d == s.documents() {
				return
			}
			if s.ordinal(d) != ordinal {
				continue
			}
			if !visit(s.document(d)) {
				return
			}
			d++
		}
	}
}

func setBits(words []uint64, lo, hi uint32) {
	for slot := lo; slot < hi; slot++ {
		words[slot/64] |= 1 << (slot % 64)
	}
}

// liveBits returns a bit for each of so many slots, all set.
func liveBits(slots int) []uint64 {
	words := make([]uint64, (slots+63)/64)
	setBits(words, 0, uint32(slots))
	return words
}
