package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"sluice/client"
	"sluice/filter"
	"sluice/index/late"
	"sluice/store"
	"sluice/store/pebble"
)

type dumpCommand struct {
	Data       string `arg:"" help:"Data directory of a daemon that is not running, or a snapshot."`
	Tenant     string `help:"Collections of this tenant only."`
	Collection string `short:"c" help:"Collections of this name only."`
	To         string `type:"path" help:"Write a file for each collection into this directory, named by tenant and collection. Without it one collection goes to standard output."`
}

// Run writes what 'sluice ingest' takes again.
func (c dumpCommand) Run(ctx context.Context) (err error) {
	st, err := openStored(c.Data, pebble.Options{ReadOnly: true})
	if errors.Is(err, store.ErrLocked) {
		return fmt.Errorf("%w; of a daemon that runs, make a snapshot and dump that", err)
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, st.Close()) }()
	chosen, err := c.chosen(ctx, st)
	if err != nil {
		return err
	}
	if c.To == "" {
		return dump(ctx, st, chosen[0], os.Stdout)
	}
	if err := os.MkdirAll(c.To, 0o700); err != nil {
		return err
	}
	for _, collection := range chosen {
		if err := dumpToFile(ctx, st, collection, filepath.Join(c.To, dumpName(collection))); err != nil {
			return err
		}
	}
	return nil
}

// chosen is the serving generations of the collections that are asked for: at
// least one, without To just one.
func (c dumpCommand) chosen(ctx context.Context, st store.Store) ([]store.Collection, error) {
	all, err := st.Collections(ctx)
	if err != nil {
		return nil, err
	}
	all = slices.DeleteFunc(all, func(o store.Collection) bool {
		return c.Tenant != "" && c.Tenant != o.Tenant || c.Collection != "" && c.Collection != o.Name
	})
	if len(all) == 0 {
		return nil, fmt.Errorf("there is no such collection: %w", store.ErrNotFound)
	}
	if len(all) > 1 && c.To == "" {
		var names []string
		for _, o := range all {
			names = append(names, fmt.Sprintf("  %s of tenant %s", o.Name, o.Tenant))
		}
		return nil, fmt.Errorf("choose one with --tenant and --collection, or give a directory with --to, for\n%s", strings.Join(names, "\n"))
	}
	for i, o := range all {
		all[i] = o.At(o.Serving())
	}
	return all, nil
}

// dumpName is the name of a collection's file: both names escaped, so that a
// comma is between them and nowhere else.
func dumpName(c store.Collection) string {
	return url.PathEscape(c.Tenant) + "," + url.PathEscape(c.Name) + ".ndjson"
}

func dumpToFile(ctx context.Context, st store.Store, c store.Collection, name string) error {
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	if err := errors.Join(dump(ctx, st, c, f), f.Sync(), f.Close()); err != nil {
		return fmt.Errorf("writing %s: %w", name, err)
	}
	fmt.Println(name)
	return nil
}

// dumped is a line of a dump. The API takes what is in Document.
type dumped struct {
	client.Document
	Version uint32 `json:"version,omitempty"` // to be read; what is ingested has versions of its own
}

func dump(ctx context.Context, st store.Store, c store.Collection, w io.Writer) error {
	out := bufio.NewWriter(w)
	encoder := json.NewEncoder(out)
	encoder.SetEscapeHTML(false)
	for record, err := range st.Scan(ctx, c.ID, 0) {
		var d client.Document
		if err == nil {
			d, err = documentFrom(ctx, st, c, record.Ordinal)
		}
		if err == nil {
			err = encoder.Encode(dumped{d, record.Version})
		}
		if err != nil {
			return fmt.Errorf("document %q: %w", record.Key, err)
		}
	}
	return out.Flush()
}

// documentFrom is a document as it could have been written. Of formats other
// than Markdown only the extracted text is kept, which is plain text.
func documentFrom(ctx context.Context, st store.Store, c store.Collection, ordinal uint32) (client.Document, error) {
	content, err := st.Content(ctx, c.ID, ordinal, true)
	if err != nil {
		return client.Document{}, err
	}
	d := client.Document{Key: content.Key, Title: content.Title, Format: content.Format, Text: content.Text}
	setAccess(&d, content.Access)
	if d.Format != "markdown" {
		d.Format = "text"
	}
	if c.Settings.Brings() {
		d.Format, d.Text = "", ""
		d.Passages, err = passagesOf(ctx, st, c, content)
	}
	return d, err
}

// passagesOf are those of a document that brought its vectors. Token vectors are
// about what their codes keep of them.
func passagesOf(ctx context.Context, st store.Store, c store.Collection, content store.Content) ([]client.Passage, error) {
	own, passages := c.Settings.Own, make([]client.Passage, len(content.Chunks))
	rows := make([]uint32, len(content.Chunks))
	for i, piece := range content.Chunks {
		rows[i] = content.FirstRow + uint32(i)
		headings := piece.Headings
		if len(headings) > 0 && headings[0] == content.Title {
			headings = headings[1:] // it is put there again
		}
		passages[i] = client.Passage{Text: content.Text[piece.Start:piece.End], Headings: headings}
		if own.Dense > 0 {
			passages[i].Vector = client.Vector{Values: content.Vectors[i*own.Dense : (i+1)*own.Dense], Base64: true}
		}
	}
	if own.Multi == 0 {
		return passages, nil
	}
	coder, read := late.NewCoder(late.Kind{Dimensions: own.Multi, Bits: c.Settings.CodeBits}), 0
	err := st.Codes(ctx, c.ID, rows, func(at int, codes []byte) {
		if vectors, ok := coder.Decode(codes); ok {
			passages[at].Vectors = client.Matrix{Values: vectors, Columns: own.Multi, Base64: true}
			read++
		}
	})
	if err == nil && read < len(rows) {
		err = fmt.Errorf("%w: the token codes of %d of %d passages cannot be read", store.ErrCorrupt, len(rows)-read, len(rows))
	}
	return passages, err
}

func setAccess(d *client.Document, a filter.Access) {
	if !a.Readers.Undeclared {
		list := make([]string, len(a.Readers.List))
		for i, reader := range a.Readers.List {
			list[i] = string(reader)
		}
		d.Readers = &list
	}
	for name, value := range a.Attributes {
		if set, ok := value.([]string); ok && set == nil {
			value = []string{} // null would be no attribute
		}
		if d.Attributes == nil {
			d.Attributes = map[string]any{}
		}
		d.Attributes[name] = value
	}
	d.Regions = a.Applicability.Regions
	if t := a.Applicability.ValidFrom; !t.IsZero() {
		d.ValidFrom = &t
	}
	if t := a.Applicability.ValidUntil; !t.IsZero() {
		d.ValidUntil = &t
	}
}
