package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"github.com/alecthomas/kong"

	"sluice/bench"
	"sluice/bench/figures"
	"sluice/client"
	"sluice/eval"
	"sluice/gpu/cpu"
)

const (
	benchResults = 10   // of a search
	batchTokens  = 1024 // the default of gpu.Options, which the daemon takes
)

type benchServeCommand struct {
	output
	Self        bool          `xor:"who" required:"" help:"Start a daemon of its own with default settings, and ingest the data set."`
	Server      string        `xor:"who" required:"" help:"Address of a running daemon that has the data set (see 'sluice eval run --ingest')."`
	Null        bool          `xor:"who" required:"" help:"Measure the load generator itself, against a server that does nothing."`
	Secret      string        `type:"existingfile" help:"With --server: the HS256 secret the daemon trusts for issuer sluice-eval, audience sluice, key id eval."`
	PID         int           `name:"pid" help:"With --server: the daemon's process on this machine, for its CPU time and memory."`
	Dataset     string        `type:"path" default:"eval/testdata/grounded-access" help:"Its questions are searched for, each as its principal; its documents' words are embedded."`
	Model       string        `default:"all-minilm-l6-v2" help:"The model that the daemon serves: a name that 'sluice model pull' knows, or a directory."`
	Precision   string        `default:"auto" enum:"auto,f32,bf16,int8" help:"Arithmetic of the model."`
	Words       int           `default:"24" help:"Words of a text to embed."`
	Each        int           `default:"1" help:"Texts of a request."`
	Encoding    string        `default:"base64" enum:"float,base64" help:"Form of the vectors in the answers."`
	Connections []int         `default:"1,8,64" help:"Of the closed loops; the last should saturate the daemon."`
	Ramp        bool          `help:"Also rates from a tenth of what saturates the daemon to more than that, up to the knee and beyond."`
	Skew        float64       `help:"Search as principals drawn by Zipf's law with this exponent (1: as words of a language), any question as any of them. Default: each question as its own principal."`
	QueryWords  []int         `help:"Search for so many consecutive words of the documents, each length as often, for example 3,10,40. Default: the questions as they are."`
	Replay      string        `type:"existingfile" help:"Only send the searches of this file, at their times: one a line, {\"time\":…,\"principal\":…,\"collection\":…,\"query\":…,\"k\":…}; docs/benchmarks.md has the format."`
	Idle        int           `help:"Open so many idle connections first, and see what they cost."`
	Rounds      int           `default:"5" help:"Turns of each server at each load."`
	Turn        time.Duration `default:"2s" help:"Length of one turn."`
	Peers       bool          `help:"Run the servers of bench/peers too ('make peers' sets them up)."`
	Engines     []string      `help:"With --peers: only these, for example infinity_torch_bf16."`
	Python      string        `default:".peers/serve/bin/python" help:"With --peers: the Python that has bench/peers/serve-requirements.txt."`
}

func (c benchServeCommand) Run(ctx context.Context, k *kong.Context) error {
	if c.Null {
		return c.here(ctx, k, c.null)
	}
	return c.write(ctx, k, c.measure)
}

func (c benchServeCommand) null(ctx context.Context) (figures.File, error) {
	file, err := bench.Null(ctx, bench.NullOptions{Connections: c.Connections, Turn: c.Turn, Rounds: c.Rounds, Log: os.Stdout, Watch: watchLoad()})
	if err == nil {
		fmt.Printf("the generator sends %.0f requests/s at most, and in an open loop 99 of 100 within %.0f µs of their time\n",
			file.Figures["requests_per_s"], file.Figures["p99_error_us"])
	}
	return file, err
}

func (c benchServeCommand) measure(ctx context.Context) (file figures.File, err error) {
	dataset, err := eval.Load(c.Dataset)
	if err != nil {
		return file, err
	}
	d, stop, err := c.daemon(ctx, dataset)
	if err != nil {
		return file, err
	}
	defer func() { err = errors.Join(err, stop()) }()
	if c.Self {
		if err := d.ingest(ctx, dataset); err != nil {
			return file, err
		}
	}
	if c.Replay != "" {
		return c.replay(ctx, d, dataset)
	}
	o, end, err := c.options(ctx, d, dataset)
	if err != nil {
		return file, err
	}
	defer func() { err = errors.Join(err, end()) }()
	return c.serve(ctx, o)
}

