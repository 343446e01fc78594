package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"

	"sluice/bench/figures"
)

// worseStatus is the exit status when the gate is shut.
const worseStatus = 2

type benchCompareCommand struct {
	A    string  `arg:"" type:"path" help:"The run before: a file that --json wrote, or a folder of them."`
	B    string  `arg:"" type:"path" help:"The run after. Of two folders, runs of one command are compared with each other; several of them count as more rounds."`
	Gate float64 `placeholder:"PERCENT" help:"Exit with status 2 when a figure is worse by more than that, and not by chance."`
	All  bool    `help:"List the figures without a detectable difference too."`
}

func (c benchCompareCommand) Run() error {
	if c.Gate < 0 {
		return errors.New("--gate: a percentage is expected, and it cannot be negative")
	}
	a, err := runs(c.A)
	if err != nil {
		return err
	}
	b, err := runs(c.B)
	if err != nil {
		return err
	}
	var shut []string
	compared := false
	for _, name := range a.names {
		if len(b.of[name]) == 0 {
			continue
		}
		compared = true
		shut = append(shut, c.compare(os.Stdout, name, a.of[name], b.of[name])...)
	}
	if !compared {
		return fmt.Errorf("%s has runs of %s, %s of %s: none in common", c.A, strings.Join(a.names, ", "), c.B, strings.Join(b.names, ", "))
	}
	if c.Gate > 0 && len(shut) > 0 {
		return exitCode{worseStatus, fmt.Errorf("worse by more than %g %%: %s", c.Gate, strings.Join(shut, ", "))}
	}
	return nil
}

// runSet is the runs of a side, by command.
type runSet struct {
	names []string
	of    map[string][]figures.File
}

// runs reads a file, or those of a folder.
func runs(path string) (s runSet, err error) {
	files := []string{path}
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		if files, err = filepath.Glob(filepath.Join(path, "*.json")); err != nil {
			return s, err
		}
		if len(files) == 0 {
			return s, fmt.Errorf("%s has no .json files", path)
		}
	}
	s.of = map[string][]figures.File{}
	for _, name := range files {
		f, err := figures.Read(name)
		if err != nil {
			return s, err
		}
		s.of[f.Name()] = append(s.of[f.Name()], f)
		if !slices.Contains(s.names, f.Name()) {
			s.names = append(s.names, f.Name())
		}
	}
	return s, nil
}

// compare prints what differs, and returns the figures that shut the gate.
func (c benchCompareCommand) compare(out io.Writer, name string, a, b []figures.File) (shut []string) {
	fmt.Fprintf(out, "%s: %.12s and %.12s\n", name, a[0].Commit, b[0].Commit)
	for _, what := range figures.Unlike(a[0], b[0]) {
		fmt.Fprintln(out, "  not alike:", what)
	}
	all := figures.Compare(a, b)
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	tested, shown := 0, 0
	for _, d := range all {
		if d.Tested {
			tested++
		}
		if 100*d.Worse() > c.Gate {
			shut = append(shut, d.Name)
		}
		if c.All || d.Detected() {
			shown++
			row(table, d)
		}
	}
	_ = table.Flush() // as Fprintf's error
	if shown == 0 {
		fmt.Fprintln(out, "  no detectable difference")
	}
	fmt.Fprintf(out, "  %d figures, %d with rounds enough to tell; of these chance alone makes about %.0f differ\n\n", len(all), tested, figures.Alpha*float64(tested))
	return shut
}

func row(table io.Writer, d figures.Difference) {
	p := "-"
	if d.Tested {
		p = fmt.Sprintf("p=%.3f", d.P)
	}
	fmt.Fprintf(table, "  %s\t%.4g\t%.4g\t%+.1f %%\t%s\tn=%d+%d\t%s\n", d.Name, figures.MedianOf(d.A), figures.MedianOf(d.B), 100*d.Change(), p, len(d.A), len(d.B), d.Verdict())
}
