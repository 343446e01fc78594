package local

import (
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"runtime"

	"github.com/cockroachdb/pebble/v2/vfs"
	"golang.org/x/time/rate"

	"sluice/index"
	"sluice/index/local/ivf"
	"sluice/index/text"
)

// Options say what an index holds. Those of the first three fields are part of
// the index: opened with others it must be rebuilt.
type Options struct {
	Dimensions int // 0: rows have no vectors, only the lexical leg finds them
	Analyzer   text.Analyzer
	Model      string // digest of what made the vectors; only compared

	// Recall is the share of the ten nearest rows that the dense leg finds on
	// average, where so many are allowed that it does not score all; 0.9 to 0.995,
	// 0: ivf.DefaultRecall. It is a matter of searches, not of the files.
	Recall float64

	FreshRows  int           // rows kept in memory before they are sealed; 0: 8,192
	FreshBytes int           // the same in bytes; 0: 32 MiB
	Cores      int           // of which half make codes; 0: those that the runtime uses
	MergeLimit *rate.Limiter // of bytes that merges in the background write, shared with other indexes; nil: none
	FS         vfs.FS        // nil: the operating system's
	// Hold has a copy made of the vectors of a sealed segment, rows of dims numbers,
	// that is searched in its stead; nil: none.
	Hold     func(vectors []float32, dims int) Held
	HoldRows int          // segments of fewer rows get none; 0: 65,536
	Log      *slog.Logger // background work that failed and is tried again; nil: slog.Default()

	manualMerge bool // tests call merge themselves
	codedRows   int  // tests want codes of fewer rows; 0: defaultCodedRows
	listedRows  int  // and lists; 0: defaultListedRows
}

// Bounds of Options.Recall.
const (
	LeastRecall = 0.9
	MostRecall  = 0.995
)

const (
	maxDimensions     = 1 << 16
	defaultFreshRows  = 8192
	defaultFreshBytes = 32 << 20
	defaultHoldRows   = 1 << 16 // to be measured on a GPU
)

func (o Options) space() *ivf.Space { return ivf.NewSpace(o.Dimensions, o.Recall) }

// withDefaults fills in and validates.
func (o Options) withDefaults() (Options, error) {
	if o.FreshRows == 0 {
		o.FreshRows = defaultFreshRows
	}
	if o.FreshBytes == 0 {
		o.FreshBytes = defaultFreshBytes
	}
	if o.Dimensions == 0 {
		o.codedRows, o.listedRows, o.Hold = math.MaxInt, math.MaxInt, nil
	}
	if o.codedRows == 0 {
		o.codedRows = defaultCodedRows
	}
	if o.listedRows == 0 {
		o.listedRows = defaultListedRows
	}
	if o.Recall == 0 {
		o.Recall = ivf.DefaultRecall
	}
	if o.HoldRows == 0 {
		o.HoldRows = defaultHoldRows
	}
	if o.Cores == 0 {
		o.Cores = runtime.GOMAXPROCS(0)
	}
	if o.FS == nil {
		o.FS = vfs.Default
	}
	if o.Log == nil {
		o.Log = slog.Default()
	}
	return o, o.validate()
}

func (o Options) validate() error {
	switch {
	case o.Dimensions < 0 || o.Dimensions > maxDimensions:
		return fmt.Errorf("%d dimensions, 0 to %d are possible: %w", o.Dimensions, maxDimensions, index.ErrInvalid)
	case o.Analyzer == text.Analyzer{}:
		return fmt.Errorf("no analyzer: %w", index.ErrInvalid)
	case len(o.Model) > maxName:
		return fmt.Errorf("model digest of %d bytes: %w", len(o.Model), index.ErrInvalid)
	case !(o.Recall >= LeastRecall && o.Recall <= MostRecall):
		return fmt.Errorf("a recall of %g, %g to %g are possible: %w", o.Recall, LeastRecall, MostRecall, index.ErrInvalid)
	case o.FreshRows < 0 || o.FreshBytes < 0:
		return fmt.Errorf("negative bound on fresh rows: %w", index.ErrInvalid)
	case o.MergeLimit != nil && o.MergeLimit.Burst() < 1:
		return fmt.Errorf("a limit on merges that lets nothing through: %w", index.ErrInvalid)
	case binary.NativeEndian.Uint16([]byte{1, 0}) != 1:
		return errors.New("the embedded index needs a little-endian processor")
	}
	return nil
}

// mismatch names what an index on disk was made with that differs; "" if nothing does.
func (o Options) mismatch(m *manifest) string {
	switch {
	case int(m.dims) != o.Dimensions:
		return fmt.Sprintf("%d dimensions instead of %d", m.dims, o.Dimensions)
	case m.analyzer != o.Analyzer.Identity():
		return fmt.Sprintf("analyzer %s instead of %s", m.analyzer, o.Analyzer.Identity())
	case m.model != o.Model:
		return fmt.Sprintf("model %s instead of %s", m.model, o.Model)
	}
	return ""
}
