package server

import (
	"context"
	"encoding/base64"
	"strconv"
	"time"

	"github.com/valyala/fasthttp"

	"sluice/client"
	"sluice/filter"
	"sluice/ingest"
	"sluice/server/audit"
	"sluice/server/identity"
	"sluice/store"
)

const (
	defaultPage = 100
	maxPage     = 1000
)

func (s *Server) postDocuments(q *request) error {
	collection, err := q.collection()
	if err != nil {
		return err
	}
	switch name, err := q.mediaType(); {
	case err != nil:
		return err
	case name == "application/x-ndjson":
		return s.ingest(q, collection)
	default:
		return s.postDocument(q, collection)
	}
}

// written is a document as it arrives. AccessPatch hides the access fields of
// the document, in which absent and null are the same.
type written struct {
	client.AccessPatch
	Hidden
}

// Hidden is a level below AccessPatch.
type Hidden struct{ client.Document }

func (s *Server) postDocument(q *request, collection string) error {
	var d written
	if err := q.readWritten(&d); err != nil {
		return err
	}
	result, err := q.write(q.ctx, collection, d)
	if err != nil {
		return err
	}
	return q.reply(createdOr200(result.Status == "created"), result)
}

// write checks one document and hands it to the backend.
func (q *request) write(ctx context.Context, collection string, d written) (client.WriteResult, error) {
	document, err := documentOf(d)
	if err != nil {
		return client.WriteResult{}, err
	}
	var w ingest.Outcome
	err = q.audited(ctx, audit.Record{Action: audit.WriteDocument, Collection: collection, Document: d.Key}, func() (_ uint64, err error) {
		w, err = q.s.backend.Write(ctx, q.principal(), collection, document)
		return w.Epoch, err
	})
	if err != nil {
		return client.WriteResult{}, err
	}
	return client.WriteResult{
		Key:       w.Key,
		Status:    statusOf(w.Receipt),
		Version:   w.Version,
		Chunks:    int(w.Rows),
		Truncated: w.Truncated,
	}, nil
}

func documentOf(d written) (ingest.Document, error) {
	if err := checkKey(d.Key); err != nil {
		return ingest.Document{}, err
	}
	if len(d.Title) > ingest.MaxTitleBytes || !plain(d.Title) {
		return ingest.Document{}, badRequest("title: longer than %d bytes, or not plain text", ingest.MaxTitleBytes)
	}
	text := []byte(d.Text)
	if len(d.Data) > 0 {
		if text = d.Data; d.Text != "" {
			return ingest.Document{}, badRequest("data: it stands in place of text; send one of them")
		}
	}
	access, keeps, err := accessOf(d.AccessPatch)
	document := ingest.Document{Key: d.Key, Title: d.Title, Format: d.Format, Text: text, Access: access, Keeps: keeps}
	for _, p := range d.Passages {
		document.Passages = append(document.Passages, ingest.Passage{
			Text: p.Text, Headings: p.Headings, Vector: p.Vector.Values, Vectors: p.Vectors.Values, Columns: p.Vectors.Columns,
		})
	}
	return document, err
}

func statusOf(r store.Receipt) string {
	switch {
	case r.Created:
		return "created"
	case r.Unchanged:
		return "unchanged"
	case r.AccessOnly:
		return "access_updated"
	default:
		return "updated"
	}
}

func (s *Server) getDocument(q *request) error {
	collection, key, err := q.document()
	if err != nil {
		return err
	}
	content, err := s.backend.Document(q.ctx, q.principal(), collection, key)
	if err != nil {
		return err
	}
	info := infoOf(content.Record, q.who.Role)
	info.Text = content.Text
	return q.reply(fasthttp.StatusOK, info)
}

func (s *Server) deleteDocument(q *request) error {
	collection, key, err := q.document()
	if err != nil {
		return err
	}
	err = q.audited(q.ctx, audit.Record{Action: audit.DeleteDocument, Collection: collection, Document: key}, func() (uint64, error) {
		return s.backend.Delete(q.ctx, q.principal(), collection, key)
	})
	if err != nil {
		return err
	}
	q.http.SetStatusCode(fasthttp.StatusNoContent)
	return nil
}

