package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"
	"golang.org/x/time/rate"

	"sluice/chunk/planner"
	"sluice/document/convert"
	"sluice/filter"
	"sluice/gpu"
	"sluice/gpu/cuda"
	"sluice/index"
	"sluice/index/local"
	"sluice/index/milvus"
	"sluice/index/text"
	"sluice/ingest"
	"sluice/model/chat"
	"sluice/model/hub"
	"sluice/retrieve"
	answers "sluice/retrieve/answer"
	"sluice/server"
	"sluice/server/audit"
	"sluice/server/config"
	"sluice/server/identity"
	"sluice/server/traces"
	"sluice/store"
)

const closeTimeout = time.Minute

// daemon is everything that runs, in the order it starts.
type daemon struct {
	config      config.Config
	started     config.Config                 // as it was read; config has what auto has become
	reread      func() (config.Config, error) // reads the configuration again
	log         *slog.Logger
	store       store.Store
	indexes     string            // directory of the collections' indexes
	lock        io.Closer         // of the data directory, where the store has none; else nil
	database    string            // identity of a store that other daemons use too; "": it is ours alone
	shared      []retrieve.Option // of a store that other daemons use too
	audit       *audit.Log        // nil: none
	reloads     *server.Reloads
	budget      *server.Budget      // of all requests and texts under way
	certificate *server.Certificate // nil: plain HTTP
	embedder    *gpu.Scheduler
	searcher    *cuda.Searcher // nil: no GPU
	reranker    gpu.Reranker   // nil: none
	classifier  gpu.Classifier // nil: none
	milvus      []*milvus.Cluster
	serving     *retrieve.Serving
	writer      *ingest.Writer
	engine      *retrieve.Engine
	reindexer   *ingest.Reindexer
	converter   *convert.Converter
	server      *server.Server
	traces      *traces.Exporter // nil: none
	registry    *prometheus.Registry

	cores  int           // that the runtime uses, counted when the daemon opens
	merges *rate.Limiter // what indexes write in the background

	policies *filter.Policies // overrides config.Policies where not nil

	snapshots  sync.Mutex              // held by the one under way
	reloading  sync.Mutex              // the same
	identities *identity.Authenticator // in force
	keysEnd    context.CancelFunc      // of watching its keys
}

// open starts everything but the listeners. On an error what had started is
// closed again.
func (d *daemon) open(ctx context.Context) (err error) {
	defer func() {
		if err != nil {
			err = errors.Join(err, d.close())
		}
	}()
	d.cores = runtime.GOMAXPROCS(0)
	d.registry = prometheus.NewRegistry()
	d.merges = rate.NewLimiter(rate.Limit(d.config.Limits.MergeBytes), int(d.config.Limits.MergeBytes))
	server.RegisterProcess(d.registry, commit)
	d.reloads = server.NewReloads(d.registry, d.log)
	if err := d.openCertificate(); err != nil {
		return err
	}
	if err := d.openStore(ctx); err != nil {
		return err
	}
	if err := d.openAudit(); err != nil {
		return err
	}
	if err := d.startPolicies(ctx); err != nil {
		return err
	}
	if err := d.openModels(ctx); err != nil {
		return err
	}
	if err := d.connectMilvus(ctx); err != nil {
		return err
	}
	if err := d.sweepIndexes(ctx); err != nil {
		return err
	}
	if d.serving, err = retrieve.NewServing(ctx, d.store, d.embedder.Info().Digest, d.openIndex, d.log, append(d.shared, retrieve.Cores(d.cores))...); err != nil {
		return err
	}
	server.RegisterPolicyFaults(d.registry, d.serving.PolicyFaults)
	server.RegisterFeed(d.registry, d.serving.Applied)
	if err := d.openReindexer(ctx); err != nil {
		return err
	}
	return d.openServer(ctx)
}

func (d *daemon) openAudit() (err error) {
	c := d.config.Audit
	if c.Directory == "off" {
		return nil
	}
	d.audit, err = audit.Open(audit.Options{
		Directory: cmp.Or(c.Directory, filepath.Join(d.config.Data, "audit")), FileBytes: int64(c.FileBytes), Files: c.Files,
		Sync: c.Sync, Administration: c.Administration, Searches: c.Searches, Log: d.log, Registry: d.registry,
	})
	return err
}

// internalError is the status of what the daemon itself does and fails at.
func internalError(error) int { return http.StatusInternalServerError }

