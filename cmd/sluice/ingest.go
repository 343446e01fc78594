package main

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"sluice/client"
)

type ingestCommand struct {
	remote
	Folder     string            `arg:"" help:"Folder (or one file) with .md, .html and .txt files."`
	Collection string            `required:"" short:"c" help:"Collection to write to; it is created if it does not exist and you may."`
	Reader     []string          `help:"Who may read these documents: user:NAME, group:NAME or public. Without it a document that is there keeps its readers; a new one is left to the policies, and without policies the whole tenant reads it."`
	Attribute  map[string]string `help:"Attribute of these documents that policies see, as NAME=TEXT. Without any a document that is there keeps its attributes."`
}

// Run sends every file. What is stored already unchanged costs no work, so
// running it again after an interruption goes on where it stopped.
func (c ingestCommand) Run(ctx context.Context) error {
	api, err := c.client()
	if err != nil {
		return err
	}
	files, err := readFolder(c.Folder)
	if err != nil {
		return err
	}
	if err := ensureCollection(ctx, api, c.Collection); err != nil {
		return c.hint(err)
	}
	started := time.Now()
	outcome, err := c.send(ctx, api, files)
	if len(outcome.count) > 0 || err == nil {
		outcome.print(files, time.Since(started))
	}
	return errors.Join(c.hint(err), outcome.err())
}

func ensureCollection(ctx context.Context, api *client.Client, name string) error {
	_, err := api.Collection(ctx, name)
	var problem *client.Problem
	if errors.As(err, &problem) && problem.Status == 404 {
		_, err = api.CreateCollection(ctx, name, client.CollectionSettings{})
	}
	return err
}

func (c ingestCommand) send(ctx context.Context, api *client.Client, files *folder) (*outcome, error) {
	bar := progress(int64(len(files.files)), "ingesting")
	defer bar.Finish()
	out := &outcome{count: map[string]int{}}
	err := api.Ingest(ctx, c.Collection, c.documents(files), func(r client.WriteResult) error {
		out.add(r)
		return bar.Add(1)
	})
	for _, u := range files.unreadable {
		out.add(client.WriteResult{Key: u.path, Status: "failed", Error: &client.Problem{Title: u.reason}})
	}
	return out, err
}

// documents yields what the files hold; one that cannot be read is noted.
func (c ingestCommand) documents(files *folder) iter.Seq2[client.Document, error] {
	return func(yield func(client.Document, error) bool) {
		for _, key := range files.files {
			d, err := files.document(key)
			if err != nil {
				files.unread(key, err)
				continue
			}
			if !yield(c.labelled(d), nil) {
				return
			}
		}
	}
}

func (c ingestCommand) labelled(d client.Document) client.Document {
	if len(c.Reader) > 0 {
		d.Readers = &c.Reader
	}
	for name, text := range c.Attribute {
		if d.Attributes == nil {
			d.Attributes = map[string]any{}
		}
		d.Attributes[name] = text
	}
	return d
}

// outcome counts results by status and keeps the failures.
type outcome struct {
	count  map[string]int
	chunks int
	cut    int
	failed []client.WriteResult
}

func (o *outcome) add(r client.WriteResult) {
	o.count[r.Status]++
	o.chunks += r.Chunks
	o.cut += r.Truncated
	if r.Error != nil {
		o.failed = append(o.failed, r)
	}
}

// String is the counts: "3 created, 1 unchanged".
func (o *outcome) String() string {
	if len(o.count) == 0 {
		return "no documents"
	}
	var counts []string
	for _, status := range slices.Sorted(maps.Keys(o.count)) {
		counts = append(counts, fmt.Sprintf("%d %s", o.count[status], status))
	}
	return strings.Join(counts, ", ")
}

func (o *outcome) print(files *folder, took time.Duration) {
	fmt.Printf("%s; %d chunks in %s\n", o, o.chunks, took.Round(time.Millisecond))
	if o.cut > 0 {
		fmt.Printf("%d chunks are longer than the model reads; their ends are found by words only\n", o.cut)
	}
	for _, line := range files.reasons() {
		fmt.Println(line)
	}
	for _, s := range files.skipped {
		fmt.Printf("  skipped %s: %s\n", s.path, s.reason)
	}
	for _, r := range o.failed {
		fmt.Fprintf(os.Stderr, "  failed %s: %s\n", r.Key, r.Error)
	}
}

func (o *outcome) err() error {
	if len(o.failed) == 0 {
		return nil
	}
	return fmt.Errorf("%d documents failed; the others are in", len(o.failed))
}
