package eval

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"time"

	"sluice/client"
)

// shownFailures bounds the documents that an error names.
const shownFailures = 20

// build is ingest, with what it took.
func (r *runner) build(ctx context.Context) error {
	started := time.Now()
	if err := r.ingest(ctx); err != nil {
		return err
	}
	b := Build{Seconds: time.Since(started).Seconds()}
	for _, doc := range r.dataset.Documents {
		b.Text += int64(len(doc.Text))
	}
	var err error
	if on, ok := r.backend.(interface{ Disk() (int64, error) }); ok {
		b.Disk, err = on.Disk()
	}
	r.report.Build = &b
	return err
}

// ingest writes the data set, tenant by tenant and an older version of a
// document before the newer one.
func (r *runner) ingest(ctx context.Context) error {
	for _, tenant := range r.dataset.Tenants() {
		session, err := r.backend.As(ctx, writer(tenant))
		if err != nil {
			return fmt.Errorf("identity of the writer of tenant %s: %w", tenant, err)
		}
		collection, err := session.CreateCollection(ctx, r.dataset.Name, client.CollectionSettings{Chunker: r.options.Chunker, CodeBits: r.options.CodeBits})
		if err != nil {
			return fmt.Errorf("creating collection %s in tenant %s: %w", r.dataset.Name, tenant, err)
		}
		r.report.Model = collection.Model
		documents := r.dataset.documentsOf(tenant)
		for batch := range slices.Chunk(documents, r.batch(len(documents))) {
			if err := r.write(ctx, session, batch); err != nil {
				return fmt.Errorf("ingesting into tenant %s: %w", tenant, err)
			}
		}
	}
	return nil
}

// batch is how many documents are written at a time: all, or with probes one.
// Documents that are written together may be numbered in any order, ties are
// ordered by these numbers, and two worlds must agree on them.
func (r *runner) batch(all int) int {
	if r.options.Probes {
		return 1
	}
	return max(all, 1)
}

// write streams the documents and checks their results, which come in the same
// order. It goes on after one that failed, so that the error can name several.
func (r *runner) write(ctx context.Context, session Session, documents []Document) error {
	var failures []error
	written := 0
	err := session.Ingest(ctx, r.dataset.Name, wire(documents), func(result client.WriteResult) error {
		if written == len(documents) {
			return errors.New("more results than documents")
		}
		if err := checkWrite(documents[written], result); err != nil && len(failures) < shownFailures {
			failures = append(failures, err)
		}
		written++
		r.progress("ingest", 1)
		return nil
	})
	if err == nil && written < len(documents) {
		err = fmt.Errorf("%d documents have %d results", len(documents), written)
	}
	return errors.Join(append(failures, err)...)
}

func wire(documents []Document) iter.Seq2[client.Document, error] {
	return func(yield func(client.Document, error) bool) {
		for _, doc := range documents {
			if !yield(doc.wire(), nil) {
				return
			}
		}
	}
}

func (d *Dataset) documentsOf(tenant string) []Document {
	return slices.DeleteFunc(slices.Clone(d.Documents), func(doc Document) bool { return doc.Tenant != tenant })
}

// checkWrite wants the version that the labels speak of: another one means that
// the collection was not empty.
func checkWrite(doc Document, result client.WriteResult) error {
	switch {
	case result.Error != nil:
		return fmt.Errorf("document %s: %w", doc.Key, result.Error)
	case result.Key != doc.Key:
		return fmt.Errorf("document %s: the result is that of %q", doc.Key, result.Key)
	case result.Version != doc.Version:
		return fmt.Errorf("document %s became version %d, the labels speak of version %d: ingest into an empty collection", doc.Key, result.Version, doc.Version)
	}
	return nil
}
