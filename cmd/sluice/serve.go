package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"reflect"
	"runtime"
	"strings"
	"syscall"

	"github.com/alecthomas/kong"

	"sluice/server/config"
)

type serveCommand struct {
	Config   string       `type:"path" help:"Configuration file (YAML); the whole of it is shown above."`
	Demo     bool         `help:"Allow the demo principals of the configuration. Anybody who reaches the listener can then be any of them."`
	Settings kong.Plugins `embed:""`
}

// Help is the annotated configuration file.
func (*serveCommand) Help() string {
	return "Flags win over environment variables, those over the configuration file. The file, with every key:\n\n" + indented(config.Reference())
}

// indented keeps the help from wrapping the lines.
func indented(text string) string {
	return "    " + strings.ReplaceAll(strings.TrimSpace(text), "\n", "\n    ")
}

func (c *serveCommand) Run(ctx context.Context, flags *settingFlags) error {
	reread := func() (config.Config, error) { return config.Load(c.Config, flags.given(), c.Demo) }
	settings, err := reread()
	if err != nil {
		return err
	}
	d := &daemon{config: settings, started: settings, reread: reread, log: newLogger(settings.Log)}
	slog.SetDefault(d.log) // what libraries log
	for _, name := range settings.StrayVariables(os.Environ()) {
		d.log.Warn("an environment variable means nothing: sluice serve --help shows those of settings", "variable", name)
	}
	return d.run(ctx)
}

func newLogger(c config.Log) *slog.Logger {
	var level slog.Level
	if err := level.UnmarshalText([]byte(c.Level)); err != nil {
		panic(err) // the configuration was validated
	}
	options := &slog.HandlerOptions{Level: level}
	if c.Format == "json" {
		return slog.New(slog.NewJSONHandler(os.Stderr, options))
	}
	return slog.New(slog.NewTextHandler(os.Stderr, options))
}

// run opens the daemon, serves until ctx ends, and closes it. SIGHUP
// reloads.
func (d *daemon) run(ctx context.Context) error {
	if err := d.open(ctx); err != nil {
		return d.unlessStopped(ctx, err)
	}
	runtime.GOMAXPROCS(d.cores + 1) // one to spare: docs/decisions/0022-bulk-gives-way.md
	err := d.listenAndServe(ctx)
	return errors.Join(err, d.close())
}

// unlessStopped is why the daemon could not start, nil if it was told to stop meanwhile.
func (d *daemon) unlessStopped(ctx context.Context, err error) error {
	if ctx.Err() == nil || !errors.Is(err, context.Canceled) {
		return err
	}
	d.log.Info("stopped before it listened")
	return nil
}

func (d *daemon) listenAndServe(ctx context.Context) error {
	listener, err := net.Listen("tcp", d.config.Listen)
	if err != nil {
		return fmt.Errorf("listening: %w%s", err, busy(err, "listen"))
	}
	admin, err := listenAdmin(d.config.AdminListen)
	if err != nil {
		return errors.Join(fmt.Errorf("listening for administrators: %w%s", err, busy(err, "admin_listen")), listener.Close())
	}
	stop := d.reloadOnHangup(ctx)
	defer stop()
	return d.serve(ctx, listener, admin)
}

// busy says what to do about an address that another program has.
func busy(err error, setting string) string {
	if !errors.Is(err, syscall.EADDRINUSE) {
		return ""
	}
	return fmt.Sprintf(" (another program listens there: end it, or name another address with %s)", config.Flag(setting))
}

func listenAdmin(address string) (net.Listener, error) {
	if address == "off" {
		return nil, nil
	}
	return net.Listen("tcp", address)
}

// settingFlags is one flag per scalar of the configuration.
type settingFlags struct{ values reflect.Value }

func newSettingFlags() *settingFlags {
	var fields []reflect.StructField
	for i, s := range config.Settings() {
		help := fmt.Sprintf("%s ($%s; default %q)", s.Doc, s.Environment, s.Default)
		fields = append(fields, reflect.StructField{
			Name: fmt.Sprintf("Setting%d", i), Type: reflect.TypeFor[string](),
			Tag: reflect.StructTag(fmt.Sprintf("name:%q help:%q placeholder:%q", config.Flag(s.Path)[2:], help, "VALUE")),
		})
	}
	return &settingFlags{reflect.New(reflect.StructOf(fields))}
}

// given maps the settings that were given on the command line to their values.
func (f *settingFlags) given() map[string]string {
	given := map[string]string{}
	for i, s := range config.Settings() {
		if value := f.values.Elem().Field(i).String(); value != "" {
			given[s.Path] = value
		}
	}
	return given
}
