package client

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
)

// AccessLine is one line of POST …/access/import: an [AccessPatch] with the
// document's key.
type AccessLine struct {
	Key        string          `json:"key"`
	Readers    json.RawMessage `json:"readers,omitempty"`
	Attributes json.RawMessage `json:"attributes,omitempty"`
	Regions    json.RawMessage `json:"regions,omitempty"`
	ValidFrom  json.RawMessage `json:"valid_from,omitempty"`
	ValidUntil json.RawMessage `json:"valid_until,omitempty"`
}

// Patch is the line without its key.
func (l AccessLine) Patch() AccessPatch {
	return AccessPatch{Readers: l.Readers, Attributes: l.Attributes, Regions: l.Regions, ValidFrom: l.ValidFrom, ValidUntil: l.ValidUntil}
}

// Principal is somebody of the caller's tenant. Without groups and attributes
// it is taken as the daemon's configuration has it, if it does.
type Principal struct {
	Subject    string         `json:"subject"`
	Groups     []string       `json:"groups,omitempty"`
	Attributes map[string]any `json:"attributes,omitempty"`
}

// PolicyFiles are a Cedar schema and policies, as in a directory of policies:
// file name to text.
type PolicyFiles struct {
	Schema string            `json:"schema"`
	Files  map[string]string `json:"files"`
}

// AccessPreviewRequest is the body of POST …/access/preview: what is supposed,
// and of whom. Without principals they are all readers that documents name.
type AccessPreviewRequest struct {
	Changes    []AccessLine `json:"changes,omitempty"`
	Policies   *PolicyFiles `json:"policies,omitempty"`
	Principals []Principal  `json:"principals,omitempty"`
}

// AccessPreview answers it. Nothing was changed.
type AccessPreview struct {
	Compared    int                `json:"compared"` // principals
	LeftOut     int                `json:"left_out"` // principals beyond 10,000, or beyond 50 million evaluations: principals × access classes × policies, of now and then
	Changed     int                `json:"changed"`  // of the compared, those who gain or lose
	Gained      int                `json:"gained"`   // documents, over all principals
	Lost        int                `json:"lost"`
	Differences []AccessDifference `json:"differences"` // the 100 largest
	Unfit       []string           `json:"unfit"`       // principals, at most 100, who do not fit the policies and read nothing
	Failed      []WriteResult      `json:"failed"`      // changes, at most 100, that an import would refuse; line: which one
	Failures    int                `json:"failures"`    // how many those are
}

// AccessDifference is what a principal gains and loses: how many documents, and
// the keys of at most 20 of each.
type AccessDifference struct {
	Principal string   `json:"principal"`
	Gains     int      `json:"gains"`
	Loses     int      `json:"loses"`
	Gained    []string `json:"gained"`
	Lost      []string `json:"lost"`
}

// AccessQuestion is the body of POST …/access/explain.
type AccessQuestion struct {
	Principal Principal `json:"principal"`
	Document  string    `json:"document"`
}

// AccessExplanation answers it: the principal reads the document if readers and
// policies both say so.
type AccessExplanation struct {
	Principal  Principal       `json:"principal"`
	Configured bool            `json:"configured"` // groups and attributes are those of the configuration
	Document   string          `json:"document"`
	Reads      bool            `json:"reads"`
	Readers    ReadersVerdict  `json:"readers"`
	Policies   PoliciesVerdict `json:"policies"`
}

// ReadersVerdict is what the reader list says.
type ReadersVerdict struct {
	Admit    bool     `json:"admit"`
	Declared bool     `json:"declared"` // without a list the policies alone decide
	By       []string `json:"by"`       // readers on the list that the principal is
}

// PoliciesVerdict is what the policies say.
type PoliciesVerdict struct {
	Permit     bool           `json:"permit"`
	Forbid     bool           `json:"forbid"`   // some forbids; else none permits
	BuiltIn    bool           `json:"built_in"` // they are those of a daemon that has none of its own
	By         []string       `json:"by"`       // file:line:column of the policies that decide
	Errors     []string       `json:"errors"`
	Attributes map[string]any `json:"attributes"` // of the document, as policies see them
}

// ImportAccess changes the access rows of many documents in one streamed
// request: each line of NDJSON is an [AccessLine], sent as it stands. Every
// result goes to onResult as it arrives, in the order of the lines; that of a
// bad line says what is wrong with it. It does not retry.
func (c *Client) ImportAccess(ctx context.Context, collection string, ndjson io.Reader, onResult func(WriteResult) error) error {
	return c.stream(ctx, collectionPath(collection, "access", "import"), func(w io.Writer) (int, error) { return copyLines(w, ndjson) }, onResult)
}

// copyLines returns how many of the lines are not blank.
func copyLines(w io.Writer, ndjson io.Reader) (lines int, err error) {
	in, blank := bufio.NewReader(ndjson), true
	for {
		part, end := in.ReadSlice('\n')
		if blank && len(bytes.TrimSpace(part)) > 0 {
			blank = false
			lines++
		}
		blank = blank || bytes.HasSuffix(part, []byte("\n"))
		if _, err := w.Write(part); err != nil {
			return lines, err
		}
		switch {
		case errors.Is(end, io.EOF):
			return lines, nil
		case end != nil && !errors.Is(end, bufio.ErrBufferFull):
			return lines, end
		}
	}
}

// PreviewAccess says who would gain and who would lose what.
func (c *Client) PreviewAccess(ctx context.Context, collection string, r AccessPreviewRequest) (AccessPreview, error) {
	var answer AccessPreview
	err := c.call(ctx, http.MethodPost, collectionPath(collection, "access", "preview"), r, &answer)
	return answer, err
}

// ExplainAccess says what decides whether a principal reads a document.
func (c *Client) ExplainAccess(ctx context.Context, collection string, q AccessQuestion) (AccessExplanation, error) {
	var answer AccessExplanation
	err := c.call(ctx, http.MethodPost, collectionPath(collection, "access", "explain"), q, &answer)
	return answer, err
}
