package ingest

import "time"

// Progress of a job under way.
type Progress struct {
	Documents int // that are built
	Of        int
	Embeddings
	Rate float64 // documents a second
	Left time.Duration
}

func (n *run) starts(built, of int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.progress.Of == 0 {
		n.before = built
	}
	n.progress.Documents, n.progress.Of = built, of
}

func (n *run) built(count Embeddings) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.progress.Documents++
	n.progress.Embeddings = n.progress.plus(count)
}

// now is the progress with its rate.
func (n *run) now() Progress {
	n.mu.Lock()
	defer n.mu.Unlock()
	p := n.progress
	if since := time.Since(n.began).Seconds(); since > 0 && p.Documents > n.before {
		p.Rate = float64(p.Documents-n.before) / since
		p.Left = time.Duration(float64(p.Of-p.Documents) / p.Rate * float64(time.Second))
	}
	return p
}
