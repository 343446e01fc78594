package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"time"

	"sluice/client"
)

type reindexCommand struct {
	Start    reindexStart    `cmd:"" default:"withargs" help:"Estimate what another chunker takes; with --yes, build a generation by it, beside the one that serves, and switch to it."`
	Status   reindexStatus   `cmd:"" help:"Show the generations of a collection, and follow the job that runs."`
	Pause    reindexPause    `cmd:"" help:"Stop the job where it is."`
	Resume   reindexResume   `cmd:"" help:"Go on with a job that was paused, failed or was refused by a gate."`
	Cancel   reindexCancel   `cmd:"" help:"End the job and remove what it built."`
	Rollback reindexRollback `cmd:"" help:"Serve the generation before the present one again; the present one is kept."`
	Drop     reindexDrop     `cmd:"" help:"Remove the generation that is kept for a rollback."`
	Queries  reindexQueries  `cmd:"" help:"Replace the queries that a generation must answer as well as the one before."`
}

// ofCollection is a collection of a daemon.
type ofCollection struct {
	remote
	Collection string `required:"" short:"c" help:"Collection."`
}

type reindexStart struct {
	ofCollection
	Chunker string   `required:"" help:"How documents are cut, for example structure/1."`
	Bound   *float64 `help:"By how much the mean nDCG@10 of the collection's queries may fall, at 95 % confidence. Default: 0.02."`
	Yes     bool     `help:"Start it."`
}

func (c reindexStart) Run(ctx context.Context) error {
	api, err := c.client()
	if err != nil {
		return err
	}
	request := client.ReindexRequest{Chunker: c.Chunker, Bound: c.Bound}
	e, err := api.EstimateReindex(ctx, c.Collection, request)
	if err != nil {
		return c.hint(err)
	}
	printEstimate(os.Stdout, e)
	if !c.Yes {
		fmt.Println("Nothing was started; add --yes to start it. A few chunks were embedded to measure the speed, and are kept.")
		return nil
	}
	if _, err := api.Reindex(ctx, c.Collection, request); err != nil {
		return c.hint(err)
	}
	return c.follow(ctx, api)
}

func printEstimate(w io.Writer, e client.ReindexEstimate) {
	fmt.Fprintf(w, "%s: %d documents, %d chunks: %d to embed, %d reused; %d tokens, about %v; about %d MiB more on disk until the old generation is dropped.\n",
		e.Chunker, e.Documents, e.Chunks, e.New, e.Reused, e.Tokens, time.Duration(math.Ceil(e.Seconds))*time.Second, (e.Bytes+1<<20-1)>>20)
}

// follow shows the job's progress until it ends. Interrupted, it leaves the job running.
func (c ofCollection) follow(ctx context.Context, api *client.Client) error {
	bar := progress(1, "documents")
	err := api.WatchReindex(ctx, c.Collection, func(g client.Generations) error {
		if p := g.Progress; p != nil {
			bar.ChangeMax(max(1, p.Of))
			bar.Describe(describe(*p))
			return bar.Set(p.Documents)
		}
		return nil
	})
	if ctx.Err() != nil {
		fmt.Fprintf(os.Stderr, "\nThe daemon goes on with it; sluice reindex status -c %s follows it again.\n", c.Collection)
		return nil
	}
	if err != nil {
		return c.hint(err)
	}
	_ = bar.Clear()
	g, err := api.Generations(ctx, c.Collection)
	if err != nil {
		return c.hint(err)
	}
	return printGenerations(os.Stdout, g)
}

func describe(p client.ReindexProgress) string {
	left := "?"
	if p.Left > 0 {
		left = time.Duration(p.Left * float64(time.Second)).Round(time.Second).String()
	}
	return fmt.Sprintf("%d embedded, %d reused, %.1f documents/s, %s left", p.Embedded, p.Reused, p.Rate, left)
}

// printGenerations fails with status 2 where the newest job has not done what it was to do.
func printGenerations(w io.Writer, g client.Generations) (err error) {
	for _, one := range g.Generations {
		chunker := one.Chunker
		if chunker == "" {
			chunker = "by format"
		}
		fmt.Fprintf(w, "generation %d  %-8s  %s, since %s\n", one.ID, one.Role, chunker, one.Created.Format(time.RFC3339))
		if one.Job == nil {
			continue
		}
		for _, gate := range one.Job.Gates {
			fmt.Fprintf(w, "  %-7s %s: %s\n", passed(gate.Passed), gate.Name, gate.Detail)
		}
		if one.Role != "building" {
			continue
		}
		fmt.Fprintf(w, "  %s %s\n", one.Job.State, one.Job.Reason)
		if one.Job.State == "failed" || one.Job.State == "refused" {
			err = exitCode{2, fmt.Errorf("the reindex is %s; searches see the generation before it", one.Job.State)}
		}
	}
	return err
}

func passed(yes bool) string {
	if yes {
		return "passed"
	}
	return "refused"
}

type reindexStatus struct {
	ofCollection
	JSON   bool `help:"Print the present state as JSON."`
	Follow bool `default:"true" negatable:"" help:"Follow the job that runs, if one does."`
}

func (c reindexStatus) Run(ctx context.Context) error {
	api, err := c.client()
	if err != nil {
		return err
	}
	g, err := api.Generations(ctx, c.Collection)
	if err != nil {
		return c.hint(err)
	}
	if c.JSON {
		return json.NewEncoder(os.Stdout).Encode(g)
	}
	if g.Progress != nil && c.Follow {
		return c.follow(ctx, api)
	}
	return printGenerations(os.Stdout, g)
}

type (
	reindexPause    struct{ ofCollection }
	reindexCancel   struct{ ofCollection }
	reindexRollback struct{ ofCollection }
	reindexDrop     struct{ ofCollection }
	reindexResume   struct {
		ofCollection
		Bound *float64 `help:"Another bound for the gate of relevance than the job has."`
	}
)

func (c reindexPause) Run(ctx context.Context) error    { return c.change(ctx, "pause", nil) }
func (c reindexCancel) Run(ctx context.Context) error   { return c.change(ctx, "cancel", nil) }
func (c reindexRollback) Run(ctx context.Context) error { return c.change(ctx, "rollback", nil) }
func (c reindexDrop) Run(ctx context.Context) error     { return c.change(ctx, "drop", nil) }

func (c reindexResume) Run(ctx context.Context) error {
	if err := c.change(ctx, "resume", c.Bound); err != nil {
		return err
	}
	api, err := c.client()
	if err != nil {
		return err
	}
	return c.follow(ctx, api)
}

func (c ofCollection) change(ctx context.Context, action string, bound *float64) error {
	api, err := c.client()
	if err != nil {
		return err
	}
	g, err := api.ChangeReindex(ctx, c.Collection, action, bound)
	if err != nil {
		return c.hint(err)
	}
	return printGenerations(os.Stdout, g)
}

type reindexQueries struct {
	ofCollection
	File string `arg:"" help:"JSON: {\"queries\": [{\"query\": …, \"relevant\": [keys of documents], \"principal\": {\"subject\": …, \"groups\": […]}}, …]}. - is standard input."`
}

func (c reindexQueries) Run(ctx context.Context) error {
	api, err := c.client()
	if err != nil {
		return err
	}
	file, err := openInput(c.File)
	if err != nil {
		return err
	}
	defer file.Close()
	var set client.QuerySet
	if err := json.NewDecoder(file).Decode(&set); err != nil {
		return fmt.Errorf("reading %s: %w", c.File, err)
	}
	return c.hint(api.SetQueries(ctx, c.Collection, set))
}
