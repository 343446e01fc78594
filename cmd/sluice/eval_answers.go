package main

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/alecthomas/kong"

	"sluice/eval"
	model "sluice/eval/scripted"
	"sluice/kernels/simd"
	"sluice/model/chat"
	"sluice/server/config"
)

// scriptedModel names the model of an evaluation that has no other.
const scriptedModel = "scripted: answers everything"

type evalAnswersCommand struct {
	output
	Dataset   string   `arg:"" help:"Directory of the data set: grounded-access."`
	Split     string   `help:"Cases of this split only, for example test. Default: all."`
	Precision string   `default:"auto" enum:"auto,f32,bf16,int8" help:"Arithmetic of the embedding model."`
	BaseURL   string   `help:"OpenAI-compatible API of the model that answers. Default: a scripted one that answers everything, makes things up, and says what documents tell models to say."`
	Model     string   `help:"The model's name there."`
	KeyEnv    string   `help:"Environment variable with the key to send, if one is wanted."`
	Relevance *float64 `help:"Setting answer.relevance. Default: the daemon's."`
	Rerank    bool     `help:"Setting answer.rerank."`
	Context   int      `name:"context-tokens" help:"Setting answer.context_tokens. Default: the daemon's."`
	JudgeURL  string   `help:"API of a model that extracts and matches the facts of answers and references. Default: none is asked."`
	Judge     string   `name:"judge-model" help:"The model's name there."`
	JudgeKey  string   `name:"judge-key-env" help:"Environment variable with the key to send."`
	Out       string   `type:"path" help:"Directory for run.json, answers.jsonl and report.md."`
}

// Run starts a daemon of its own, and the scripted model if there is no other.
func (c evalAnswersCommand) Run(ctx context.Context, k *kong.Context) error {
	settings, name, stop, err := c.model()
	if err != nil {
		return err
	}
	defer stop()
	options := eval.AnswerOptions{Model: name, Options: eval.Options{
		Dataset: c.Dataset, Split: c.Split, Ingest: true, Connect: eval.Over(answeringStarter(c.Precision, settings)),
		Out: c.Out, Command: commandLine(), Progress: progressBars(), Kernels: simd.Best().Level,
	}}
	if c.JudgeURL != "" {
		options.Judge = chat.New(c.JudgeURL, c.Judge, os.Getenv(c.JudgeKey))
	}
	var report eval.AnswerReport
	err = c.evaluate(ctx, k, func(ctx context.Context) (_ evaluation, err error) {
		report, err = eval.RunAnswers(ctx, options)
		return report, err
	})
	if err != nil {
		return err
	}
	if report.Outcome != eval.Passed {
		return exitCode{report.Outcome.ExitCode(), fmt.Errorf("%d findings", len(report.Findings))}
	}
	return nil
}

func (c evalAnswersCommand) model() (settings *config.Answer, name string, stop func(), err error) {
	settings = &config.Answer{BaseURL: c.BaseURL, Model: c.Model, KeyEnv: c.KeyEnv, Relevance: c.Relevance, Rerank: c.Rerank, ContextTokens: c.Context, Timeout: 2 * time.Minute}
	if c.BaseURL != "" {
		return settings, c.Model, func() {}, nil
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, "", nil, err
	}
	dataset, err := eval.Load(c.Dataset)
	if err != nil {
		return nil, "", nil, err
	}
	answering := model.Model{Invents: true}
	for _, p := range dataset.Planted {
		answering.Planted = append(answering.Planted, p.Text)
	}
	server := &http.Server{Handler: answering, ReadHeaderTimeout: time.Minute}
	done := make(chan struct{})
	go func() { defer close(done); _ = server.Serve(listener) }()
	settings.BaseURL, settings.Model = "http://"+listener.Addr().String(), strings.Fields(scriptedModel)[0]
	return settings, scriptedModel, func() { _ = server.Close(); <-done }, nil
}
