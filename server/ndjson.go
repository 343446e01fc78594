package server

import (
	"bufio"
	"bytes"
	"errors"
	"io"
)

var errLineTooLong = errors.New("the line is too long")

// lines splits a stream at '\n'. Blank lines are counted and left out; the
// last line may lack its '\n'.
type lines struct {
	in     *bufio.Reader
	limit  int // bytes of a line
	budget *Budget
	count  int // lines so far: the 1-based number of the last one
}

func newLines(in io.Reader, limit int, b *Budget) *lines {
	return &lines{in: bufio.NewReaderSize(in, 64<<10), limit: limit, budget: b}
}

// next returns a line that is the caller's to keep; its bytes are taken from
// the budget, and the caller gives them back. A line over the limit or the
// budget is skipped to its end, and errLineTooLong or errNoRoom says so;
// reading can go on.
func (l *lines) next() ([]byte, error) {
	for {
		l.count++
		line, err := l.read()
		if err == nil && len(bytes.TrimSpace(line)) == 0 {
			l.budget.Give(len(line))
			continue
		}
		return line, err
	}
}

// read returns the line without its '\n'.
func (l *lines) read() (line []byte, err error) {
	var fault error // why the line is skipped
	for length := 0; ; {
		part, end := l.in.ReadSlice('\n')
		length += len(part)
		part = bytes.TrimSuffix(part, []byte("\n"))
		if fault == nil {
			line, fault = l.extend(line, part)
		}
		switch {
		case errors.Is(end, bufio.ErrBufferFull):
			continue
		case end != nil && !(errors.Is(end, io.EOF) && length > 0):
			fault = end
		}
		if fault != nil {
			l.budget.Give(len(line))
			return nil, fault
		}
		return line, nil
	}
}

// extend appends a part to a line, or says why it may not.
func (l *lines) extend(line, part []byte) ([]byte, error) {
	if len(line)+len(part) > l.limit {
		return line, errLineTooLong
	}
	if !l.budget.take(len(part)) {
		return line, errNoRoom
	}
	return append(line, part...), nil
}
