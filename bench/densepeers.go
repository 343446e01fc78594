package bench

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// densePeers are the vector indexes of bench/peers/search.py.
type densePeers struct {
	*peerProcess
	found map[string]densePeer
}

type densePeer struct {
	Settings []int   `json:"settings"` // the cheapest first
	Filters  bool    `json:"filters"`  // whether it has any
	Build    float64 `json:"build_cpu_s"`
	Bytes    float64 `json:"bytes"` // of its file
}

// dense starts the peers. What they build is kept in dir.
func (p Peers) dense(ctx context.Context, dir, scratch string, v *Vectors) (*densePeers, error) {
	rows, queries := filepath.Join(dir, "rows.f32"), filepath.Join(scratch, "queries.f32")
	if _, err := os.Stat(rows); err != nil {
		if err := save(rows, bytesOf(v.Rows)); err != nil {
			return nil, err
		}
	}
	if err := save(queries, bytesOf(v.Queries)); err != nil {
		return nil, err
	}
	args := []string{"--rows", rows, "--queries", queries, "--dims", strconv.Itoa(v.Dims), "--cache", dir}
	if len(p.Names) > 0 {
		args = append(args, "--peers", strings.Join(p.Names, ","))
	}
	var hello struct {
		Peers map[string]densePeer `json:"peers"`
	}
	process, err := p.launch(ctx, &hello, args...)
	if err != nil {
		return nil, err
	}
	for name := range hello.Peers {
		process.names = append(process.names, name)
	}
	slices.Sort(process.names)
	return &densePeers{process, hello.Peers}, nil
}

// searchTurn is what one contestant took for all queries, and found.
type searchTurn struct {
	Seconds    float64   `json:"seconds"`
	CPUSeconds float64   `json:"cpu_seconds"`
	Times      []float64 `json:"times"` // of each query by itself
	CPUTimes   []float64 `json:"cpu_times"`
	Hits       [][]int   `json:"hits"`
}

func (t searchTurn) rate() float64   { return float64(len(t.Hits)) / t.Seconds }
func (t searchTurn) perCPU() float64 { return float64(len(t.Hits)) / t.CPUSeconds }
func (t searchTurn) each() float64   { return t.CPUSeconds / float64(len(t.Hits)) }

// turn has a peer search with a setting, in several passes and then one query at
// a time; 0: once, and no more.
func (d *densePeers) turn(peer string, setting int, p *point, queries, passes int) (t searchTurn, err error) {
	request := struct {
		Peer    string   `json:"peer"`
		Setting int      `json:"setting"`
		Filters []string `json:"filters"`
		Queries int      `json:"queries"`
		Passes  int      `json:"passes"`
		K       int      `json:"k"`
		Each    bool     `json:"each"`
	}{peer, setting, p.files, queries, max(passes, 1), neighbours, passes > 0}
	if err := d.ask(request, &t); err != nil {
		return t, fmt.Errorf("%s with setting %d: %w", peer, setting, err)
	}
	if len(t.Hits) != queries {
		return t, fmt.Errorf("%s answered %d of %d queries", peer, len(t.Hits), queries)
	}
	return t, nil
}
