package cuda

import (
	"bytes"
	"log/slog"
	"sync"
)

// said is what a worker writes to its standard error: it goes to the log, line
// by line, and the last line is kept, which says why it ended.
type said struct {
	log *slog.Logger

	mu   sync.Mutex
	line []byte // that is not complete
	last string
}

const longestLine = 1 << 12

func (s *said) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, b := range p {
		if b != '\n' && len(s.line) < longestLine {
			s.line = append(s.line, b)
			continue
		}
		if s.last = string(bytes.TrimSpace(s.line)); s.last != "" {
			s.log.Warn("GPU worker", "says", s.last)
		}
		s.line = s.line[:0]
	}
	return len(p), nil
}

// suffix is the last line, to be put after another reason.
func (s *said) suffix() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.last == "" {
		return ""
	}
	return ": " + s.last
}
