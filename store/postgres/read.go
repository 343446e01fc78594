package postgres

import (
	"bytes"
	"context"
	"fmt"
	"iter"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"sluice/store"
	"sluice/store/encode"
)

const (
	selectRecords = "select " + recordColumns + " from documents where collection = $1 and "
	byKey         = "sha256(key) = sha256($2)"
)

// Lookup returns the record of a key.
func (s *Store) Lookup(ctx context.Context, collection uint32, key string) (record store.Record, err error) {
	err = s.call(ctx, func(ctx context.Context) (err error) {
		record, err = lookup(ctx, s.pool, collection, key)
		return err
	})
	return record, err
}

func lookup(ctx context.Context, q querier, collection uint32, key string) (store.Record, error) {
	return find(ctx, q, scanRecord, selectRecords+byKey, collection, []byte(key))
}

// Records returns the records of the ordinals, by one query on the primary key.
func (s *Store) Records(ctx context.Context, collection uint32, ordinals []uint32) (map[uint32]store.Record, error) {
	records := make(map[uint32]store.Record, len(ordinals))
	err := s.call(ctx, func(ctx context.Context) error {
		if len(ordinals) == 0 {
			return nil
		}
		rows, err := s.pool.Query(ctx, selectRecords+"ordinal = any($2)", collection, ordinals)
		if err != nil {
			return err
		}
		return each(rows, func(r store.Record) { records[r.Ordinal] = r })
	})
	if err != nil {
		return nil, err
	}
	return records, nil
}

func each(rows pgx.Rows, visit func(store.Record)) error {
	defer rows.Close()
	var row recordRow
	for targets := row.targets(); rows.Next(); {
		if err := rows.Scan(targets...); err != nil {
			return err
		}
		r, err := row.decode()
		if err != nil {
			return err
		}
		visit(r)
	}
	return rows.Err()
}

// Kinds of content.
const (
	kindText    = 1
	kindVectors = 2
	kindParsed  = 3
)

// Content returns one version of a document: record and content come from one
// statement, so they are of one state.
func (s *Store) Content(ctx context.Context, collection, ordinal uint32, withVectors bool) (content store.Content, err error) {
	kinds := []int16{kindText}
	if withVectors {
		kinds = append(kinds, kindVectors)
	}
	err = s.call(ctx, func(ctx context.Context) error {
		rows, err := s.pool.Query(ctx, `select d.*, c.kind, c.body from (`+selectRecords+`ordinal = $2) d
			left join contents c on c.collection = d.collection and c.ordinal = d.ordinal and c.kind = any($3)
			order by c.kind, c.part`, collection, ordinal, kinds)
		if err == nil {
			content, err = s.readContent(rows, withVectors)
		}
		return err
	})
	if err != nil {
		return store.Content{}, err
	}
	return content, nil
}

// readContent puts a content together. A part that is missing is damage.
func (s *Store) readContent(rows pgx.Rows, withVectors bool) (content store.Content, err error) {
	bodies := map[int16][]byte{}
	if content.Record, err = readBodies(rows, bodies); err != nil {
		return content, err
	}
	err = s.codec.DecodeText(&content, bodies[kindText])
	if err == nil && withVectors {
		err = encode.DecodeVectors(&content, bodies[kindVectors])
	}
	return content, missing(content.Record, err)
}

// readBodies returns the record that all rows have, and puts their parts together by kind.
func readBodies(rows pgx.Rows, bodies map[int16][]byte) (r store.Record, err error) {
	defer rows.Close()
	var record recordRow
	for rows.Next() {
		var kind *int16
		var part []byte
		if err := rows.Scan(append(record.targets(), &kind, &part)...); err != nil {
			return r, err
		}
		if r, err = record.decode(); err != nil {
			return r, err
		}
		if kind != nil {
			bodies[*kind] = append(bodies[*kind], part...)
		}
	}
	if err := rows.Err(); err != nil {
		return r, err
	}
	if rows.CommandTag().RowsAffected() == 0 {
		return r, store.ErrNotFound
	}
	return r, nil
}

func missing(r store.Record, err error) error {
	if err != nil {
		return fmt.Errorf("the content of document %d of collection %d: %w", r.Ordinal, r.Collection, err)
	}
	return nil
}

// Parsed returns what a version brought for other chunkers.
func (s *Store) Parsed(ctx context.Context, generation, ordinal uint32) (parsed []byte, err error) {
	err = s.call(ctx, func(ctx context.Context) error {
		rows, err := s.pool.Query(ctx, `select c.body from documents d left join contents c
			on c.collection = d.collection and c.ordinal = d.ordinal and c.kind = $3
			where d.collection = $1 and d.ordinal = $2 order by c.part`, generation, ordinal, kindParsed)
		if err == nil {
			parsed, err = s.inflate(rows)
		}
		return err
	})
	return parsed, err
}

// inflate puts together the parts that rows have; a row without one is of a document
// that brought nothing.
func (s *Store) inflate(rows pgx.Rows) ([]byte, error) {
	parts, err := pgx.CollectRows(rows, pgx.RowTo[[]byte])
	switch {
	case err != nil:
		return nil, err
	case len(parts) == 0:
		return nil, store.ErrNotFound
	case parts[0] == nil:
		return nil, nil
	}
	return s.codec.Inflate(bytes.Join(parts, nil))
}

// Codes visits the token codes of rows.
func (s *Store) Codes(ctx context.Context, collection uint32, wanted []uint32, visit func(at int, codes []byte)) error {
	return s.visit(ctx, visit, `select w.at - 1, c.body from unnest($2::bigint[]) with ordinality as w("row", at)
		join codes c on c.collection = $1 and c."row" = w."row" order by w.at`, collection, wanted)
}

// visit visits a query's rows: places in what was asked for, and bodies.
func (s *Store) visit(ctx context.Context, visit func(at int, body []byte), query string, arguments ...any) error {
	return s.call(ctx, func(ctx context.Context) error {
		rows, err := s.pool.Query(ctx, query, arguments...)
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			var at int
			var body pgtype.DriverBytes // the driver's until the next row
			if err := rows.Scan(&at, &body); err != nil {
				return err
			}
			visit(at, body)
		}
		return rows.Err()
	})
}

// scanPage is how many records Scan reads at a time.
const scanPage = 1024

// Scan yields the records from an ordinal on.
func (s *Store) Scan(ctx context.Context, collection, from uint32) iter.Seq2[store.Record, error] {
	return func(yield func(store.Record, error) bool) {
		for next := int64(from); ; {
			page, err := s.page(ctx, collection, next)
			if err != nil {
				yield(store.Record{}, err)
				return
			}
			for _, record := range page {
				if !yield(record, nil) {
					return
				}
			}
			if len(page) < scanPage {
				return
			}
			next = int64(page[len(page)-1].Ordinal) + 1
		}
	}
}

func (s *Store) page(ctx context.Context, collection uint32, from int64) (page []store.Record, err error) {
	err = s.call(ctx, func(ctx context.Context) error {
		rows, err := s.pool.Query(ctx, selectRecords+"ordinal >= $2 order by ordinal limit $3", collection, from, scanPage)
		if err == nil {
			page, err = pgx.CollectRows(rows, scanRecord)
		}
		return err
	})
	return page, err
}
