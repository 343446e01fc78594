package main

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"sluice/filter"
	"sluice/gpu"
	"sluice/index/milvus"
	"sluice/ingest"
	"sluice/model/tokenizer"
	"sluice/retrieve"
	answers "sluice/retrieve/answer"
	"sluice/server"
	"sluice/store"
)

// backend is what the server serves: the two ways through the house.
type backend struct {
	store      store.Store
	engine     *retrieve.Engine
	answerer   *answers.Answerer
	writer     *ingest.Writer
	reindexer  *ingest.Reindexer
	embedder   *gpu.Scheduler
	reranker   gpu.Reranker   // nil: none
	classifier gpu.Classifier // nil: none
	serving    *retrieve.Serving
	milvus     []*milvus.Cluster // none: the index is embedded
}

var _ server.Backend = (*backend)(nil)

func (b *backend) CreateCollection(ctx context.Context, p filter.Principal, name string, settings store.Settings) (store.Collection, bool, error) {
	return b.writer.CreateCollection(ctx, p.Tenant, name, settings)
}

func (b *backend) Collection(ctx context.Context, p filter.Principal, name string) (store.Collection, error) {
	return b.writer.Collection(ctx, p.Tenant, name)
}

func (b *backend) Collections(ctx context.Context, tenant string) ([]store.Collection, error) {
	all, err := b.store.Collections(ctx)
	all = slices.DeleteFunc(all, func(c store.Collection) bool { return c.Tenant != tenant })
	slices.SortFunc(all, func(a, b store.Collection) int { return cmp.Compare(a.Name, b.Name) })
	return all, err
}

func (b *backend) Policies(ctx context.Context) (store.PolicySource, error) {
	return b.store.Policies(ctx)
}

func (b *backend) Write(ctx context.Context, p filter.Principal, collection string, d ingest.Document) (ingest.Outcome, error) {
	return b.writer.Write(ctx, p.Tenant, collection, d)
}

func (b *backend) Delete(ctx context.Context, p filter.Principal, collection, key string) (uint64, error) {
	receipt, err := b.writer.Delete(ctx, p.Tenant, collection, key)
	return receipt.Epoch, err
}

func (b *backend) SetAccess(ctx context.Context, p filter.Principal, collection, key string, change func(filter.Access) (filter.Access, error)) (store.Receipt, error) {
	return b.writer.SetAccess(ctx, p.Tenant, collection, key, change)
}

func (b *backend) PreviewAccess(ctx context.Context, tenant, collection string, s retrieve.Supposition, principals []retrieve.Previewed) (retrieve.Preview, error) {
	return b.engine.Preview(ctx, tenant, collection, s, principals)
}

func (b *backend) ExplainAccess(ctx context.Context, p filter.Principal, collection, key string) (store.Record, filter.Explanation, error) {
	return b.engine.Explain(ctx, p, collection, key)
}

func (b *backend) Document(ctx context.Context, p filter.Principal, collection, key string) (store.Content, error) {
	return b.engine.Document(ctx, p, collection, key)
}

// List uses the key of a page's last document as the cursor to the next: it
// tells nothing that the page did not.
func (b *backend) List(ctx context.Context, p filter.Principal, collection, cursor string, limit int) ([]store.Record, string, error) {
	page, more, err := b.engine.List(ctx, p, collection, cursor, limit)
	if err != nil || !more {
		return page, "", err
	}
	return page, page[len(page)-1].Key, nil
}

func (b *backend) Search(ctx context.Context, r retrieve.Request) (retrieve.Response, error) {
	b.embedder.EnterForeground()
	defer b.embedder.LeaveForeground()
	return b.engine.Search(ctx, r)
}

func (b *backend) Answer(ctx context.Context, r answers.Request) (answers.Response, error) {
	return b.answerer.Answer(ctx, r)
}

func (b *backend) Reindexer() server.Reindexer { return b.reindexer }

func (b *backend) Embed(ctx context.Context, r gpu.Request) ([]gpu.Embedding, error) {
	return b.embedder.Embed(ctx, r)
}

func (b *backend) Info() gpu.Info { return b.embedder.Info() }

func (b *backend) Tokenizer() *tokenizer.Tokenizer { return b.embedder.Tokenizer() }

func (b *backend) Reranker() gpu.Reranker { return b.reranker }

func (b *backend) Classifier() gpu.Classifier { return b.classifier }

func (b *backend) Epoch() uint64 { return b.serving.Applied() }

func (b *backend) Ready(context.Context) error {
	errs := []error{b.serving.Ready(), b.embedder.Ready()}
	for _, c := range b.milvus {
		errs = append(errs, c.Ready())
	}
	return errors.Join(errs...)
}
