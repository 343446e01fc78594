package main

import (
	"cmp"
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
	Folder     string            `arg:"" help:"Folder (or one file) with .md, .html, .txt, .pdf, .docx, .pptx, .xlsx and .docling.json files; or an .ndjson or .jsonl file of documents as the API takes them and 'sluice dump' writes them, one a line, with their vectors if the collection wants them."`
	Collection string            `required:"" short:"c" help:"Collection to write to; it is created if it does not exist and you may."`
	Reader     []string          `help:"Who may read these documents: user:NAME, group:NAME or public. Without it a document that is there keeps its readers; a new one is left to the policies, and without policies the whole tenant reads it."`
	Attribute  map[string]string `help:"Attribute of these documents that policies see, as NAME=TEXT. Without any a document that is there keeps its attributes."`

	Chunker         string `help:"Of a collection that is created: how documents are cut, for example structure/1. Default: by their format."`
	Dimensions      int    `help:"Of a collection that is created: its documents bring a vector of so many numbers a passage."`
	MultiDimensions int    `help:"Of a collection that is created: its documents bring token or patch vectors of so many numbers each."`
}

// Run sends every file. What is stored already unchanged costs no work, so
// running it again after an interruption goes on where it stopped.
func (c ingestCommand) Run(ctx context.Context) error {
	api, err := c.client()
	if err != nil {
		return err
	}
	files, documents, err := c.source()
	if err != nil {
		return err
	}
	if err := c.ensureCollection(ctx, api); err != nil {
		return c.hint(err)
	}
	started := time.Now()
	outcome, err := c.send(ctx, api, files, documents)
	if len(outcome.count) > 0 || err == nil {
		outcome.print(files, time.Since(started))
	}
	if outcome.left > 0 {
		fmt.Fprintf(os.Stderr, "  %d of %s not written: the daemon ended the request before them. Mend what is said below and run this again; what is stored already costs no work\n",
			outcome.left, counted(outcome.total()+outcome.left, "document"))
	}
	return errors.Join(c.hint(err), outcome.err())
}

// source is the documents to send; those of a file of lines are of no folder.
func (c ingestCommand) source() (*folder, iter.Seq2[client.Document, error], error) {
	if isLines(c.Folder) {
		files := &folder{}
		return files, readLines(c.Folder, files), nil
	}
	files, err := readFolder(c.Folder)
	if err != nil {
		return nil, nil, err
	}
	return files, files.documents(), nil
}

func (c ingestCommand) ensureCollection(ctx context.Context, api *client.Client) error {
	present, err := api.Collection(ctx, c.Collection)
	own := client.OwnVectors{Dimensions: c.Dimensions, MultiDimensions: c.MultiDimensions}
	if err == nil {
		return c.checkVectors(own, present)
	}
	var problem *client.Problem
	if !errors.As(err, &problem) || problem.Status != 404 {
		return err
	}
	settings := client.CollectionSettings{Chunker: c.Chunker}
	if own != (client.OwnVectors{}) {
		settings.OwnVectors = &own
	}
	if _, err = api.CreateCollection(ctx, c.Collection, settings); err != nil {
		return fmt.Errorf("the collection %s is not there, or not for you; creating it: %w", c.Collection, err)
	}
	return nil
}

// checkVectors refuses dimensions that the collection, which is there, does not have.
func (c ingestCommand) checkVectors(own client.OwnVectors, present client.Collection) error {
	var has client.OwnVectors
	if present.OwnVectors != nil {
		has = *present.OwnVectors
	}
	if own == (client.OwnVectors{}) || own == has {
		return nil
	}
	return fmt.Errorf("the collection %s exists, with --dimensions %d --multi-dimensions %d (0: documents bring none): leave the options out, or name a new collection",
		c.Collection, has.Dimensions, has.MultiDimensions)
}

func (c ingestCommand) send(ctx context.Context, api *client.Client, files *folder, documents iter.Seq2[client.Document, error]) (*outcome, error) {
	bar := progress(int64(cmp.Or(len(files.files), -1)), "ingesting")
	defer bar.Finish()
	out, all := &outcome{count: map[string]int{}}, len(files.files)+len(files.unreadable)
	err := api.Ingest(ctx, c.Collection, c.labelled(documents), func(r client.WriteResult) error {
		out.add(r)
		return bar.Add(1)
	})
	for _, u := range files.unreadable {
		out.add(client.WriteResult{Key: u.path, Status: "failed", Error: &client.Problem{Title: u.reason}})
	}
	if err != nil {
		out.left = max(0, all-out.total()) // of a file of lines, how many is not known
	}
	return out, err
}

// labelled yields the documents with the readers and attributes of the command line.
func (c ingestCommand) labelled(documents iter.Seq2[client.Document, error]) iter.Seq2[client.Document, error] {
	return func(yield func(client.Document, error) bool) {
		for d, err := range documents {
			if len(c.Reader) > 0 {
				d.Readers = &c.Reader
			}
			for name, text := range c.Attribute {
				if d.Attributes == nil {
					d.Attributes = map[string]any{}
				}
				d.Attributes[name] = text
			}
			if !yield(d, err) {
				return
			}
		}
	}
}

// outcome counts results by status and keeps the failures.
type outcome struct {
	count  map[string]int
	chunks int
	cut    int
	long   []string // the documents of those that are cut
	failed []client.WriteResult
	left   int // that have no result, because the request ended
}

func (o *outcome) add(r client.WriteResult) {
	o.count[r.Status]++
	o.chunks += r.Chunks
	if o.cut += r.Truncated; r.Truncated > 0 {
		o.long = append(o.long, r.Key)
	}
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
	fmt.Printf("%s; %s in %s\n", o, counted(o.chunks, "chunk"), took.Round(time.Millisecond))
	if o.cut > 0 {
		fmt.Printf("%d chunks are longer than the model reads; their ends are found by words only: %s\n", o.cut, some(o.long))
	}
	for _, line := range files.reasons() {
		fmt.Println(line)
	}
	for _, r := range o.failed {
		fmt.Fprintf(os.Stderr, "  failed %s: %s\n", r.Key, wrong(r.Error))
	}
}

// wrong is what is wrong with a document, without what the protocol calls it.
func wrong(p *client.Problem) string {
	return cmp.Or(p.Detail, p.Title)
}

// some names a few of many.
func some(names []string) string {
	const few = 10
	if len(names) <= few {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:few], ", "), len(names)-few)
}

func (o *outcome) err() error {
	if len(o.failed) == 0 {
		return nil
	}
	return fmt.Errorf("%d of %s failed", len(o.failed), counted(o.total()+o.left, "document"))
}

// total is how many have a result.
func (o *outcome) total() (all int) {
	for _, n := range o.count {
		all += n
	}
	return all
}