func (s *Server) patchAccess(q *request) error {
	collection, key, err := q.document()
	if err != nil {
		return err
	}
	var p client.AccessPatch
	if err := q.readWritten(&p); err != nil {
		return err
	}
	result, err := q.changeAccess(q.ctx, collection, key, p)
	if err != nil {
		return err
	}
	return q.reply(fasthttp.StatusOK, result)
}

func (q *request) changeAccess(ctx context.Context, collection, key string, p client.AccessPatch) (client.WriteResult, error) {
	change, err := patchOf(p)
	if err != nil {
		return client.WriteResult{}, err
	}
	var r store.Receipt
	err = q.audited(ctx, audit.Record{Action: audit.ChangeAccess, Collection: collection, Document: key}, func() (_ uint64, err error) {
		r, err = q.s.backend.SetAccess(ctx, q.principal(), collection, key, change)
		return r.Epoch, err
	})
	if err != nil {
		return client.WriteResult{}, err
	}
	return client.WriteResult{Key: r.Key, Status: statusOf(r), Version: r.Version, Chunks: int(r.Rows)}, nil
}

func (s *Server) listDocuments(q *request) error {
	collection, err := q.collection()
	if err != nil {
		return err
	}
	cursor, limit, err := q.page()
	if err != nil {
		return err
	}
	records, next, err := s.backend.List(q.ctx, q.principal(), collection, cursor, limit)
	if err != nil {
		return err
	}
	listing := client.Listing{Documents: make([]client.DocumentInfo, len(records))}
	for i, r := range records {
		listing.Documents[i] = infoOf(r, q.who.Role)
	}
	listing.Next = base64.RawURLEncoding.EncodeToString([]byte(next))
	return q.reply(fasthttp.StatusOK, listing)
}

// page reads the query parameters of a listing.
func (q *request) page() (cursor string, limit int, err error) {
	limit = defaultPage
	args := q.http.QueryArgs()
	if text := args.Peek("limit"); text != nil {
		limit, err = strconv.Atoi(string(text))
		if err != nil || limit < 1 || limit > maxPage {
			return "", 0, badRequest("limit: a whole number from 1 to %d is expected", maxPage)
		}
	}
	raw, err := base64.RawURLEncoding.DecodeString(string(args.Peek("after")))
	if err != nil {
		return "", 0, badRequest("after: not a cursor; use the next of an earlier page")
	}
	return string(raw), limit, nil
}

// infoOf describes a document without its text. Who else may read it is for
// those who may change that.
func infoOf(r store.Record, role identity.Role) client.DocumentInfo {
	info := client.DocumentInfo{
		Key:        r.Key,
		Version:    r.Version,
		Title:      r.Title,
		Format:     r.Format,
		Chunker:    r.Chunker,
		Chunks:     int(r.Rows),
		Updated:    r.Updated,
		Attributes: attributesInfo(r.Access.Attributes),
		Regions:    r.Access.Applicability.Regions,
		ValidFrom:  pointerTo(r.Access.Applicability.ValidFrom),
		ValidUntil: pointerTo(r.Access.Applicability.ValidUntil),
	}
	if role >= identity.Write && !r.Access.Readers.Undeclared {
		list := make([]string, len(r.Access.Readers.List))
		for i, reader := range r.Access.Readers.List {
			list[i] = string(reader)
		}
		info.Readers = &list
	}
	return info
}

// attributesInfo shows an empty set as a list, not as null: null would be no attribute.
func attributesInfo(attributes filter.Attributes) map[string]any {
	shown := make(map[string]any, len(attributes))
	for name, value := range attributes {
		if set, ok := value.([]string); ok && set == nil {
			value = []string{}
		}
		shown[name] = value
	}
	return shown
}

func pointerTo(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}
