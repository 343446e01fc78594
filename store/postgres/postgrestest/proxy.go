//go:build unix

package postgrestest

import (
	"encoding/binary"
	"net"
	"net/url"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
)

// Proxy forwards connections to the server of a URL, until told otherwise.
type Proxy struct {
	URL string // of the same database, through the proxy

	trips          atomic.Int64
	listener       net.Listener
	network, there string

	mu     sync.Mutex
	flows  sync.Cond // signalled when silent changes
	silent bool
	open   map[net.Conn]bool // nil: none is taken
}

// NewProxy starts one on a loopback port.
func NewProxy(t testing.TB, address string) *Proxy {
	t.Helper()
	config, err := pgconn.ParseConfig(address)
	if err != nil {
		t.Fatal(err)
	}
	p := &Proxy{open: map[net.Conn]bool{}}
	p.flows.L = &p.mu
	p.network, p.there = pgconn.NetworkAddress(config.Host, config.Port)
	if p.listener, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
		t.Fatal(err)
	}
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	query := u.Query()
	query.Del("host")
	query.Set("sslmode", "disable")
	u.Host, u.RawQuery = p.listener.Addr().String(), query.Encode()
	p.URL = u.String()
	go p.accept()
	t.Cleanup(func() {
		_ = p.listener.Close()
		p.Cut()
	})
	return p
}

// Silence makes the proxy take everything and pass nothing on; false ends it.
func (p *Proxy) Silence(silent bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.silent = silent
	p.flows.Broadcast()
}

// Cut ends all connections and takes no new ones.
func (p *Proxy) Cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.open {
		_ = c.Close()
	}
	p.open, p.silent = nil, false
	p.flows.Broadcast()
}

// Mend takes connections again.
func (p *Proxy) Mend() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.open = map[net.Conn]bool{}
}

func (p *Proxy) accept() {
	for {
		here, err := p.listener.Accept()
		if err != nil {
			return
		}
		there, err := net.Dial(p.network, p.there)
		if err != nil || !p.keep(here, there) {
			_ = here.Close()
			continue
		}
		go p.pass(here, there, func([]byte) {})
		go p.pass(there, here, (&answers{trips: &p.trips}).read)
	}
}

func (p *Proxy) keep(pair ...net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range pair {
		if p.open == nil {
			_ = c.Close()
			continue
		}
		p.open[c] = true
	}
	return p.open != nil
}

// RoundTrips is how many answers the server has given so far, each to all that it was
// asked at once.
func (p *Proxy) RoundTrips() int64 { return p.trips.Load() }

// pass copies until one of the connections ends, and then ends the other. seen is
// given what goes by.
func (p *Proxy) pass(from, to net.Conn, seen func([]byte)) {
	defer to.Close()
	buffer := make([]byte, 32<<10)
	for {
		n, err := from.Read(buffer)
		p.mu.Lock()
		for p.silent {
			p.flows.Wait()
		}
		p.mu.Unlock()
		seen(buffer[:n])
		if _, failed := to.Write(buffer[:n]); err != nil || failed != nil {
			return
		}
	}
}

// answers counts the answers in what a server sends on one connection: messages of a
// type and a length, of which ReadyForQuery ends an answer.
type answers struct {
	trips *atomic.Int64
	head  []byte // of the message that has begun
	rest  int    // bytes of its body that are to come
}

func (a *answers) read(sent []byte) {
	for len(sent) > 0 {
		if n := min(a.rest, len(sent)); n > 0 {
			sent, a.rest = sent[n:], a.rest-n
			continue
		}
		a.head, sent = append(a.head, sent[0]), sent[1:]
		if len(a.head) < 5 {
			continue
		}
		if a.head[0] == 'Z' {
			a.trips.Add(1)
		}
		a.head, a.rest = a.head[:0], int(binary.BigEndian.Uint32(a.head[1:]))-4
	}
}
