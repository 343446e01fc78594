package bench

import (
	"context"
	"errors"
	"fmt"

	"sluice/bench/load"
)

// Idle opens so many connections to a service, each of which has had one
// request answered, and records what they cost it: idle.connections,
// idle.rss_mb (the whole process) and idle.growth_mb.
func Idle(ctx context.Context, s Service, connections int, out map[string]float64) (err error) {
	before, err := s.usage()
	if err != nil {
		return err
	}
	open, err := load.OpenIdle(ctx, load.Options{Address: s.Address, Requests: s.Requests}, connections)
	if err != nil {
		return fmt.Errorf("opening idle connections (ulimit -n must be above their number here, and twice that for the daemon): %w", err)
	}
	defer func() { err = errors.Join(err, open.Close()) }()
	after, err := s.usage()
	out["idle.connections"] = float64(connections)
	out["idle.rss_mb"] = float64(after.Resident) / (1 << 20)
	out["idle.growth_mb"] = float64(after.Resident-before.Resident) / (1 << 20)
	return err
}
