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
	in    *bufio.Reader
	limit int // bytes of a line
	count int // lines so far: the 1-based number of the last one
}

func newLines(in io.Reader, limit int) *lines {
	return &lines{in: bufio.NewReaderSize(in, 64<<10), limit: limit}
}

// next returns a line that is the caller's to keep. A line over the limit is
// skipped to its end, and errLineTooLong says so; reading can go on.
func (l *lines) next() ([]byte, error) {
	for {
		l.count++
		line, err := l.read()
		if err != nil && !errors.Is(err, errLineTooLong) {
			return nil, err
		}
		if err != nil || len(bytes.TrimSpace(line)) > 0 {
			return line, err
		}
	}
}

func (l *lines) read() ([]byte, error) {
	var line []byte
	length := 0
	for {
		part, err := l.in.ReadSlice('\n')
		length += len(part)
		if length <= l.limit+1 { // with its '\n'
			line = append(line, part...)
		}
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case err != nil && !(errors.Is(err, io.EOF) && length > 0):
			return nil, err
		}
		line = bytes.TrimSuffix(line, []byte("\n"))
		if length > l.limit+1 || len(line) > l.limit {
			return nil, errLineTooLong
		}
		return line, nil
	}
}
