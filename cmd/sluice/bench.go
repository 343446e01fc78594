package main

import (
	"context"
	"os"
	"path/filepath"
	"time"

	"github.com/alecthomas/kong"

	"sluice/bench"
	"sluice/bench/figures"
	"sluice/model/hub"
)

type benchCommand struct {
	Embed   benchEmbedCommand   `cmd:"" help:"The encoder at every precision: tokens a second, latency, cosine to f32; with --peers beside other engines, turn by turn."`
	Rerank  benchRerankCommand  `cmd:"" help:"The cross-encoder at every precision, and late interaction: pairs a second and latency for 30 candidates of 180 words; with --peers beside other engines, turn by turn."`
	Lexical benchLexicalCommand `cmd:"" help:"BM25 over passages with one thread, unfiltered and filtered; with --peers beside other engines, turn by turn."`
	Search  benchSearchCommand  `cmd:"" help:"Nearest neighbours under filters with one thread: recall, queries a second, build time, memory; with --peers beside other indexes, turn by turn."`
	Hybrid  benchHybridCommand  `cmd:"" help:"Hybrid search through HTTP among many passages at a rate: latency alone, beside a writer, and what revocations take beside it."`
	Ingest  benchIngestCommand  `cmd:"" help:"Documents a second that a daemon takes in bulk, with and without their embeddings, and what acknowledgements take."`
	Filter  benchFilterCommand  `cmd:"" help:"Who may read what: a principal's Set cold, warm and after a change, a revocation, a recheck, set algebra."`
	Serve   benchServeCommand   `cmd:"" help:"A daemon under load, in closed loops and in an open one: latency, throughput, CPU time, memory; with --peers beside other servers, turn by turn."`
	Reindex benchReindexCommand `cmd:"" help:"Updates and reindexes of a daemon: time against a build from scratch, chunks embedded, and searches that fail or mix generations meanwhile."`
	Compare benchCompareCommand `cmd:"" help:"Two runs, or two folders of runs, figure by figure: which differ by more than their rounds do."`
	Report  benchReportCommand  `cmd:"" help:"A page of runs, in one HTML file: latency against load, distributions, time series, all figures."`
	Daemon  benchDaemonCommand  `cmd:"" hidden:""`
}

// beside are the peers that run in the same turns.
type beside struct {
	Peers  bool   `help:"Run the peers of bench/peers too ('make peers' sets them up)."`
	Python string `default:".peers/bin/python" help:"With --peers: the Python that has bench/peers/requirements.txt."`
}

// script is nil without --peers.
func (b beside) script(name string, engines ...string) *bench.Peers {
	if !b.Peers {
		return nil
	}
	return &bench.Peers{Python: b.Python, Script: filepath.Join("bench", "peers", name), Names: engines}
}

// benchCache is where corpora, vectors and indexes stay for later runs.
func benchCache() (string, error) {
	cache, err := hub.CacheDir()
	return filepath.Join(cache, "bench"), err
}

type benchLexicalCommand struct {
	beside
	output
	Data     string `arg:"" type:"existingdir" help:"Directory with texts (.md, .txt, .tar.xz) to make passages of."`
	Passages int    `default:"300000" help:"How many passages."`
	Queries  int    `default:"300" help:"Queries of one turn."`
	Rounds   int    `default:"5" help:"Turns of each contestant at each filter."`
}

func (c benchLexicalCommand) Run(ctx context.Context, k *kong.Context) error {
	cache, err := benchCache()
	if err != nil {
		return err
	}
	options := bench.LexicalOptions{Data: c.Data, Cache: cache, Passages: c.Passages, Queries: c.Queries, Rounds: c.Rounds, Log: os.Stdout}
	options.Peers = c.script("lexical.py")
	return c.here(ctx, k, func(ctx context.Context) (figures.File, error) { return bench.Lexical(ctx, options) })
}

