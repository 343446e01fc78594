package main

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"net"
	"os"

	"golang.org/x/sync/errgroup"

	"sluice/client"
	"sluice/eval"
	"sluice/filter"
	"sluice/server/config"
)

const demoQuestion = "What does the Enterprise plan cost per month?"

// demoAskers are shown the same question: only the first may read the price list.
var demoAskers = []string{"bob-support", "alice-engineer"}

// yours is the policy of the tenant for the user's own documents.
//
//go:embed yours.cedar
var yours string

type demoCommand struct {
	Corpus string `type:"existingdir" default:"eval/testdata/grounded-access" help:"The demo corpus."`
	Data   string `type:"path" default:"data" help:"Data directory."`
	Listen string `default:"127.0.0.1:8080" help:"Address of the API."`
}

// Run starts a daemon in demo mode, shows it off once, and keeps it serving.
func (c demoCommand) Run(ctx context.Context) error {
	dataset, err := eval.Load(c.Corpus)
	if err != nil {
		return err
	}
	settings, err := c.settings(dataset)
	if err != nil {
		return err
	}
	policies, err := demoPolicies(dataset)
	if err != nil {
		return err
	}
	d := &daemon{config: settings, log: newLogger(settings.Log), policies: policies}
	if err := d.open(ctx); err != nil {
		return err
	}
	return errors.Join(c.serve(ctx, d, dataset), d.close())
}

func (c demoCommand) serve(ctx context.Context, d *daemon, dataset *eval.Dataset) error {
	listener, err := net.Listen("tcp", c.Listen)
	if err != nil {
		return fmt.Errorf("listening: %w%s", err, busy(err, "listen"))
	}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return d.serve(ctx, listener, nil) })
	group.Go(func() error {
		t := tour{url: "http://" + listener.Addr().String(), dataset: dataset, out: os.Stdout}
		if err := t.show(ctx); err != nil && ctx.Err() == nil {
			return fmt.Errorf("the demo: %w", err)
		}
		return nil
	})
	return group.Wait()
}

func (c demoCommand) settings(dataset *eval.Dataset) (config.Config, error) {
	s := config.Default()
	s.Listen, s.AdminListen, s.Data, s.Log.Level = c.Listen, "off", c.Data, "warn"
	s.Demo = config.Demo{Enabled: true, Principals: demoPrincipals(dataset)}
	s.EnsureDefaults()
	return s, s.Validate()
}

// demoPolicies are the data set's own, and yours.
func demoPolicies(dataset *eval.Dataset) (*filter.Policies, error) {
	policies, err := filter.LoadPolicies(dataset.Policies)
	if err != nil {
		return nil, err
	}
	schema, files := policies.Source()
	files["yours.cedar"] = yours
	return filter.ParsePolicies(schema, files)
}

// demoPrincipals are the data set's own, a writer per tenant, you, and somebody
// who is in a group as you are not.
func demoPrincipals(dataset *eval.Dataset) map[string]config.Principal {
	principals := map[string]config.Principal{
		"you":       {Tenant: "yours", Subject: "you", Roles: []string{"admin"}},
		"colleague": {Tenant: "yours", Subject: "colleague", Groups: []string{"staff"}, Roles: []string{"read"}},
	}
	for _, p := range dataset.Principals {
		principals[p.Name] = config.Principal{
			Tenant: p.Tenant, Subject: p.Name, Groups: p.Groups, Attributes: p.Attributes, Roles: []string{"read"},
		}
		principals[demoWriter(p.Tenant)] = config.Principal{Tenant: p.Tenant, Subject: demoWriter(p.Tenant), Roles: []string{"admin"}}
	}
	return principals
}

func demoWriter(tenant string) string { return tenant + "-librarian" }

// tour ingests the corpus and shows what two principals get.
type tour struct {
	url     string
	dataset *eval.Dataset
	out     io.Writer
}

func (t tour) show(ctx context.Context) error {
	for _, tenant := range t.dataset.Tenants() {
		if err := t.ingest(ctx, tenant); err != nil {
			return err
		}
	}
	fmt.Fprintf(t.out, "\nThe same question asked by two principals: %s\n", demoQuestion)
	for _, name := range demoAskers {
		if err := t.ask(ctx, name); err != nil {
			return err
		}
	}
	fmt.Fprintf(t.out, tryLines, t.url, demoAskers[0], demoQuestion, demoAskers[1], t.dataset.Name, t.server(), demoWriter(t.dataset.Tenants()[0]))
	return nil
}

// server is the flag that the command line needs to find the demo.
func (t tour) server() string {
	if t.url == defaultServer {
		return ""
	}
	return " --server " + t.url
}

func (t tour) client(name string) (*client.Client, error) {
	return client.New(t.url, client.WithDemoPrincipal(name))
}

// ingest writes the current documents of a tenant; those that are there already
// stay as they are.
func (t tour) ingest(ctx context.Context, tenant string) error {
	api, err := t.client(demoWriter(tenant))
	if err != nil {
		return err
	}
	if _, err := api.CreateCollection(ctx, t.dataset.Name, client.CollectionSettings{}); err != nil {
		return err
	}
	out := &outcome{count: map[string]int{}}
	err = api.Ingest(ctx, t.dataset.Name, t.dataset.Current(tenant), func(r client.WriteResult) error {
		out.add(r)
		return nil
	})
	fmt.Fprintf(t.out, "Tenant %s: %s\n", tenant, out)
	return errors.Join(err, out.err())
}

const tryLines = `
Serving on %[1]s; Ctrl-C stops. In a browser: %[1]s/console. Or try:

  curl -s %[1]s/v1/collections/%[5]s/search -H 'X-Sluice-Principal: %[2]s' --json '{"query": "%[3]s", "k": 3}'
  curl -s %[1]s/v1/collections/%[5]s/search -H 'X-Sluice-Principal: %[4]s' --json '{"query": "%[3]s", "k": 3}'
  curl -s %[1]s/v1/collections/%[5]s/documents -H 'X-Sluice-Principal: dave-contractor'

Your own folder:

  bin/sluice ingest FOLDER --collection mine --as you%[6]s
  bin/sluice search 'a question' --collection mine --as you%[6]s

You administer your own tenant; colleague, of the group staff, reads there (--reader group:staff); %[7]s and the
like administer the demo's tenants.
`

func (t tour) ask(ctx context.Context, name string) error {
	api, err := t.client(name)
	if err != nil {
		return err
	}
	response, err := api.Search(ctx, t.dataset.Name, client.SearchRequest{Query: demoQuestion, K: 2})
	if err != nil {
		return err
	}
	fmt.Fprintf(t.out, "\n%s may read %d documents and gets\n", name, response.Counts.Visible)
	printResults(t.out, response)
	return nil
}