// serve opens the idle connections before anything else has made the daemon grow.
func (c benchServeCommand) serve(ctx context.Context, o bench.ServeOptions) (figures.File, error) {
	idle := map[string]float64{}
	if c.Idle > 0 {
		if err := bench.Idle(ctx, o.Ours, c.Idle, idle); err != nil {
			return figures.File{}, err
		}
		fmt.Printf("%d idle connections: %.0f MB, %.0f MB more than before\n", c.Idle, idle["idle.rss_mb"], idle["idle.growth_mb"])
	}
	file, err := bench.Serve(ctx, o)
	if err != nil {
		return file, err
	}
	maps.Copy(file.Figures, idle)
	return file, nil
}

// options starts the peers, which end ends.
func (c benchServeCommand) options(ctx context.Context, t target, dataset *eval.Dataset) (o bench.ServeOptions, end func() error, err error) {
	dir, err := modelDir(ctx, c.Model)
	if err != nil {
		return o, nil, err
	}
	o = bench.ServeOptions{
		Model: dir, Precision: cpu.Precision(c.Precision), BatchTokens: batchTokens, Each: c.Each, Texts: excerpts(dataset, c.Words),
		Connections: c.Connections, Ramp: c.Ramp, Rounds: c.Rounds, Turn: c.Turn, Log: os.Stdout,
	}
	if o.Ours, err = c.embedding(ctx, t, dataset, o.Texts, filepath.Base(dir)); err != nil {
		return o, nil, err
	}
	if o.Search, err = c.searching(ctx, t, dataset); err != nil {
		return o, nil, err
	}
	o.Peers, end, err = c.peers(ctx, dir, o.Texts)
	return o, end, err
}

func (c benchServeCommand) embedding(ctx context.Context, t target, dataset *eval.Dataset, texts []string, model string) (bench.Service, error) {
	token, err := t.secret.token(ctx, dataset.Principals[0])
	if err != nil {
		return bench.Service{}, err
	}
	s, err := bench.NewService("sluice", t.url+"/v1/embeddings", t.pid, c.calls(token, model, texts))
	s.Admin, s.Watch = t.admin, watchLoad()
	return s, err
}

// calls are embedding requests of the texts in turn.
func (c benchServeCommand) calls(token, model string, texts []string) (calls []bench.Call) {
	for ; len(texts) >= c.Each; texts = texts[c.Each:] {
		calls = append(calls, bench.Call{Token: token, Body: client.EmbeddingRequest{
			Input: client.Inputs{Texts: texts[:c.Each]}, Model: model, EncodingFormat: c.Encoding,
		}})
	}
	return calls
}

func (c benchServeCommand) searching(ctx context.Context, t target, dataset *eval.Dataset) (*bench.Service, error) {
	tokens, err := t.tokens(ctx, dataset)
	if err != nil {
		return nil, err
	}
	var calls []bench.Call
	for _, one := range c.mix(dataset) {
		calls = append(calls, bench.Call{Token: tokens[one.principal], Body: client.SearchRequest{Query: one.query, K: benchResults}})
	}
	s, err := bench.NewService("sluice", t.url+searchPath(dataset.Name), t.pid, calls)
	s.Admin, s.Watch = t.admin, watchLoad()
	return &s, err
}

func searchPath(collection string) string { return "/v1/collections/" + collection + "/search" }

func (c benchServeCommand) peers(ctx context.Context, dir string, texts []string) (services []bench.Service, end func() error, err error) {
	if !c.Peers {
		return nil, func() error { return nil }, nil
	}
	peers := bench.Peers{Python: c.Python, Script: filepath.Join("bench", "peers", "serve.py"), Names: c.Engines}
	servers, closer, err := peers.Servers(ctx, dir, runtime.GOMAXPROCS(0))
	if err != nil {
		return nil, nil, err
	}
	for _, s := range servers {
		service, err := bench.NewService(s.Name, s.URL, s.PID, c.calls("", "peer", texts))
		if err != nil {
			return nil, nil, errors.Join(err, closer.Close())
		}
		service.Watch = watchLoad()
		services = append(services, service)
	}
	return services, closer.Close, nil
}
