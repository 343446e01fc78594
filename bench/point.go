package bench

import (
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"sluice/filter"
	"sluice/index"
)

// point is filters of one share and kind, and what is right under them. The
// i-th query has the i-th filter, modulo their number.
type point struct {
	name, kind string
	sets       []filter.Set
	files      []string // the same as uint32, for the peers; none: all rows
	vectors    *Vectors
	dot        func(a, b []float32) float32
	least      []float32 // by query: score of its last neighbour
}

// passTime is how long the queries of a filter are asked again and again in a
// turn: until the caches hold what they need.
const passTime = 100 * time.Millisecond

// passes is how often a contestant asks the queries of a filter in a turn, if a
// query takes so many seconds.
func (p *point) passes(each float64) int {
	perPass := each * float64(len(p.least)) / float64(len(p.sets))
	return min(max(1, int(passTime.Seconds()/perPass)), 1000)
}

// point draws filters and searches exactly, in float32.
func (b *searchBench) point(share float64, correlated bool) (*point, error) {
	p := &point{kind: "random", vectors: b.vectors, dot: b.dot, least: make([]float32, b.Queries)}
	if correlated {
		p.kind = "correlated"
	}
	filters := pointFilters
	if share == 1 {
		filters = 1
	}
	for seed := range filters {
		rows := b.vectors.Allowed(share, correlated, uint64(seed))
		p.sets = append(p.sets, filter.SetOf(rows...))
		for i := seed; i < b.Queries; i += filters {
			p.least[i] = p.exact(b.vectors.query(i), rows)
		}
		if share == 1 {
			continue
		}
		path := filepath.Join(b.scratch, fmt.Sprintf("allowed-%d.u32", seed))
		data, err := binary.Append(nil, binary.LittleEndian, rows)
		if err != nil {
			return nil, err
		}
		if err := os.WriteFile(path, data, 0o600); err != nil {
			return nil, err
		}
		p.files = append(p.files, path)
	}
	return p, nil
}

// exact returns the score of the last of the best of some rows.
func (p *point) exact(query []float32, rows []uint32) float32 {
	best := make([]float32, 0, neighbours+1) // descending
	for _, row := range rows {
		score := p.dot(query, p.vectors.Row(int(row)))
		if len(best) == neighbours && score <= best[neighbours-1] {
			continue
		}
		at, _ := slices.BinarySearchFunc(best, score, func(a, b float32) int {
			if a > b {
				return -1
			}
			return 1
		})
		best = slices.Insert(best, at, score)
		best = best[:min(len(best), neighbours)]
	}
	return best[len(best)-1]
}

func (p *point) set(query int) filter.Set { return p.sets[query%len(p.sets)] }

// rowsOf returns the rows that a query found, all of which its filter allows.
func (p *point) rowsOf(query int, hits []index.Hit) (rows []int, err error) {
	for _, h := range hits {
		if !p.set(query).Contains(h.Ordinal) {
			return nil, fmt.Errorf("row %d was found, which the filter forbids", h.Row)
		}
		rows = append(rows, int(h.Row))
	}
	return rows, nil
}

func (p *point) all() bool { return len(p.files) == 0 }

// recall is the share of the exact neighbours that was found. Rows as near as
// the last of them are as good: some sentences have the same vector.
func (p *point) recall(hits [][]int) float64 {
	const rounding = 1e-6
	found := 0
	for i, rows := range hits {
		slices.Sort(rows)
		for _, row := range slices.Compact(rows) {
			near := p.dot(p.vectors.query(i), p.vectors.Row(row)) >= p.least[i]-rounding
			if near && p.set(i).Contains(uint32(row)) {
				found++
			}
		}
	}
	return float64(found) / float64(neighbours*len(hits))
}
