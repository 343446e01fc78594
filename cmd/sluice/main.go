// Command sluice is the daemon, its command line and its tools in one binary.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/alecthomas/kong"
)

// commit is set by the linker.
var commit = "unknown"

type cli struct {
	Serve    serveCommand    `cmd:"" help:"Run the daemon."`
	Demo     demoCommand     `cmd:"" help:"Run the daemon with the demo corpus and show one question asked by two principals."`
	Ingest   ingestCommand   `cmd:"" help:"Send a folder of documents to the daemon."`
	Search   searchCommand   `cmd:"" help:"Ask the daemon for passages."`
	Answer   answerCommand   `cmd:"" help:"Ask the daemon a question."`
	Reindex  reindexCommand  `cmd:"" help:"Cut and embed a collection anew beside the one that serves, and switch to it."`
	Cache    cacheCommand    `cmd:"" help:"Look at the embedding cache, and prune it."`
	Access   accessCommand   `cmd:"" help:"Change, preview and explain who may read what."`
	Check    checkCommand    `cmd:"" help:"Verify every checksum and cross reference of a data directory, read-only."`
	Snapshot snapshotCommand `cmd:"" help:"Make a backup inside the data directory, of hard links, while a daemon runs or not."`
	Dump     dumpCommand     `cmd:"" help:"Write the documents of a stopped daemon, or of a snapshot, as 'sluice ingest' takes them."`
	Key      keyCommand      `cmd:"" help:"Make an API key and the hash to put into the configuration."`
	Model    modelCommand    `cmd:"" help:"Fetch models."`
	Doctor   doctorCommand   `cmd:"" help:"Say in plain words what is wrong with this machine, the configuration, the models and the data."`
	About    versionCommand  `cmd:"" name:"version" help:"Say which build this is, of which Go, and with which kernels it runs models here."`
	Devices  devicesCommand  `cmd:"" help:"List what can run models here, with kernels, memory and driver."`
	Eval     evalCommand     `cmd:"" help:"Measure relevance, and prove that nobody sees what they may not."`
	Bench    benchCommand    `cmd:"" help:"Measure throughput and latency."`

	Version kong.VersionFlag `help:"Print the version and exit."`
}

// exitCode is an error that sets the process's exit status.
type exitCode struct {
	code int
	err  error
}

func (e exitCode) Error() string { return e.err.Error() }
func (e exitCode) Unwrap() error { return e.err }

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	os.Exit(run(ctx, os.Args[1:]))
}

func run(ctx context.Context, args []string) int {
	parser := newParser(ctx)
	parsed, err := parser.Parse(args)
	if err != nil {
		parser.Stdout = os.Stderr // the usage beside an error is no output
	}
	parser.FatalIfErrorf(err)
	return status(parsed.Run())
}

func newParser(ctx context.Context) *kong.Kong {
	flags := newSettingFlags()
	c := cli{Serve: serveCommand{Settings: kong.Plugins{flags.values.Interface()}}}
	parser, err := kong.New(&c, kong.Name("sluice"), kong.ShortUsageOnError(), kong.Help(choosing(kong.DefaultHelpPrinter)), kong.ShortHelp(choosing(kong.DefaultShortHelpPrinter)), kong.Vars{"version": "sluice " + commit},
		kong.Description("Authorized, low-latency retrieval over your documents."),
		kong.BindTo(ctx, (*context.Context)(nil)), kong.Bind(flags))
	if err != nil {
		panic(err) // the command line's own declaration is wrong
	}
	return parser
}

func status(err error) int {
	if err == nil {
		return 0
	}
	fmt.Fprintln(os.Stderr, "sluice:", err)
	var exit exitCode
	if errors.As(err, &exit) {
		return exit.code
	}
	return 1
}
