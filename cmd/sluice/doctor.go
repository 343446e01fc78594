package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"

	"sluice/server/config"
)

type doctorCommand struct {
	Config string `type:"path" help:"Configuration file (YAML). Without one: the defaults, as the demo has them."`
	Demo   bool   `help:"As with 'sluice serve --demo'."`
	JSON   bool   `name:"json" help:"Write the findings as JSON."`
}

// Help says what the exit status means.
func (doctorCommand) Help() string {
	return "Looks, and changes nothing. Exit status 1: something keeps the daemon from starting or working."
}

// severity orders findings.
type severity string

const (
	fine    severity = "ok"
	warning severity = "warning" // it works, but not as well or as safely as it could
	fault   severity = "fault"   // it does not work
)

// finding is one thing that was looked at.
type finding struct {
	Check    string   `json:"check"`
	Severity severity `json:"severity"`
	What     string   `json:"what"`
	Do       string   `json:"do,omitempty"`
}

// examination collects findings about the settings and the machine.
type examination struct {
	settings config.Config
	running  bool // a daemon has the data directory open
	findings []finding
}

func (e *examination) ok(check, format string, args ...any) {
	e.findings = append(e.findings, finding{check, fine, fmt.Sprintf(format, args...), ""})
}

func (e *examination) warn(check, do, format string, args ...any) {
	e.findings = append(e.findings, finding{check, warning, fmt.Sprintf(format, args...), do})
}

func (e *examination) fault(check, do, format string, args ...any) {
	e.findings = append(e.findings, finding{check, fault, fmt.Sprintf(format, args...), do})
}

func (c doctorCommand) Run(ctx context.Context) error {
	e := &examination{}
	e.machine()
	if e.configuration(c) {
		e.model()
		e.data(ctx)
		e.memory()
		e.listeners()
		e.keys(ctx)
		e.devices(ctx)
		e.servers(ctx)
	}
	if err := c.write(os.Stdout, e.findings); err != nil {
		return err
	}
	if n := count(e.findings, fault); n > 0 {
		return exitCode{1, fmt.Errorf("the daemon cannot work: %s", counted(n, "fault"))}
	}
	return nil
}

func (c doctorCommand) write(w io.Writer, findings []finding) error {
	if c.JSON {
		return printJSON(w, map[string]any{"findings": findings})
	}
	for _, f := range findings {
		if _, err := io.WriteString(w, f.String()); err != nil {
			return err
		}
	}
	_, err := fmt.Fprintf(w, "\n%s, %s\n", counted(count(findings, fault), "fault"), counted(count(findings, warning), "warning"))
	return err
}

func (f finding) String() string {
	text := fmt.Sprintf("%-8s %-13s %s\n", f.Severity, f.Check, f.What)
	if f.Do != "" {
		text += strings.Repeat(" ", 23) + "do: " + f.Do + "\n"
	}
	return text
}

func count(findings []finding, s severity) (n int) {
	for _, f := range findings {
		if f.Severity == s {
			n++
		}
	}
	return n
}
