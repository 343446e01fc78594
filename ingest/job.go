package ingest

import (
	"encoding/json"
	"fmt"
	"time"

	"sluice/store"
)

// State is where a reindex job stands.
type State string

// The states. A job ends as switched; cancelled, it is gone with its generation.
const (
	Running  State = "running"  // building, or passing the gates
	Paused   State = "paused"   // until it is resumed
	Failed   State = "failed"   // by an error; it can be resumed
	Refused  State = "refused"  // by a gate; it can be resumed, which runs the gates again
	Switched State = "switched" // its generation serves, or is kept for a rollback
)

// Job is a reindex job as it is kept beside its generation.
type Job struct {
	State    State
	Attempt  int      // grows whenever a daemon begins to run it
	Owner    string   // the daemon that runs it, or did last
	Beat     int      // grows while it is run, for other daemons to see
	Progress Progress // at the last beat
	Estimate Estimate
	Bound    float64 // by which relevance may fall at most
	Started  time.Time
	Ended    time.Time  // of switched
	Reason   string     // of failed and refused
	Gates    []Gate     // that were run last
	Made     Embeddings // by the attempts that came to an end
	Retired  time.Time  // when its generation last ceased to serve; zero: never
}

// Estimate is what a reindex will take. Tokens and Duration are measured on a
// sample of what is to be embedded.
type Estimate struct {
	Chunker   string
	Documents int
	Chunks    int
	New       int // chunks to embed; equal ones count once
	Reused    int // chunks whose embedding is there
	Tokens    int // of the new
	Duration  time.Duration
	Bytes     int64 // more on disk until the old generation is dropped, about
}

// Gate is a check that a generation must pass before it serves.
type Gate struct {
	Name   string // structure, authorization, relevance
	Passed bool
	Detail string
}

// jobOf reads the job kept beside a generation; the zero value if there is none.
func jobOf(g store.Generation) (job Job, err error) {
	if len(g.Job) > 0 {
		if err = json.Unmarshal(g.Job, &job); err != nil {
			err = fmt.Errorf("reading the job of generation %d: %w", g.ID, err)
		}
	}
	return job, err
}

// keep puts the job beside a generation.
func (j Job) keep(g *store.Generation) (err error) {
	g.Job, err = json.Marshal(j)
	return err
}
