package bench

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// Server is a peer that serves: the URL that takes OpenAI embedding requests
// for the model "peer", and its process.
type Server struct {
	Name string `json:"-"`
	URL  string `json:"url"`
	PID  int    `json:"pid"`
}

// Servers starts the peers' servers, which end when the closer is closed.
func (p Peers) Servers(ctx context.Context, model string, threads int) ([]Server, io.Closer, error) {
	args := []string{"--model", model, "--threads", strconv.Itoa(threads)}
	if len(p.Names) > 0 {
		args = append(args, "--engines", strings.Join(p.Names, ","))
	}
	var hello struct{ Peers map[string]Server }
	process, err := p.launch(ctx, &hello, args...)
	if err != nil {
		return nil, nil, fmt.Errorf("starting the peers' servers: %w", err)
	}
	var servers []Server
	for _, name := range slices.Sorted(maps.Keys(hello.Peers)) {
		s := hello.Peers[name]
		s.Name = name
		servers = append(servers, s)
	}
	return servers, process, nil
}