type benchSearchCommand struct {
	beside
	output
	Data    string   `arg:"" type:"existingdir" help:"Directory with texts (.md, .txt, .tar.xz) whose sentences are embedded."`
	Model   string   `default:"all-minilm-l6-v2" help:"A name that 'sluice model pull' knows, or a directory."`
	Rows    int      `default:"300000" help:"How many vectors: sentences, and noisy copies of them when there are not enough."`
	Queries int      `default:"200" help:"Queries of one turn, at most 1,000."`
	Rounds  int      `default:"5" help:"Turns of each contestant at each filter."`
	Engines []string `help:"With --peers: only these, for example hnswlib,faiss_flat."`
	Index   string   `enum:"local,milvus" default:"local" help:"Which index: local, or milvus beside bare calls of its library."`
	Milvus  string   `default:"127.0.0.1:19530" help:"With --index milvus: the server."`
}

func (c benchSearchCommand) Run(ctx context.Context, k *kong.Context) error {
	dir, err := modelDir(ctx, c.Model)
	if err != nil {
		return err
	}
	cache, err := benchCache()
	if err != nil {
		return err
	}
	options := bench.SearchOptions{
		Vectors: bench.VectorOptions{Model: dir, Corpora: c.Data, Cache: cache, Rows: c.Rows},
		Queries: c.Queries, Rounds: c.Rounds, Log: os.Stdout,
	}
	if c.Index == "milvus" {
		options := bench.MilvusOptions{Address: c.Milvus, Vectors: options.Vectors, Queries: c.Queries, Log: os.Stdout}
		return c.here(ctx, k, func(ctx context.Context) (figures.File, error) { return bench.Milvus(ctx, options) })
	}
	options.Peers = c.script("search.py", c.Engines...)
	return c.here(ctx, k, func(ctx context.Context) (figures.File, error) { return bench.Search(ctx, options) })
}

type benchFilterCommand struct {
	output
	Documents int `default:"100000" help:"How many documents."`
	Classes   int `default:"10000" help:"Of access, over the documents in turn; Cedar decides about each."`
	Rounds    int `default:"5" help:"Turns of each operation."`
}

func (c benchFilterCommand) Run(ctx context.Context, k *kong.Context) error {
	options := bench.FilterOptions{Documents: c.Documents, Classes: c.Classes, Rounds: c.Rounds, Log: os.Stdout}
	return c.here(ctx, k, func(ctx context.Context) (figures.File, error) { return bench.Filter(ctx, options) })
}

type benchEmbedCommand struct {
	beside
	output
	Model   string        `default:"all-minilm-l6-v2" help:"A name that 'sluice model pull' knows, or a directory."`
	Threads int           `help:"Threads of every contestant. Default: all cores."`
	Rounds  int           `default:"7" help:"Turns of each contestant at each shape."`
	Turn    time.Duration `default:"200ms" help:"Length of one turn."`
	Goldens string        `type:"existingdir" help:"Directory with texts.jsonl and embeddings_256.f32le: cosines to published vectors."`
}

func (c benchEmbedCommand) Run(ctx context.Context, k *kong.Context) error {
	dir, err := modelDir(ctx, c.Model)
	if err != nil {
		return err
	}
	options := bench.EmbedOptions{
		Model: dir, Threads: c.Threads, Rounds: c.Rounds, Turn: c.Turn, Goldens: c.Goldens, Log: os.Stdout,
	}
	options.Peers = c.script("embed.py")
	return c.here(ctx, k, func(ctx context.Context) (figures.File, error) { return bench.Embed(ctx, options) })
}

type benchRerankCommand struct {
	beside
	output
	Model   string        `default:"all-minilm-l6-v2" help:"A cross-encoder's directory; an encoder is given a random head, which is as fast."`
	Threads int           `help:"Threads of every contestant but late interaction, which has one. Default: all cores."`
	Rounds  int           `default:"5" help:"Turns of each contestant."`
	Turn    time.Duration `default:"500ms" help:"Length of one turn."`
}

func (c benchRerankCommand) Run(ctx context.Context, k *kong.Context) error {
	dir, err := modelDir(ctx, c.Model)
	if err != nil {
		return err
	}
	options := bench.RerankOptions{Model: dir, Threads: c.Threads, Rounds: c.Rounds, Turn: c.Turn, Log: os.Stdout}
	options.Peers = c.script("embed.py")
	return c.here(ctx, k, func(ctx context.Context) (figures.File, error) { return bench.Rerank(ctx, options) })
}
