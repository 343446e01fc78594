package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"sluice/client"
	"sluice/filter"
)

type accessCommand struct {
	Import  accessImport  `cmd:"" help:"Change who may read many documents, from a file of NDJSON."`
	Preview accessPreview `cmd:"" help:"Show who would gain and who would lose what under other policies."`
	Explain accessExplain `cmd:"" help:"Say which readers or policies decide whether somebody reads a document."`
}

// maxAccessLine bounds a line of a file of access rows or principals; the
// daemon's own limit may be lower and is named by it.
const maxAccessLine = 16 << 20

type accessImport struct {
	remote
	File       string `arg:"" help:"NDJSON, one change a line: {\"key\": …, \"readers\": […], \"attributes\": {…}}, also regions, valid_from, valid_until. What a line does not name stays, null takes it away. - is standard input."`
	Collection string `required:"" short:"c" help:"Collection of the documents."`
	DryRun     bool   `help:"Change nothing; show who would gain and who would lose what."`
	Principals string `type:"existingfile" help:"With --dry-run: NDJSON of who is looked at, {\"subject\": …, \"groups\": […], \"attributes\": {…}}. Without it: everybody whom readers name."`
}

func (c accessImport) Run(ctx context.Context) error {
	if c.Principals != "" && !c.DryRun {
		return errors.New("--principals needs --dry-run; nothing was changed")
	}
	api, err := c.client()
	if err != nil {
		return err
	}
	file, err := openInput(c.File)
	if err != nil {
		return err
	}
	defer file.Close()
	if c.DryRun {
		return c.preview(ctx, api, file)
	}
	out := &outcome{count: map[string]int{}}
	err = api.ImportAccess(ctx, c.Collection, file, func(r client.WriteResult) error {
		out.add(r)
		if r.Error != nil {
			fmt.Fprintf(os.Stderr, "  failed line %s: %s\n", strings.TrimSpace(fmt.Sprint(r.Line, " ", r.Key)), r.Error)
		}
		return nil
	})
	if len(out.count) > 0 || err == nil {
		fmt.Println(out)
	}
	return errors.Join(c.hint(err), out.err())
}

// preview sends the lines that can be read as one question.
func (c accessImport) preview(ctx context.Context, api *client.Client, file io.Reader) error {
	var r client.AccessPreviewRequest
	var numbers []int // lines of the file, by change
	bad := 0
	for l := range ndjson[client.AccessLine](file) {
		switch {
		case l.number == 0:
			return l.err
		case l.err != nil:
			bad++
			fmt.Printf("  line %d would fail: %v\n", l.number, l.err)
		default:
			r.Changes, numbers = append(r.Changes, l.value), append(numbers, l.number)
		}
	}
	people, err := principals(c.Principals)
	if err != nil {
		return err
	}
	r.Principals = people
	p, err := api.PreviewAccess(ctx, c.Collection, r)
	if err != nil {
		return c.hint(err)
	}
	for i := range p.Failed {
		p.Failed[i].Line = numbers[p.Failed[i].Line-1]
	}
	printPreview(os.Stdout, p)
	if bad += p.Failures; bad > 0 {
		return fmt.Errorf("%d lines would fail", bad)
	}
	return nil
}

type accessPreview struct {
	remote
	Policies   string `arg:"" type:"existingdir" help:"Directory of the policies to try (*.cedar, schema.cedarschema, entities.json)."`
	Collection string `required:"" short:"c" help:"Collection to look at."`
	Principals string `type:"existingfile" help:"NDJSON of who is looked at, {\"subject\": …, \"groups\": […], \"attributes\": {…}}. Without it: everybody whom readers name."`
}

func (c accessPreview) Run(ctx context.Context) error {
	api, err := c.client()
	if err != nil {
		return err
	}
	policies, err := filter.LoadPolicies(c.Policies)
	if err != nil {
		return err
	}
	if policies.Len() == 0 {
		fmt.Fprintf(os.Stderr, "%s has no policies (*.cedar): under it nobody reads anything\n", c.Policies)
	}
	schema, files := policies.Source()
	r := client.AccessPreviewRequest{Policies: &client.PolicyFiles{Schema: schema, Files: files}}
	if r.Principals, err = principals(c.Principals); err != nil {
		return err
	}
	p, err := api.PreviewAccess(ctx, c.Collection, r)
	if err != nil {
		return c.hint(err)
	}
	printPreview(os.Stdout, p)
	return nil
}

