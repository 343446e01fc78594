package retrieve

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"sluice/filter"
	"sluice/gpu"
	"sluice/index/late"
	"sluice/store"
)

// MaxQueryBytes bounds a query's text.
const MaxQueryBytes = 8 << 10

// Engine answers queries.
type Engine struct {
	store         store.Store
	serving       *Serving
	embedder      gpu.Embedder
	reranker      gpu.Reranker // nil: none
	rerankTimeout time.Duration
	coder         *late.Coder
	codes         *codesCache
	now           func() time.Time
}

// NewEngine returns an Engine on a Serving.
func NewEngine(st store.Store, serving *Serving, embedder gpu.Embedder) *Engine {
	return &Engine{
		store: st, serving: serving, embedder: embedder, now: time.Now,
		coder: late.NewCoder(embedder.Info().Dimensions), codes: newCodesCache(),
	}
}

// RerankWith has searches with HybridRerank use a reranker, for so long each.
// It is to be called before the first search.
func (e *Engine) RerankWith(r gpu.Reranker, timeout time.Duration) {
	e.reranker, e.rerankTimeout = r, timeout
}

func (e *Engine) models() models {
	m := models{embedder: e.embedder.Info().Digest}
	if e.reranker != nil {
		m.reranker = e.reranker.Info().Digest
	}
	return m
}

// Search answers a request. An unknown collection is store.ErrNotFound, a bad
// request store.ErrInvalid.
func (e *Engine) Search(ctx context.Context, r Request) (Response, error) {
	if err := checkQuery(r.Query); err != nil {
		return Response{}, err
	}
	epoch := e.serving.Applied()
	at, err := e.serving.acquire(r.Principal.Tenant, r.Collection)
	if err != nil {
		return Response{}, err
	}
	defer at.release()
	plan, err := newPlan(r, e.models(), at.Settings.Analyzer)
	if err != nil {
		return Response{}, err
	}
	q := &query{
		engine: e, request: r, plan: plan, at: at, scope: e.scope(r), decider: e.decider(at, r.Principal),
		last: e.now(), loaded: map[uint32]*store.Content{},
	}
	response, err := q.run(ctx)
	response.Epoch = epoch
	return response, err
}

func checkQuery(text string) error {
	if strings.TrimSpace(text) == "" {
		return fmt.Errorf("%w: the query is empty", store.ErrInvalid)
	}
	if len(text) > MaxQueryBytes {
		return fmt.Errorf("%w: the query has %d bytes; at most %d are allowed", store.ErrInvalid, len(text), MaxQueryBytes)
	}
	return nil
}

// scope fills what the request leaves open: the present time.
func (e *Engine) scope(r Request) filter.Scope {
	s := r.Scope
	if s.AsOf.IsZero() {
		s.AsOf = e.now()
	}
	return s
}

// query is one search under way.
type query struct {
	engine  *Engine
	request Request
	plan    Plan
	at      *snapshot
	scope   filter.Scope
	allowed filter.Set
	decider *decider

	embedded gpu.Embedding             // of the query; zero where there is none
	loaded   map[uint32]*store.Content // by ordinal; nil: not to be shown
	response Response
	last     time.Time // when the last stage ended
}

func (q *query) run(ctx context.Context) (Response, error) {
	q.response = Response{Strategy: q.plan.Strategy, PlanHash: q.plan.Hash()}
	if err := q.resolve(); err != nil {
		return Response{}, err
	}
	legs, err := q.legs(ctx)
	if err != nil {
		return Response{}, err
	}
	candidates := q.fuse(legs)
	if candidates, err = q.recheck(ctx, candidates); err != nil {
		return Response{}, err
	}
	if candidates, err = q.rerank(ctx, legs, candidates); err != nil {
		return Response{}, err
	}
	if err := q.assemble(ctx, candidates); err != nil {
		return Response{}, err
	}
	return q.response, nil
}

func (q *query) ended(stage string) {
	now := q.engine.now()
	q.response.Stages = append(q.response.Stages, Stage{stage, now.Sub(q.last)})
	q.last = now
}

func (q *query) resolve() error {
	defer q.ended("resolve")
	visible, err := q.at.view.Resolve(q.request.Principal)
	if err != nil {
		return fmt.Errorf("resolving what may be read: %w", err)
	}
	q.allowed = q.at.view.Within(visible, q.scope)
	q.response.Visible = visible.Len()
	q.response.OutOfScope = visible.Len() - q.allowed.Len()
	return nil
}

// legs runs those the plan asks for side by side. In a hybrid plan a dense leg
// that fails for lack of an embedding degrades the answer, and says so.
func (q *query) legs(ctx context.Context) ([]leg, error) {
	defer q.ended("legs")
	dense := leg{name: "dense", depth: q.plan.DenseDepth, weight: q.plan.DenseWeight}
	lexical := leg{name: "lexical", depth: q.plan.LexicalDepth, weight: q.plan.LexicalWeight}
	var degraded bool
	group, ctx := errgroup.WithContext(ctx)
	if q.plan.DenseDepth > 0 {
		group.Go(func() (err error) {
			dense.hits, err = q.dense(ctx)
			if degraded = errors.Is(err, errEmbedding) && ctx.Err() == nil && q.plan.fuses(); degraded {
				err = nil
			}
			return err
		})
	}
	if q.plan.LexicalDepth > 0 {
		group.Go(func() (err error) {
			lexical.hits, err = q.at.reader.Lexical(ctx, q.allowed, q.request.Query, q.plan.LexicalDepth)
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	if degraded {
		q.response.Degraded = append(q.response.Degraded, "dense_unavailable")
	}
	return []leg{dense, lexical}, nil
}

func (q *query) fuse(legs []leg) []candidate {
	defer q.ended("fuse")
	switch q.plan.Strategy {
	case Dense:
		return single(legs[0])
	case Sparse:
		return single(legs[1])
	default:
		return reciprocalRank(q.plan.RRFConstant, legs)
	}
}

// rerank scores the best candidates again, as the plan says, and drops the
// others. It comes after the recheck: what may not be read any more decides
// nothing about what may.
func (q *query) rerank(ctx context.Context, legs []leg, candidates []candidate) ([]candidate, error) {
	if q.plan.PoolDepth == 0 {
		return candidates, nil
	}
	defer q.ended("rerank")
	pool := candidates[:min(len(candidates), q.plan.PoolDepth)]
	if q.plan.Fusion == Score {
		pool = standardScore(legs, pool)
	}
	switch q.plan.Strategy {
	case HybridLate:
		return q.late(ctx, pool)
	case HybridRerank:
		return q.crossEncode(ctx, pool)
	}
	return pool, nil
}
