package eval

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"sluice/client"
)

// Bounds of one bulk write.
const (
	batchDocuments = 32
	batchBytes     = 4 << 20
)

// ingest writes the data set, tenant by tenant and an older version of a
// document before the newer one. It returns the model that the service names.
func (r *runner) ingest(ctx context.Context) error {
	for _, tenant := range r.dataset.tenants() {
		session, err := r.backend.As(ctx, writer(tenant))
		if err != nil {
			return fmt.Errorf("identity of the writer of tenant %s: %w", tenant, err)
		}
		collection, err := session.PutCollection(ctx, r.dataset.Name)
		if err != nil {
			return fmt.Errorf("creating collection %s in tenant %s: %w", r.dataset.Name, tenant, err)
		}
		r.report.Model = collection.Model
		for _, batch := range batches(r.dataset.Documents, tenant) {
			if err := r.write(ctx, session, batch); err != nil {
				return fmt.Errorf("ingesting into tenant %s: %w", tenant, err)
			}
		}
	}
	return nil
}

// batches cuts a tenant's documents into bulk writes of bounded size, none of
// which holds two versions of one document.
func batches(documents []Document, tenant string) [][]Document {
	var all [][]Document
	var batch []Document
	bytes := 0
	for _, doc := range documents {
		if doc.Tenant != tenant {
			continue
		}
		sameKey := func(other Document) bool { return other.Key == doc.Key }
		full := len(batch) == batchDocuments || bytes+len(doc.Text) > batchBytes
		if len(batch) > 0 && (full || slices.ContainsFunc(batch, sameKey)) {
			all, batch, bytes = append(all, batch), nil, 0
		}
		batch = append(batch, doc)
		bytes += len(doc.Text)
	}
	if len(batch) > 0 {
		all = append(all, batch)
	}
	return all
}

func (r *runner) write(ctx context.Context, session Session, batch []Document) error {
	var wire []client.Document
	for _, doc := range batch {
		wire = append(wire, doc.wire())
	}
	results, err := session.Write(ctx, r.dataset.Name, wire)
	if err != nil {
		return err
	}
	if len(results) != len(batch) {
		return fmt.Errorf("%d documents written, %d results", len(batch), len(results))
	}
	var errs []error
	for i, result := range results {
		errs = append(errs, checkWrite(batch[i], result))
	}
	r.progress("ingest", len(batch))
	return errors.Join(errs...)
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
