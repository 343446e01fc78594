package retrieve

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"

	"sluice/filter"
	"sluice/gpu"
	"sluice/index"
	"sluice/index/late"
	"sluice/store"
	"sluice/trace"
)

// Engine answers queries.
type Engine struct {
	store         store.Store
	serving       *Serving
	embedder      gpu.Embedder
	reranker      gpu.Reranker // nil: none
	rerankTimeout time.Duration
	matcher       Matcher // nil: none
	coders        *late.Coders
	codes         *codesCache
	now           func() time.Time
}

// NewEngine returns an Engine on a Serving.
func NewEngine(st store.Store, serving *Serving, embedder gpu.Embedder) *Engine {
	return &Engine{
		store: st, serving: serving, embedder: embedder, now: time.Now,
		coders: late.NewCoders(), codes: newCodesCache(),
	}
}

// SetLookups is how often searches found their principal's Set at hand and up to
// date, and how often not.
func (e *Engine) SetLookups() (hits, misses uint64) { return e.serving.lookups.Count() }

// CodeLookups is the same of the token codes that the store does not have.
func (e *Engine) CodeLookups() (hits, misses uint64) { return e.codes.lookups.Count() }

// RerankWith has searches with HybridRerank use a reranker, for so long each.
// It is to be called before the first search.
func (e *Engine) RerankWith(r gpu.Reranker, timeout time.Duration) {
	e.reranker, e.rerankTimeout = r, timeout
}

func (e *Engine) models(s store.Settings) models {
	info := e.embedder.Info()
	m := models{embedder: s.Model(info.Digest), codes: late.Kind{
		Dimensions: s.TokenDimensions(info.TokenDimensions), Bits: cmp.Or(s.CodeBits, 1), // what is encoded on the fly is of 1
	}}
	if e.reranker != nil {
		m.reranker = e.reranker.Info().Digest
	}
	return m
}

// Search answers a request. An unknown collection is store.ErrNotFound, a bad
// request store.ErrInvalid.
func (e *Engine) Search(ctx context.Context, r Request) (Response, error) {
	began := e.now()
	at, epoch, err := e.serving.acquire(ctx, r.Principal.Tenant, r.Collection, r.Generation)
	if err != nil {
		return Response{}, err
	}
	defer at.release()
	g, err := e.givenBy(r, at.Settings)
	if err != nil {
		return Response{}, err
	}
	models := e.models(at.Settings)
	plan, err := newPlan(r, g, models, at.Settings)
	if err != nil {
		return Response{}, err
	}
	q := &query{
		engine: e, request: r, given: g, plan: plan, at: at, scope: e.scope(r), decider: e.decider(at, r.Principal),
		last: began, trace: trace.From(ctx), loaded: map[uint32]*store.Content{},
	}
	if plan.Codes != "" {
		q.coder = e.coders.Of(models.codes)
	}
	response, err := q.run(ctx)
	response.Epoch = epoch
	return response, err
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
	given   given       // and what the model makes of it
	special []bool      // of given.tokens: which are not to be matched; nil: none
	coder   *late.Coder // of the collection's token codes
	plan    Plan
	at      *snapshot
	scope   filter.Scope
	allowed filter.Set
	decider *decider

	loaded   map[uint32]*store.Content // by ordinal; nil: not to be shown
	response Response
	trace    *trace.Recorder
	last     time.Time // when the last stage ended
}

func (q *query) run(ctx context.Context) (Response, error) {
	q.response = Response{Strategy: q.plan.Strategy, PlanHash: q.plan.Hash(), Ranking: q.plan.ranking(), Generation: q.at.ID, Analyzer: q.at.Settings.Analyzer}
	if q.plan.Router != "" {
		q.response.Complexity = trainedRouter().model.Of(q.given.text)
	}
	if q.engine.serving.gate != nil {
		q.ended("feed")
	}
	if err := q.resolve(); err != nil {
		return Response{}, err
	}
	candidates, err := q.ranked(ctx)
	if err != nil {
		return Response{}, err
	}
	if err := q.assemble(ctx, candidates); err != nil {
		return Response{}, err
	}
	return q.response, nil
}

// ranked returns candidates that the recheck let pass, best first.
func (q *query) ranked(ctx context.Context) ([]candidate, error) {
	if q.plan.Strategy == Late {
		if found, whole, err := q.scan(ctx); err != nil || whole {
			return found, err
		}
		if q.plan.DenseDepth+q.plan.LexicalDepth == 0 {
			return nil, fmt.Errorf("%w: more than %d passages may be read; bring vector or query beside vectors, to find candidates by", store.ErrInvalid, q.plan.ScanRows)
		}
		q.degraded("late_scan")
	}
	legs, err := q.legs(ctx)
	if err != nil {
		return nil, err
	}
	candidates := q.fuse(legs)
	if candidates, err = q.recheck(ctx, candidates); err != nil {
		return nil, err
	}
	return q.rerank(ctx, legs, candidates)
}

func (q *query) degraded(stage string) { q.response.Degraded = append(q.response.Degraded, stage) }

func (q *query) ended(stage string) {
	now := q.engine.now()
	q.trace.AddSpan(trace.Span{Name: stage, Start: q.last, End: now})
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
	var lost, partial bool
	group, ctx := errgroup.WithContext(ctx)
	if q.plan.DenseDepth > 0 {
		group.Go(index.Guarded(func() (err error) {
			dense.hits, err = q.dense(ctx)
			if partial = errors.Is(err, index.ErrPartial); partial {
				err = nil
			}
			if lost = errors.Is(err, errEmbedding) && ctx.Err() == nil && q.plan.LexicalDepth > 0; lost {
				err = nil
			}
			return err
		}))
	}
	if q.plan.LexicalDepth > 0 {
		group.Go(index.Guarded(func() (err error) {
			defer q.trace.Add("lexical", q.trace.Now())
			lexical.hits, err = q.at.reader.Lexical(ctx, q.allowed, q.request.Query, q.plan.LexicalDepth)
			return err
		}))
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	if lost {
		q.degraded("dense_unavailable")
	}
	if partial {
		q.degraded("dense_partial")
	}
	return []leg{dense, lexical}, nil
}

func (q *query) fuse(legs []leg) []candidate {
	defer q.ended("fuse")
	switch {
	case q.plan.Strategy == Dense:
		return single(legs[0])
	case q.plan.Strategy == Sparse:
		return single(legs[1])
	case q.plan.Fusion == Score:
		return weightedSum(legs)
	}
	return reciprocalRank(q.plan.RRFConstant, legs)
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
	switch q.plan.Strategy {
	case HybridLate, Late:
		return q.late(ctx, legs[1], pool)
	case HybridRerank:
		return q.crossEncode(ctx, pool)
	}
	return pool, nil
}
