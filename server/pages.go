package server

import (
	"net"

	"github.com/valyala/fasthttp"
)

const (
	firstPage   = 4 << 10
	largestPage = 64 << 10
)

// pages is an answer whose size nobody knows before it is written. The request
// is charged with each page before there is one, and nothing is copied.
type pages struct {
	q    *request
	full net.Buffers
	last []byte
	size int // of the full ones
	paid int // bytes that the request is charged with already
}

// room has the last page take n more bytes. The error is errNoRoom.
func (p *pages) room(n int) error {
	if cap(p.last)-len(p.last) >= n {
		return nil
	}
	size := max(n, firstPage, min(2*cap(p.last), largestPage))
	paid := min(size, p.paid)
	if err := p.q.take(size - paid); err != nil {
		return err
	}
	p.paid -= paid
	p.full, p.size = append(p.full, p.last), p.size+len(p.last)
	p.last = make([]byte, 0, size)
	return nil
}

func (p *pages) write(text string) error {
	if err := p.room(len(text)); err != nil {
		return err
	}
	p.last = append(p.last, text...)
	return nil
}

// reply sends the pages, which are JSON.
func (p *pages) reply() error {
	p.q.http.SetStatusCode(fasthttp.StatusOK)
	p.q.http.SetContentType("application/json")
	all := append(p.full, p.last)
	p.q.stream(&all, p.size+len(p.last))
	return nil
}

// before is what stands before item i of a list that is not empty.
func before(i int) string {
	if i == 0 {
		return "["
	}
	return ","
}
