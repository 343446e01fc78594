package main

import (
	"context"
	"os"
	"path/filepath"
	"time"

	"sluice/bench"
	"sluice/bench/figures"
	"sluice/model/hub"
)

type benchCommand struct {
	Embed   benchEmbedCommand   `cmd:"" help:"The encoder at every precision: tokens a second, latency, cosine to f32; with --peers beside other engines, turn by turn."`
	Rerank  benchRerankCommand  `cmd:"" help:"The cross-encoder at every precision, and late interaction: pairs a second and latency for 30 candidates of 180 words; with --peers beside other engines, turn by turn."`
	Lexical benchLexicalCommand `cmd:"" help:"BM25 over passages with one thread, unfiltered and filtered; with --peers beside other engines, turn by turn."`
	Search  benchSearchCommand  `cmd:"" help:"Nearest neighbours under filters with one thread: recall, queries a second, build time, memory; with --peers beside other indexes, turn by turn."`
	Serve   benchServeCommand   `cmd:"" help:"A daemon under load, in closed loops and in an open one: latency, throughput, CPU time, memory; with --peers beside other servers, turn by turn."`
}

type benchLexicalCommand struct {
	Data     string `arg:"" type:"existingdir" help:"Directory with texts (.md, .txt, .tar.xz) to make passages of."`
	Passages int    `default:"300000" help:"How many passages."`
	Queries  int    `default:"300" help:"Queries of one turn."`
	Rounds   int    `default:"5" help:"Turns of each contestant at each filter."`
	Peers    bool   `help:"Run the peers of bench/peers too ('make peers' sets them up)."`
	Python   string `default:".peers/bin/python" help:"With --peers: the Python that has bench/peers/requirements.txt."`
	JSON     string `name:"json" type:"path" help:"File for the figures."`
}

func (c benchLexicalCommand) Run(ctx context.Context) error {
	cache, err := hub.CacheDir()
	if err != nil {
		return err
	}
	options := bench.LexicalOptions{Data: c.Data, Cache: filepath.Join(cache, "bench"), Passages: c.Passages, Queries: c.Queries, Rounds: c.Rounds, Log: os.Stdout}
	if c.Peers {
		options.Peers = &bench.Peers{Python: c.Python, Script: filepath.Join("bench", "peers", "lexical.py")}
	}
	file, err := bench.Lexical(ctx, options)
	if err != nil || c.JSON == "" {
		return err
	}
	file.Command = commandLine()
	return file.Write(c.JSON)
}

type benchSearchCommand struct {
	Data    string   `arg:"" type:"existingdir" help:"Directory with texts (.md, .txt, .tar.xz) whose sentences are embedded."`
	Model   string   `default:"all-minilm-l6-v2" help:"A name that 'sluice model pull' knows, or a directory."`
	Rows    int      `default:"300000" help:"How many vectors: sentences, and noisy copies of them when there are not enough."`
	Queries int      `default:"200" help:"Queries of one turn, at most 1,000."`
	Rounds  int      `default:"5" help:"Turns of each contestant at each filter."`
	Peers   bool     `help:"Run the peers of bench/peers too ('make peers' sets them up)."`
	Engines []string `help:"With --peers: only these, for example hnswlib,faiss_flat."`
	Python  string   `default:".peers/bin/python" help:"With --peers: the Python that has bench/peers/requirements.txt."`
	Index   string   `enum:"local,milvus" default:"local" help:"Which index: local, or milvus beside bare calls of its library."`
	Milvus  string   `default:"127.0.0.1:19530" help:"With --index milvus: the server."`
	JSON    string   `name:"json" type:"path" help:"File for the figures."`
}

func (c benchSearchCommand) Run(ctx context.Context) error {
	dir, err := modelDir(ctx, c.Model)
	if err != nil {
		return err
	}
	cache, err := hub.CacheDir()
	if err != nil {
		return err
	}
	options := bench.SearchOptions{
		Vectors: bench.VectorOptions{Model: dir, Corpora: c.Data, Cache: filepath.Join(cache, "bench"), Rows: c.Rows},
		Queries: c.Queries, Rounds: c.Rounds, Log: os.Stdout,
	}
	if c.Peers {
		options.Peers = &bench.Peers{Python: c.Python, Script: filepath.Join("bench", "peers", "search.py"), Names: c.Engines}
	}
	var file figures.File
	if c.Index == "milvus" {
		file, err = bench.Milvus(ctx, bench.MilvusOptions{Address: c.Milvus, Vectors: options.Vectors, Queries: c.Queries, Log: os.Stdout})
	} else {
		file, err = bench.Search(ctx, options)
	}
	if err != nil || c.JSON == "" {
		return err
	}
	file.Command = commandLine()
	return file.Write(c.JSON)
}

type benchEmbedCommand struct {
	Model   string        `default:"all-minilm-l6-v2" help:"A name that 'sluice model pull' knows, or a directory."`
	Threads int           `help:"Threads of every contestant. Default: all cores."`
	Rounds  int           `default:"7" help:"Turns of each contestant at each shape."`
	Turn    time.Duration `default:"200ms" help:"Length of one turn."`
	Peers   bool          `help:"Run the peers of bench/peers too ('make peers' sets them up)."`
	Python  string        `default:".peers/bin/python" help:"With --peers: the Python that has bench/peers/requirements.txt."`
	Goldens string        `type:"existingdir" help:"Directory with texts.jsonl and embeddings_256.f32le: cosines to published vectors."`
	JSON    string        `name:"json" type:"path" help:"File for the figures."`
}

func (c benchEmbedCommand) Run(ctx context.Context) error {
	dir, err := modelDir(ctx, c.Model)
	if err != nil {
		return err
	}
	options := bench.EmbedOptions{
		Model: dir, Threads: c.Threads, Rounds: c.Rounds, Turn: c.Turn, Goldens: c.Goldens, Log: os.Stdout,
	}
	if c.Peers {
		options.Peers = &bench.Peers{Python: c.Python, Script: filepath.Join("bench", "peers", "embed.py")}
	}
	file, err := bench.Embed(ctx, options)
	if err != nil || c.JSON == "" {
		return err
	}
	file.Command = commandLine()
	return file.Write(c.JSON)
}

type benchRerankCommand struct {
	Model   string        `default:"all-minilm-l6-v2" help:"A cross-encoder's directory; an encoder is given a random head, which is as fast."`
	Threads int           `help:"Threads of every contestant but late interaction, which has one. Default: all cores."`
	Rounds  int           `default:"5" help:"Turns of each contestant."`
	Turn    time.Duration `default:"500ms" help:"Length of one turn."`
	Peers   bool          `help:"Run the peers of bench/peers too ('make peers' sets them up)."`
	Python  string        `default:".peers/bin/python" help:"With --peers: the Python that has bench/peers/requirements.txt."`
	JSON    string        `name:"json" type:"path" help:"File for the figures."`
}

func (c benchRerankCommand) Run(ctx context.Context) error {
	dir, err := modelDir(ctx, c.Model)
	if err != nil {
		return err
	}
	options := bench.RerankOptions{Model: dir, Threads: c.Threads, Rounds: c.Rounds, Turn: c.Turn, Log: os.Stdout}
	if c.Peers {
		options.Peers = &bench.Peers{Python: c.Python, Script: filepath.Join("bench", "peers", "embed.py")}
	}
	file, err := bench.Rerank(ctx, options)
	if err != nil || c.JSON == "" {
		return err
	}
	file.Command = commandLine()
	return file.Write(c.JSON)
}