type accessExplain struct {
	remote
	Principal  string            `arg:"" help:"Subject. Without --group and --attribute it has those that the daemon's configuration gives it, if it knows it."`
	Document   string            `arg:"" help:"Key of the document."`
	Collection string            `required:"" short:"c" help:"Collection of the document."`
	Group      []string          `help:"Group of the principal."`
	Attribute  map[string]string `help:"Attribute of the principal, as NAME=JSON; what is no JSON is text."`
}

func (c accessExplain) Run(ctx context.Context) error {
	api, err := c.client()
	if err != nil {
		return err
	}
	q := client.AccessQuestion{Document: c.Document, Principal: client.Principal{Subject: c.Principal, Groups: c.Group}}
	for name, text := range c.Attribute {
		if q.Principal.Attributes == nil {
			q.Principal.Attributes = map[string]any{}
		}
		var value any = text
		_ = json.Unmarshal([]byte(text), &value) // no JSON: text
		q.Principal.Attributes[name] = value
	}
	e, err := api.ExplainAccess(ctx, c.Collection, q)
	if err != nil {
		return c.hint(err)
	}
	printExplanation(os.Stdout, e)
	return nil
}

func openInput(path string) (io.ReadCloser, error) {
	if path == "-" {
		return io.NopCloser(os.Stdin), nil
	}
	return os.Open(path)
}

func principals(path string) ([]client.Principal, error) {
	if path == "" {
		return nil, nil
	}
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	var all []client.Principal
	for l := range ndjson[client.Principal](file) {
		if l.err != nil {
			return nil, l.fault(path)
		}
		all = append(all, l.value)
	}
	return all, nil
}

func printPreview(w io.Writer, p client.AccessPreview) {
	fmt.Fprintf(w, "%s compared, %d change: %s gained, %d lost\n", counted(p.Compared, "principal"), p.Changed, counted(p.Gained, "document"), p.Lost)
	for _, d := range p.Differences {
		fmt.Fprintf(w, "  %s: gains %d, loses %d\n", d.Principal, d.Gains, d.Loses)
		printKeys(w, "+", d.Gained, d.Gains)
		printKeys(w, "-", d.Lost, d.Loses)
	}
	if more := p.Changed - len(p.Differences); more > 0 {
		fmt.Fprintf(w, "  and %d principals more\n", more)
	}
	if p.LeftOut > 0 {
		fmt.Fprintf(w, "%d principals were not compared: there are too many for these policies; name those who matter with --principals\n", p.LeftOut)
	}
	if len(p.Unfit) > 0 {
		fmt.Fprintf(w, "do not fit the policies, and read nothing: %s\n", strings.Join(p.Unfit, ", "))
	}
	for _, f := range p.Failed {
		fmt.Fprintf(w, "  line %d, %s, would fail: %s\n", f.Line, f.Key, f.Error)
	}
	if more := p.Failures - len(p.Failed); more > 0 {
		fmt.Fprintf(w, "  and %d changes more would fail\n", more)
	}
}

func printKeys(w io.Writer, sign string, keys []string, all int) {
	for _, key := range keys {
		fmt.Fprintf(w, "    %s %s\n", sign, key)
	}
	if more := all - len(keys); more > 0 && len(keys) > 0 {
		fmt.Fprintf(w, "    %s and %d more\n", sign, more)
	}
}

func printExplanation(w io.Writer, e client.AccessExplanation) {
	verb := "does not read"
	if e.Reads {
		verb = "reads"
	}
	fmt.Fprintf(w, "%s %s %s\n", e.Principal.Subject, verb, e.Document)
	switch {
	case !e.Readers.Declared:
		fmt.Fprintln(w, "  readers: the document names none, so the policies alone decide")
	case e.Readers.Admit:
		fmt.Fprintf(w, "  readers: the document names %s\n", strings.Join(e.Readers.By, ", "))
	default:
		fmt.Fprintf(w, "  readers: the document names others, but neither %s nor one of its groups\n", e.Principal.Subject)
	}
	fmt.Fprintf(w, "  policies: %s\n", policiesSay(e.Policies))
	for _, problem := range e.Policies.Errors {
		fmt.Fprintf(w, "    error: %s\n", problem)
	}
}

func policiesSay(p client.PoliciesVerdict) string {
	switch by := strings.Join(p.By, ", "); {
	case p.BuiltIn && p.Permit:
		return "the daemon has none of its own; then readers alone decide, within the tenant"
	case p.Permit:
		return "permitted by " + by
	case p.Forbid:
		return "forbidden by " + by
	case len(p.Errors) > 0:
		return "denied, for want of an answer"
	default:
		return "none permits"
	}
}
