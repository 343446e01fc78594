package postgres

import (
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"sluice/store"
	"sluice/store/encode"
)

// recordColumns are those of documents, as recordRow takes them.
const recordColumns = "collection, ordinal, key, version, title, format, chunker, model, identity, first_row, rows, coded, access, epoch, updated, class"

// recordRow is a row of documents. Rows are scanned to it one after the other;
// strings that most records of a query have in common are made once.
type recordRow struct {
	record                                               store.Record
	key, title, format, chunker, model, identity, access pgtype.DriverBytes // the driver's until the next row

	updated int64 // microseconds since 1970
	class   int64
}

// targets are where a row is scanned to.
func (r *recordRow) targets() []any {
	return []any{
		&r.record.Collection, &r.record.Ordinal, &r.key, &r.record.Version, &r.title, &r.format, &r.chunker, &r.model,
		&r.identity, &r.record.FirstRow, &r.record.Rows, &r.record.Coded, &r.access, &r.record.Epoch, &r.updated, &r.class,
	}
}

func (r *recordRow) decode() (store.Record, error) {
	out := &r.record
	out.Key, out.Title = string(r.key), string(r.title)
	out.Format, out.Chunker, out.Model = kept(out.Format, r.format), kept(out.Chunker, r.chunker), kept(out.Model, r.model)
	out.Updated, out.Class = time.UnixMicro(r.updated).UTC(), uint64(r.class)
	if copy(out.Identity[:], r.identity) != len(out.Identity) {
		return store.Record{}, fmt.Errorf("%w: the identity of document %d of collection %d has %d bytes", store.ErrCorrupt, out.Ordinal, out.Collection, len(r.identity))
	}
	d := encode.Decoder{Body: r.access}
	out.Access = d.Access()
	if err := d.End(); err != nil {
		return store.Record{}, fmt.Errorf("the access row of document %d of collection %d: %w", out.Ordinal, out.Collection, err)
	}
	return *out, nil
}

// kept is the string that the bytes are: the one before, if it is the same.
func kept(before string, now []byte) string {
	if before == string(now) {
		return before
	}
	return string(now)
}

func scanRecord(row pgx.CollectableRow) (store.Record, error) {
	var r recordRow
	if err := row.Scan(r.targets()...); err != nil {
		return store.Record{}, err
	}
	return r.decode()
}

// values are the columns of a record, in the order of recordColumns.
func values(r store.Record) []any {
	return []any{
		r.Collection, r.Ordinal, []byte(r.Key), r.Version, []byte(r.Title), []byte(r.Format), []byte(r.Chunker), []byte(r.Model),
		r.Identity[:], r.FirstRow, r.Rows, r.Coded, encode.AppendAccess(nil, r.Access), r.Epoch, r.Updated.UnixMicro(), int64(r.Class),
	}
}
