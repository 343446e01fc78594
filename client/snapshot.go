package client

import (
	"context"
	"net/http"
	"time"
)

// Snapshot describes a snapshot of a daemon's data directory: what PUT
// /snapshots/{name} of the admin listener answers, and the file SNAPSHOT in it.
type Snapshot struct {
	Name     string    `json:"name"`
	Made     time.Time `json:"made"`
	Epoch    uint64    `json:"epoch"`              // every change up to it is in the snapshot
	Policies string    `json:"policies,omitempty"` // the configured directory of policies; it is not in the snapshot
	Version  string    `json:"version"`            // of the program
}

// Snapshot makes a snapshot in the daemon's data directory. The Client must be
// one of the admin listener.
func (c *Client) Snapshot(ctx context.Context, name string) (Snapshot, error) {
	var answer Snapshot
	err := c.call(ctx, http.MethodPut, path("snapshots", name), nil, &answer)
	return answer, err
}