// openModels starts the embedder and, if there are any, the reranker and the
// classifier beside it.
func (d *daemon) openModels(ctx context.Context) error {
	names := []string{d.config.Model, d.config.Reranker, d.config.Classifier}
	dirs, err := modelDirs(ctx, names)
	if err != nil {
		return err
	}
	d.budget = server.NewBudget(d.config.Limits.TotalBytes)
	options := gpu.Options{Room: d.budget, Hooks: server.SchedulerHooks(d.registry, d.log)}
	if d.embedder, err = d.openScheduler(ctx, options, dirs.distinct()); err != nil {
		return err
	}
	if d.searcher != nil {
		server.RegisterGPUs(d.registry, d.searcher.Telemetry)
	}
	info := d.embedder.Info()
	if len(info.Labels) > 0 {
		return fmt.Errorf("model: %s is a classifier; name it as reranker or classifier, and an embedding model as model", info.Model)
	}
	d.log.Info("model loaded", "model", info.Model, "device", d.config.Device, "precision", info.Precision, "dimensions", info.Dimensions)
	return errors.Join(d.useReranker(dirs[1]), d.useClassifier(dirs[2]))
}

// useReranker also answers what is asked of a classifier, if there is no other.
func (d *daemon) useReranker(dir string) (err error) {
	if dir == "" {
		return nil
	}
	if d.classifier, err = d.loadedClassifier("reranker", dir); err != nil {
		return err
	}
	info, ok := d.classifier.Info(), false
	if d.reranker, ok = d.embedder.Reranker(info.Model); !ok {
		return fmt.Errorf("reranker: %s has %d labels, and a cross-encoder has one; to serve /predict, name it as classifier", dir, len(info.Labels))
	}
	return nil
}

func (d *daemon) useClassifier(dir string) (err error) {
	if dir != "" {
		d.classifier, err = d.loadedClassifier("classifier", dir)
	}
	return err
}

// loadedClassifier is the model loaded for a key of the configuration.
func (d *daemon) loadedClassifier(key, dir string) (gpu.Classifier, error) {
	c, ok := d.embedder.Classifier(filepath.Base(dir))
	if !ok {
		return nil, fmt.Errorf("%s: %s is not a sequence classifier", key, dir)
	}
	d.log.Info(key+" loaded", "model", c.Info().Model, "precision", c.Info().Precision, "labels", len(c.Info().Labels))
	return c, nil
}

// modelFolders are models' folders, "" where there is none.
type modelFolders []string

func modelDirs(ctx context.Context, names []string) (modelFolders, error) {
	dirs := make(modelFolders, len(names))
	for i, name := range names {
		if name == "" {
			continue
		}
		dir, err := modelDir(ctx, name)
		if err != nil {
			return nil, err
		}
		dirs[i] = dir
	}
	return dirs, nil
}

// distinct is the folders there are, each once.
func (f modelFolders) distinct() (dirs []string) {
	for _, dir := range f {
		if dir != "" && !slices.Contains(dirs, dir) {
			dirs = append(dirs, dir)
		}
	}
	return dirs
}

// openIndex opens one collection's index. The index is derived: one that is
// damaged, or made by another model, is removed and built again.
func (d *daemon) openIndex(c store.Collection, fresh bool) (index.Index, error) {
	if len(d.milvus) > 0 {
		return d.openOnMilvus(c, fresh)
	}
	dir := collectionDir(d.indexes, c)
	analyzer, err := text.New(c.Settings.Analyzer)
	if err != nil {
		return nil, err
	}
	info := d.embedder.Info()
	options := local.Options{
		Dimensions: c.Settings.Dimensions(info.Dimensions), Model: c.Settings.Model(info.Digest), Analyzer: analyzer,
		Recall: d.config.DenseRecall, MergeLimit: d.merges, Cores: d.cores, Log: d.log, Hold: d.hold(),
	}
	if !fresh {
		ix, err := local.Open(dir, options)
		if !errors.Is(err, index.ErrRebuild) {
			return ix, err
		}
		d.log.Warn("the index cannot be used and is rebuilt", "collection", c.Name, "reason", err)
	}
	if err := os.RemoveAll(dir); err != nil {
		return nil, fmt.Errorf("removing the old index: %w", err)
	}
	return local.Open(dir, options)
}

func (d *daemon) openServer(ctx context.Context) error {
	keys, end := context.WithCancel(ctx)
	d.keysEnd = end
	var err error
	d.identities, err = identity.New(keys, d.config.Auth, d.config.Demo)
	if err != nil {
		return err
	}
	_ = d.reloads.Note("keys", nil)
	if d.traces, err = traces.Open(ctx, d.config.Traces, commit, d.log); err != nil {
		return err
	}
	answerer, err := d.newAnswerer()
	if err != nil {
		return err
	}
	d.server = server.New(server.Options{
		Backend: &backend{
			store:      d.store,
			engine:     d.engine,
			answerer:   answerer,
			writer:     d.writer,
			reindexer:  d.reindexer,
			embedder:   d.embedder,
			reranker:   d.reranker,
			classifier: d.classifier,
			serving:    d.serving,
			milvus:     d.milvus,
		},
		Identities: d.identities, Cores: d.cores, Limits: d.config.Limits, Budget: d.budget, Demo: d.config.Demo.Enabled,
		Audit: d.audit, Certificate: d.certificate, Traces: d.traces, Log: d.log, Registry: d.registry, Version: commit,
	})
	return nil
}

