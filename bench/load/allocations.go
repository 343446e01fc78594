package load

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
)

// Allocations is what a Go process has allocated since it began.
type Allocations struct{ Objects, Bytes uint64 }

// Less is what was allocated since before.
func (a Allocations) Less(before Allocations) Allocations {
	return Allocations{a.Objects - before.Objects, a.Bytes - before.Bytes}
}

// maxProfile bounds a heap profile's text.
const maxProfile = 64 << 20

// AllocationsOf reads them from the process that serves net/http/pprof at an
// address (host:port): its heap profile's text ends with the memory statistics.
func AllocationsOf(ctx context.Context, address string) (a Allocations, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+"/debug/pprof/allocs?debug=1", nil)
	if err != nil {
		return a, fmt.Errorf("reading allocations: %w", err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return a, fmt.Errorf("reading allocations: %w", err)
	}
	defer response.Body.Close()
	lines := bufio.NewScanner(io.LimitReader(response.Body, maxProfile))
	lines.Buffer(nil, 1<<20)
	found := 0
	for lines.Scan() {
		for name, field := range map[string]*uint64{"# Mallocs = ": &a.Objects, "# TotalAlloc = ": &a.Bytes} {
			if value, is := strings.CutPrefix(lines.Text(), name); is {
				if *field, err = strconv.ParseUint(value, 10, 64); err == nil {
					found++
				}
			}
		}
	}
	if err := lines.Err(); err != nil || found != 2 {
		return a, fmt.Errorf("reading allocations: %s does not tell them (%v)", address, err)
	}
	return a, nil
}
