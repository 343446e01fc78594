package load

import (
	"bytes"
	"strconv"
	"sync"
	"time"
)

// maxStages bounds the names that a server can make this process keep.
const maxStages = 64

// Stages are the parts of requests that a server tells of in Server-Timing, by
// name. Safe for concurrent use.
type Stages struct {
	mu sync.Mutex
	of map[string]Histogram
}

func newStages() *Stages { return &Stages{of: map[string]Histogram{}} }

// All is the histograms; not while there is a load.
func (s *Stages) All() map[string]Histogram { return s.of }

// add takes down a header such as "resolve;dur=1.5, total;dur=2": milliseconds.
// What is no such thing is left out. It allocates nothing for known names.
func (s *Stages) add(header []byte) {
	if len(header) == 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(header) > 0 {
		var part []byte
		part, header, _ = bytes.Cut(header, []byte(","))
		name, value, ok := bytes.Cut(bytes.TrimSpace(part), []byte(";dur="))
		if !ok {
			continue
		}
		if ms, err := strconv.ParseFloat(string(value), 64); err == nil {
			s.record(name, time.Duration(ms*float64(time.Millisecond)))
		}
	}
}

func (s *Stages) record(name []byte, took time.Duration) {
	h, known := s.of[string(name)]
	if !known {
		if len(s.of) == maxStages {
			return
		}
		h = NewHistogram()
		s.of[string(name)] = h
	}
	h.Record(took)
}
