package main

import (
	"bufio"
	"errors"
	"fmt"
	"os"

	"sluice/bench/figures"
	"sluice/bench/report"
)

type benchReportCommand struct {
	Runs []string `arg:"" type:"path" help:"Files that --json wrote, or folders of them."`
	Out  string   `type:"path" default:"report.html" help:"File for the page, which needs no other."`
}

func (c benchReportCommand) Run() (err error) {
	var all []figures.File
	for _, path := range c.Runs {
		s, err := runs(path)
		if err != nil {
			return err
		}
		for _, name := range s.names {
			all = append(all, s.of[name]...)
		}
	}
	f, err := os.Create(c.Out)
	if err != nil {
		return fmt.Errorf("writing the report: %w", err)
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	w := bufio.NewWriter(f)
	return errors.Join(report.Write(w, all), w.Flush())
}
