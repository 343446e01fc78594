package server

import (
	"bytes"
	"io"
	"sync"
)

// pipe is io.Pipe with a buffer: a write waits only while limit bytes are unread.
type pipe struct {
	mu      sync.Mutex
	changed sync.Cond
	buffer  bytes.Buffer
	limit   int
	noMore  bool // the writer is done
	gone    bool // the reader is
}

func newPipe(limit int) *pipe {
	p := &pipe{limit: limit}
	p.changed.L = &p.mu
	return p
}

// write appends the data; when the reader has gone it is dropped.
func (p *pipe) write(data []byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for p.buffer.Len() >= p.limit && !p.gone {
		p.changed.Wait()
	}
	if !p.gone {
		p.buffer.Write(data)
	}
	p.changed.Broadcast()
}

// Read waits for data or for the writer's end.
func (p *pipe) Read(into []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for p.buffer.Len() == 0 && !p.noMore {
		p.changed.Wait()
	}
	if p.buffer.Len() == 0 {
		return 0, io.EOF
	}
	p.changed.Broadcast()
	return p.buffer.Read(into)
}

func (p *pipe) closeWrite() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.noMore = true
	p.changed.Broadcast()
}

func (p *pipe) closeRead() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.gone = true
	p.changed.Broadcast()
}