func (d *daemon) newWriter() (*ingest.Writer, error) {
	d.converter = convert.New(codeCache(), d.cores)
	if d.converter.Prepare() {
		d.log.Info("compiling the PDF reader in the background, once on this machine; the first PDF may wait for it")
	}
	w := ingest.NewWriter(d.store, d.embedder, d.serving).Parsing(d.converter.Parse)
	p := d.config.Planner
	if p == nil {
		return w, nil
	}
	var key []byte
	if p.KeyFile != "" {
		var err error
		if key, err = os.ReadFile(p.KeyFile); err != nil {
			return nil, fmt.Errorf("planner.key_file: %w", err)
		}
	}
	return w.Planning(planner.Planner{Chat: chat.New(p.URL, p.Model, strings.TrimSpace(string(key)))}), nil
}

// codeCache is the folder for compiled code, "" if there is no home for it.
func codeCache() string {
	dir, err := hub.CacheDir()
	if err != nil {
		return ""
	}
	return filepath.Join(dir, "compiled")
}

// openReindexer goes on with the reindex jobs that the last run left running.
func (d *daemon) openReindexer(ctx context.Context) (err error) {
	if d.writer, err = d.newWriter(); err != nil {
		return err
	}
	d.engine = d.newEngine()
	var options []ingest.ReindexOption
	if d.config.Store != "" {
		options = append(options, ingest.Shared(d.config.StoreStaleness+d.config.Limits.RequestTimeout))
	}
	if d.reindexer, err = ingest.NewReindexer(ctx, d.writer, generations{d.serving, d.engine}, d.log, options...); err != nil {
		return err
	}
	server.RegisterReindexes(d.registry, d.reindexer.Totals)
	server.RegisterCache(d.registry, "principals", d.engine.SetLookups)
	server.RegisterCache(d.registry, "token_codes", d.engine.CodeLookups)
	return nil
}

func (d *daemon) newEngine() *retrieve.Engine {
	engine := retrieve.NewEngine(d.store, d.serving, d.embedder)
	if d.reranker != nil {
		engine.RerankWith(d.reranker, d.config.Limits.RerankTimeout)
	}
	engine.MatchWith(d.matcher())
	return engine
}

// newAnswerer has no model where none is configured.
func (d *daemon) newAnswerer() (*answers.Answerer, error) {
	o := answers.Options{
		Searcher: d.engine, Embedder: d.embedder, Tokens: answers.DefaultTokens, Timeout: d.config.Limits.RequestTimeout, Observer: server.NewAnswerMetrics(d.registry),
	}
	c := d.config.Answer
	if c == nil {
		return answers.New(o), nil
	}
	key := os.Getenv(c.KeyEnv)
	if c.KeyEnv != "" && key == "" {
		return nil, fmt.Errorf("answer.key_env: the variable %s is empty; put the key into it, or leave key_env out", c.KeyEnv)
	}
	o.Chat = chat.New(c.BaseURL, c.Model, key)
	o.Timeout, o.Tokens, o.Relevance, o.Rerank = c.Timeout, c.ContextTokens, *c.Relevance, c.Rerank
	o.Prices = answers.Prices{Prompt: c.PromptPrice, Completion: c.CompletionPrice}
	if d.classifier != nil && slices.ContainsFunc(d.classifier.Info().Labels, answers.IsEntailment) {
		o.Entailment = d.classifier
	}
	return answers.New(o), nil
}

// serve answers on the listener, and the admin listener if there is one, until
// ctx ends; then it drains.
func (d *daemon) serve(ctx context.Context, listener, admin net.Listener) error {
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return d.server.Serve(ctx, listener) })
	if admin != nil {
		d.log.Info("listening for administrators", "url", "http://"+admin.Addr().String())
		group.Go(func() error {
			name, _, _ := net.SplitHostPort(d.config.AdminListen)
			return server.ServeAdmin(ctx, admin, server.Administration{
				Metrics: d.registry, Snapshot: d.snapshot, Cache: d.store, Reload: d.reload, Hosts: append(d.config.AdminHosts, name),
			})
		})
	}
	d.log.Info("listening", "url", d.scheme()+"://"+listener.Addr().String())
	return group.Wait()
}

// close stops what open started, in reverse.
func (d *daemon) close() error {
	ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
	defer cancel()
	var errs []error
	d.endKeys()
	if d.reindexer != nil {
		d.reindexer.Close()
	}
	if d.converter != nil {
		errs = append(errs, d.converter.Close())
	}
	if d.serving != nil {
		errs = append(errs, d.serving.Close(ctx))
	}
	if d.embedder != nil {
		errs = append(errs, d.embedder.Close(ctx))
	}
	for _, c := range d.milvus {
		errs = append(errs, c.Close())
	}
	d.audit.Close()
	errs = append(errs, d.traces.Close(ctx))
	return errors.Join(append(errs, d.closeStore())...)
}
