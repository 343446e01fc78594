package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/alecthomas/kong"
	"github.com/schollz/progressbar/v3"

	"sluice/client"
	"sluice/eval"
	"sluice/kernels/simd"
)

type evalCommand struct {
	Run evalRunCommand `cmd:"" help:"Ask every question of a data set as its principal. Exit status 2: a leak; 3: a scope failure; 4: a degraded response; 5: chunkers mixed."`

	Validate evalValidateCommand `cmd:"" help:"Check the labels of a data set, and how far its questions are in other words than their answers."`
	Compare  evalCompareCommand  `cmd:"" help:"Compare two runs, or the strategies of one, case by case."`
	Sweep    evalSweepCommand    `cmd:"" help:"Choose depths and weights on the dev split of data sets, and run what was chosen once on their test split."`
	Router   evalRouterCommand   `cmd:"" help:"Train the model that the strategy auto chooses by, on the dev split of data sets."`
	Failures evalFailuresCommand `cmd:"" help:"Say of everything that is not found where it was lost."`
	Answers  evalAnswersCommand  `cmd:"" help:"Ask every question of a data set for an answer, and check what it says. Exit status as of run; 6: an answer says or shows what it may not."`
	Axes     evalAxesCommand     `cmd:"" help:"Report on four axes, from golden files and recorded runs: parsing, indexing, retrieval, groundedness, and how they go together."`
}

// evalled is what is evaluated: a data set, its cases, and the service.
type evalled struct {
	output
	Dataset    string   `arg:"" help:"Directory of the data set: grounded-access, rag-multi-corpus, kubernetes-keps, chunking-evaluation, one in BEIR's format, or your own (documents.jsonl, principals.jsonl, cases.jsonl)."`
	Split      string   `help:"Cases of this split only, for example test. Default: all."`
	Strategies []string `default:"sparse,dense,hybrid" help:"Strategies to compare."`
	Precision  string   `default:"auto" enum:"auto,f32,bf16,int8" help:"With --self: arithmetic of the model."`
	Chunker    string   `help:"How the documents of the collection that is ingested into are cut. Default: by their format."`
	CodeBits   int      `help:"Bits of a dimension of the token codes, 1 or 8, of the collection that is ingested into. Default: 1."`
	Self       bool     `xor:"who" required:"" help:"Start a daemon of its own in a temporary directory and ingest the data set first."`
	Server     string   `xor:"who" required:"" help:"Address of a running daemon."`
	Secret     string   `type:"existingfile" help:"With --server: the HS256 secret the daemon trusts for issuer sluice-eval, audience sluice, key id eval."`
	Ingest     bool     `help:"With --server: ingest the data set first."`
}

func (c evalled) options() (eval.Options, error) {
	connect, err := c.connector()
	return eval.Options{
		Dataset: c.Dataset, Split: c.Split, Strategies: c.Strategies, Ingest: c.Self || c.Ingest,
		Chunker: c.Chunker, CodeBits: c.CodeBits,
		Connect: connect, Command: commandLine(), Progress: progressBars(), Kernels: simd.Best().Level,
	}, err
}

type evalRunCommand struct {
	evalled `embed:""`

	Compare []string           `name:"compare-chunkers" help:"With --self: chunkers to compare with the first of them, for example fixed/1,structure/1, each in a daemon of its own."`
	Fusion  string             `help:"Of all searches: score or rrf. Default: the daemon's choice."`
	Ranking map[string]float64 `help:"Depths and weights of all searches, for example pool_depth=50;lexical_weight=0.7. Default: the daemon's choice."`
	Probes  bool               `help:"With --self: ask for every document as those who may not see it, and compare the answers with those of a daemon where it does not exist."`
	Out     string             `type:"path" help:"Directory for run.json, cases.jsonl and report.md."`
}

func (c evalRunCommand) Run(ctx context.Context, k *kong.Context) error {
	options, err := c.options()
	if err != nil {
		return err
	}
	if len(c.Compare) > 0 {
		return c.compare(ctx, k, options)
	}
	options.Out, options.Probes, options.Fusion = c.Out, c.Probes, c.Fusion
	if options.Ranking, err = rankingOf(c.Ranking); err != nil {
		return err
	}
	if c.Probes && !c.Self {
		return errors.New("--probes goes with --self: each principal needs a service of its own to compare with")
	}
	var report eval.Report
	var disagreement error
	err = c.evaluate(ctx, k, func(ctx context.Context) (_ evaluation, err error) {
		if report, err = eval.Run(ctx, options); errors.Is(err, eval.ErrDisagreement) {
			disagreement, err = err, nil // it has figures
		}
		return report, err
	})
	return cmp.Or(err, disagreement, outcomeError(report))
}

// rankingOf takes the names that a search's JSON has.
func rankingOf(values map[string]float64) (client.Ranking, error) {
	text, err := json.Marshal(values)
	if err != nil {
		return client.Ranking{}, err
	}
	var ranking client.Ranking
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&ranking); err != nil {
		return ranking, fmt.Errorf("--ranking: %w", err)
	}
	return ranking, nil
}

func (c evalRunCommand) compare(ctx context.Context, k *kong.Context, o eval.Options) error {
	if !c.Self || c.Out != "" || c.Chunker != "" {
		return errors.New("--compare-chunkers goes with --self and --json, without --chunker and --out")
	}
	var compared eval.ChunkerComparison
	err := c.evaluate(ctx, k, func(ctx context.Context) (_ evaluation, err error) {
		compared, err = eval.CompareChunkers(ctx, o, c.Compare)
		return compared, err
	})
	if err != nil {
		return err
	}
	return outcomeError(compared.Outcome())
}

// commandLine is how this process was called, by the program's name alone.
func commandLine() string {
	return strings.Join(append([]string{filepath.Base(os.Args[0])}, os.Args[1:]...), " ")
}

func (c evalled) connector() (eval.Connector, error) {
	if c.Self {
		return eval.Over(selfStarter(c.Precision)), nil
	}
	if c.Secret == "" {
		return nil, errors.New("--server needs --secret: the evaluation asks as many principals")
	}
	secret, err := os.ReadFile(c.Secret)
	if err != nil {
		return nil, err
	}
	return eval.Over(func(context.Context, *eval.Dataset) (eval.Target, error) {
		return eval.Target{URL: c.Server, Token: signer(secret).token}, nil
	}), nil
}

// progressBars shows a bar per stage on standard error.
func progressBars() func(stage string, done, total int) {
	var bar *progressbar.ProgressBar
	var current string
	return func(stage string, done, total int) {
		if stage != current {
			bar, current = progress(int64(total), stage), stage
		}
		bar.Set(done)
	}
}

func outcomeError(report eval.Report) error {
	if report.Outcome == eval.Passed {
		return nil
	}
	lines := make([]string, 0, len(report.Findings))
	for _, f := range report.Findings {
		lines = append(lines, f.String())
	}
	return exitCode{report.Outcome.ExitCode(), fmt.Errorf("%d findings:\n%s", len(lines), strings.Join(lines, "\n"))}
}
