package client_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"

	"sluice/client"
)

// daemon stands in for a daemon that holds one document, readable by ann.
func daemon() *httptest.Server {
	return httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.Header.Get("Authorization") != "Bearer ann's token":
			w.WriteHeader(http.StatusUnauthorized)
			fmt.Fprint(w, `{"type":"about:blank","title":"Unauthorized","status":401,"detail":"send a valid token or API key"}`)
		case strings.HasSuffix(r.URL.Path, "/search"):
			fmt.Fprint(w, `{"results":[{"document":"leave.md","version":1,"title":"Leave","start":9,"end":52,
				"headings":["Leave","Annual leave"],"text":"Thirty days.","score":0.9}],"strategy":"hybrid-late","generation":1,
				"plan":"p","counts":{"visible":1,"out_of_scope":0},"degraded":[]}`)
		case strings.HasSuffix(r.URL.Path, "/documents"):
			body, _ := io.ReadAll(r.Body)
			for i := range strings.Count(string(body), "\n") {
				fmt.Fprintf(w, `{"line":%d,"status":"created","version":1,"chunks":1}`+"\n", i+1)
			}
		case strings.HasSuffix(r.URL.Path, "/events"):
			fmt.Fprint(w, `data: {"generations":[{"id":1,"role":"serving"},{"id":2,"role":"building"}],"progress":{"documents":3,"of":4}}`+"\n\n")
			fmt.Fprint(w, `data: {"generations":[{"id":2,"role":"serving","chunker":"structure/1"},{"id":1,"role":"previous"}]}`+"\n\n")
		}
	}))
}

func Example() {
	d := daemon()
	defer d.Close()
	ctx := context.Background()

	c, err := client.New(d.URL, client.WithToken("ann's token"))
	if err != nil {
		log.Fatal(err)
	}
	answer, err := c.Search(ctx, "handbook", client.SearchRequest{Query: "how long is leave?", K: 3})
	if err != nil {
		log.Fatal(err)
	}
	for _, r := range answer.Results {
		fmt.Printf("%s, bytes %d to %d (%s): %s\n", r.Document, r.Start, r.End, strings.Join(r.Headings, " > "), r.Text)
	}
	// Output: leave.md, bytes 9 to 52 (Leave > Annual leave): Thirty days.
}

// An error answer is a Problem.
func ExampleProblem() {
	d := daemon()
	defer d.Close()
	c, err := client.New(d.URL, client.WithToken("somebody's token"))
	if err != nil {
		log.Fatal(err)
	}
	_, err = c.Search(context.Background(), "handbook", client.SearchRequest{Query: "how long is leave?"})
	if p := new(client.Problem); errors.As(err, &p) {
		fmt.Println(p.Status, p.Detail)
	}
	// Output: 401 send a valid token or API key
}

// Documents are written in one streamed request, from an iterator.
func ExampleClient_Ingest() {
	d := daemon()
	defer d.Close()
	c, err := client.New(d.URL, client.WithToken("ann's token"))
	if err != nil {
		log.Fatal(err)
	}
	documents := func(yield func(client.Document, error) bool) {
		for i := range 2 {
			if !yield(client.Document{Key: fmt.Sprint("page-", i), Format: "text", Text: "…", Readers: &[]string{"group:staff"}}, nil) {
				return
			}
		}
	}
	err = c.Ingest(context.Background(), "handbook", documents, func(r client.WriteResult) error {
		fmt.Println(r.Line, r.Status)
		return nil
	})
	if err != nil {
		log.Fatal(err)
	}
	// Output:
	// 1 created
	// 2 created
}

// A job is watched until none runs.
func ExampleClient_WatchReindex() {
	d := daemon()
	defer d.Close()
	c, err := client.New(d.URL, client.WithToken("ann's token"))
	if err != nil {
		log.Fatal(err)
	}
	err = c.WatchReindex(context.Background(), "handbook", func(g client.Generations) error {
		if g.Progress != nil {
			fmt.Printf("%d of %d documents\n", g.Progress.Documents, g.Progress.Of)
		} else {
			fmt.Println("serving", g.Generations[0].Chunker)
		}
		return nil
	})
	if err != nil {
		log.Fatal(err)
	}
	// Output:
	// 3 of 4 documents
	// serving structure/1
}
