package load

import (
	"fmt"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

const (
	finest  = time.Microsecond
	longest = 10 * time.Minute
	digits  = 3
)

// Histogram counts durations, exact to a thousandth. Not for concurrent use.
type Histogram struct{ counts *hdrhistogram.Histogram }

// NewHistogram returns an empty one.
func NewHistogram() Histogram {
	return Histogram{hdrhistogram.New(int64(finest), int64(longest), digits)}
}

// Record counts a duration; what is longer than ten minutes counts as that.
func (h Histogram) Record(d time.Duration) {
	_ = h.counts.RecordValue(int64(min(max(d, 0), longest))) // it fails on what is out of range
}

// Merge adds what another one counted.
func (h Histogram) Merge(other Histogram) { h.counts.Merge(other.counts) }

// Count is how many were recorded.
func (h Histogram) Count() int { return int(h.counts.TotalCount()) }

// Quantile is the duration that a share q of all, from 0 to 1, does not exceed.
func (h Histogram) Quantile(q float64) time.Duration {
	return time.Duration(h.counts.ValueAtPercentile(100 * q))
}

// Mean is that of all durations.
func (h Histogram) Mean() time.Duration { return time.Duration(h.counts.Mean()) }

// Max is the longest.
func (h Histogram) Max() time.Duration { return time.Duration(h.counts.Max()) }

// String is the histogram in HdrHistogram's V2 compressed encoding, in base64:
// nanoseconds.
func (h Histogram) String() string {
	data, err := h.counts.Encode(hdrhistogram.V2CompressedEncodingCookieBase)
	if err != nil {
		panic(err) // it writes to memory
	}
	return string(data)
}

// ParseHistogram reads what String wrote.
func ParseHistogram(text string) (Histogram, error) {
	counts, err := hdrhistogram.Decode([]byte(text))
	if err != nil {
		return Histogram{}, fmt.Errorf("a histogram: %w", err)
	}
	return Histogram{counts}, nil
}
