package milvus

import (
	"context"
	"fmt"
	"slices"

	"github.com/milvus-io/milvus-sdk-go/v2/client"
	"github.com/milvus-io/milvus-sdk-go/v2/entity"

	"sluice/index"
)

const (
	mostResults   = 16384    // what the server takes as limit of a search, and as size of a query's answer
	callBytes     = 16 << 20 // of the rows that one call brings or asks for; the server takes 64 MiB
	partitions    = 16
	graphDegree   = 16 // HNSW: M
	graphWidth    = 200
	leastSearched = 64 // HNSW: ef
)

// collection is one generation of rows on one cluster.
type collection struct {
	*Cluster
	name  string
	dims  int
	owner string

	rounds rounds
}

// stored is a row as the server has it.
type stored struct {
	row, ordinal uint32
	class        int64
	epoch        int64
}

// open makes what is missing of the collection, and loads it. Another daemon may
// be at the same.
func (c *collection) open(ctx context.Context) error {
	return c.call(ctx, func(ctx context.Context) error {
		exists, err := c.searching.HasCollection(ctx, c.name)
		if err == nil && !exists {
			err = c.create(ctx)
		}
		if err == nil {
			err = c.index(ctx)
		}
		if err != nil {
			return err
		}
		return c.searching.LoadCollection(ctx, c.name, false)
	})
}

func (c *collection) create(ctx context.Context) error {
	number := func(f field) *entity.Field {
		return entity.NewField().WithName(string(f)).WithDataType(entity.FieldTypeInt64)
	}
	schema := entity.NewSchema().WithName(c.name).WithDescription(c.owner).
		WithField(number(rowField).WithIsPrimaryKey(true)).
		WithField(number(documentField)).
		WithField(number(classField)).
		WithField(number(bucketField).WithIsPartitionKey(true)).
		WithField(number(epochField)).
		WithField(entity.NewField().WithName(string(vectorField)).WithDataType(entity.FieldTypeFloatVector).WithDim(int64(c.dims)))
	err := c.searching.CreateCollection(ctx, schema, 1, client.WithPartitionNum(partitions), client.WithConsistencyLevel(entity.ClSession))
	if err == nil {
		return nil
	}
	if there, asked := c.searching.HasCollection(ctx, c.name); asked == nil && there {
		return nil // another daemon was first
	}
	return fmt.Errorf("creating the collection %s: %w", c.name, err)
}

func (c *collection) index(ctx context.Context) error {
	graph, err := entity.NewIndexHNSW(entity.IP, graphDegree, graphWidth)
	if err != nil {
		return err
	}
	for f, built := range map[field]entity.Index{vectorField: graph, documentField: c.scalarIndex(), classField: c.scalarIndex()} {
		if there, err := c.searching.DescribeIndex(ctx, c.name, string(f)); err == nil && len(there) > 0 {
			continue
		}
		if err := c.searching.CreateIndex(ctx, c.name, string(f), built, false); err != nil {
			return fmt.Errorf("creating the index of %s in %s: %w", f, c.name, err)
		}
	}
	return nil
}

// scalarIndex is the best that the server has.
func (c *collection) scalarIndex() entity.Index {
	if c.version.before(2, 4) {
		return entity.NewScalarIndex()
	}
	return entity.NewScalarIndexWithType(entity.Inverted)
}

// found is one hit of the server.
type found struct {
	row   uint32
	score float32
}

// search returns up to n rows that match, best first. It sees all that was
// inserted before.
func (c *collection) search(ctx context.Context, e expression, vector []float32, n int) ([]found, error) {
	if e.isNothing() {
		return nil, nil
	}
	return c.rounds.ask(ctx, question{e.String(), n}, vector, func(ctx context.Context, vectors [][]float32) ([][]found, error) {
		return c.searchAll(ctx, e, vectors, n)
	})
}

// searchAll asks several queries in one call.
func (c *collection) searchAll(ctx context.Context, e expression, vectors [][]float32, n int) (hits [][]found, err error) {
	params, err := entity.NewIndexHNSWSearchParam(min(max(2*n, leastSearched), 2*mostResults))
	if err != nil {
		return nil, err
	}
	queries := make([]entity.Vector, len(vectors))
	for i, v := range vectors {
		queries[i] = entity.FloatVector(v)
	}
	err = c.read(ctx, func(ctx context.Context) error {
		results, err := c.searching.Search(ctx, c.name, nil, e.String(), nil, queries,
			string(vectorField), entity.IP, n, params, client.WithSearchQueryConsistencyLevel(entity.ClSession))
		if err == nil {
			hits, err = hitsOf(results, len(queries))
		}
		return err
	})
	return hits, err
}

// hitsOf are the hits of each of n queries.
func hitsOf(results []client.SearchResult, n int) ([][]found, error) {
	hits := make([][]found, n)
	if len(results) == 0 {
		return hits, nil // of an empty collection
	}
	if len(results) != n {
		return nil, fmt.Errorf("%w: %d results of %d queries", errWrong, len(results), n)
	}
	for i, r := range results {
		var err error
		if hits[i], err = foundOf(r); err != nil {
			return nil, err
		}
	}
	return hits, nil
}

func foundOf(r client.SearchResult) ([]found, error) {
	if r.Err != nil || r.ResultCount == 0 {
		return nil, r.Err
	}
	ids, ok := r.IDs.(*entity.ColumnInt64)
	if !ok || ids.Len() != len(r.Scores) {
		return nil, fmt.Errorf("%w: %d scores without as many row numbers", errWrong, len(r.Scores))
	}
	hits := make([]found, len(r.Scores))
	for i, id := range ids.Data() {
		hits[i] = found{uint32(id), r.Scores[i]}
	}
	return hits, nil
}

// query returns the rows that match, with all fields but the vector. It sees
// all that anybody wrote before.
func (c *collection) query(ctx context.Context, e expression) (rows []stored, err error) {
	if e.isNothing() {
		return nil, nil
	}
	fields := []string{string(rowField), string(documentField), string(classField), string(epochField)}
	err = c.read(ctx, func(ctx context.Context) error {
		result, err := c.searching.Query(ctx, c.name, nil, e.String(), fields, client.WithSearchQueryConsistencyLevel(entity.ClStrong))
		if err == nil {
			rows, err = storedOf(result)
		}
		return err
	})
	return rows, err
}

func storedOf(result client.ResultSet) ([]stored, error) {
	var columns [4][]int64
	for i, f := range []field{rowField, documentField, classField, epochField} {
		column, ok := result.GetColumn(string(f)).(*entity.ColumnInt64)
		if !ok {
			return nil, fmt.Errorf("%w: there is no %s", errWrong, f)
		}
		columns[i] = column.Data()
	}
	rows := make([]stored, len(columns[0]))
	for i := range rows {
		rows[i] = stored{uint32(columns[0][i]), uint32(columns[1][i]), columns[2][i], columns[3][i]}
	}
	return rows, nil
}

// held returns those of the rows that the server has, by row.
func (c *collection) held(ctx context.Context, rows []uint32) (map[uint32]stored, error) {
	held := make(map[uint32]stored, len(rows))
	for part := range slices.Chunk(rows, c.perCall) {
		found, err := c.query(ctx, in(rowField, part))
		if err != nil {
			return nil, err
		}
		for _, r := range found {
			held[r.row] = r
		}
	}
	return held, nil
}

// vectors returns the vectors of rows, by row; those that the server lacks are
// not in it.
func (c *collection) vectors(ctx context.Context, rows []uint32) (map[uint32][]float32, error) {
	vectors := make(map[uint32][]float32, len(rows))
	for part := range slices.Chunk(rows, min(c.perCall, c.rowsAtOnce())) {
		if err := c.addVectors(ctx, part, vectors); err != nil {
			return nil, err
		}
	}
	return vectors, nil
}

// rowsAtOnce is how many rows with their vectors one call may carry.
func (c *collection) rowsAtOnce() int { return max(1, callBytes/(4*c.dims+4*8)) }

func (c *collection) addVectors(ctx context.Context, rows []uint32, vectors map[uint32][]float32) error {
	return c.read(ctx, func(ctx context.Context) error {
		result, err := c.searching.Query(ctx, c.name, nil, in(rowField, rows).String(), []string{string(rowField), string(vectorField)},
			client.WithSearchQueryConsistencyLevel(entity.ClStrong))
		if err != nil {
			return err
		}
		ids, ok := result.GetColumn(string(rowField)).(*entity.ColumnInt64)
		data, vectorsToo := result.GetColumn(string(vectorField)).(*entity.ColumnFloatVector)
		if !ok || !vectorsToo || ids.Len() != data.Len() {
			return fmt.Errorf("%w: there are not as many vectors as rows", errWrong)
		}
		for i, id := range ids.Data() {
			vectors[uint32(id)] = data.Data()[i]
		}
		return nil
	})
}

// count returns how many rows match.
func (c *collection) count(ctx context.Context, e expression) (n int64, err error) {
	if e.isNothing() {
		return 0, nil
	}
	const counted = "count(*)"
	err = c.read(ctx, func(ctx context.Context) error {
		result, err := c.searching.Query(ctx, c.name, nil, e.String(), []string{counted}, client.WithSearchQueryConsistencyLevel(entity.ClStrong))
		if err != nil {
			return err
		}
		column, ok := result.GetColumn(counted).(*entity.ColumnInt64)
		if !ok || column.Len() != 1 {
			return fmt.Errorf("%w: there is no %s", errWrong, counted)
		}
		n = column.Data()[0]
		return nil
	})
	return n, err
}

// scan calls visit with every row in [from, to), in no order.
func (c *collection) scan(ctx context.Context, from, to int64, visit func(stored)) error {
	window := between(rowField, from, to)
	switch n, err := c.count(ctx, window); {
	case err != nil || n == 0:
		return err
	case n > mostResults && to-from > 1:
		middle := from + (to-from)/2
		if err := c.scan(ctx, from, middle, visit); err != nil {
			return err
		}
		return c.scan(ctx, middle, to, visit)
	}
	rows, err := c.query(ctx, window)
	for _, r := range rows {
		visit(r)
	}
	return err
}

// columns are rows on their way to the server.
type columns struct {
	rows, ordinals, classes, buckets, epochs []int64
	vectors                                  [][]float32
}

func (s *columns) add(r index.Row, ordinal uint32, class int64, epoch uint64) {
	s.rows = append(s.rows, int64(r.Row))
	s.ordinals = append(s.ordinals, int64(ordinal))
	s.classes = append(s.classes, class)
	s.buckets = append(s.buckets, bucketOf(class))
	s.epochs = append(s.epochs, int64(epoch))
	s.vectors = append(s.vectors, r.Vector)
}

// numbers are the rows'.
func (s *columns) numbers() []uint32 {
	numbers := make([]uint32, len(s.rows))
	for i, row := range s.rows {
		numbers[i] = uint32(row)
	}
	return numbers
}

// except leaves out the rows that are held as they are here.
func (s *columns) except(held map[uint32]stored) *columns {
	rest := &columns{}
	for i, row := range s.rows {
		is, there := held[uint32(row)]
		if !there || int64(is.ordinal) != s.ordinals[i] || is.class != s.classes[i] {
			rest.add(index.Row{Row: uint32(row), Vector: s.vectors[i]}, uint32(s.ordinals[i]), s.classes[i], uint64(s.epochs[i]))
		}
	}
	return rest
}

func (s *columns) slice(from, to int) []entity.Column {
	return []entity.Column{
		entity.NewColumnInt64(string(rowField), s.rows[from:to]),
		entity.NewColumnInt64(string(documentField), s.ordinals[from:to]),
		entity.NewColumnInt64(string(classField), s.classes[from:to]),
		entity.NewColumnInt64(string(bucketField), s.buckets[from:to]),
		entity.NewColumnInt64(string(epochField), s.epochs[from:to]),
		entity.NewColumnFloatVector(string(vectorField), len(s.vectors[from]), s.vectors[from:to]),
	}
}

// insert writes rows, replacing those of the same numbers if replace is set.
// A row that is written twice is found once: its number is the primary key.
func (c *collection) insert(ctx context.Context, s *columns, replace bool) error {
	for from := 0; from < len(s.rows); from += c.rowsAtOnce() {
		to := min(from+c.rowsAtOnce(), len(s.rows))
		err := c.call(ctx, func(ctx context.Context) (err error) {
			var ids entity.Column
			if replace {
				ids, err = c.searching.Upsert(ctx, c.name, "", s.slice(from, to)...)
			} else {
				ids, err = c.searching.Insert(ctx, c.name, "", s.slice(from, to)...)
			}
			if err == nil && ids.Len() != to-from {
				err = fmt.Errorf("it has taken %d of %d rows", ids.Len(), to-from)
			}
			return err
		})
		if err != nil {
			return fmt.Errorf("inserting rows: %w", err)
		}
	}
	return nil
}

// delete removes rows, and makes sure that they are gone.
func (c *collection) delete(ctx context.Context, rows []uint32) error {
	for part := range slices.Chunk(rows, c.perCall) {
		err := c.call(ctx, func(ctx context.Context) error {
			return c.deleting.Delete(ctx, c.name, "", in(rowField, part).String())
		})
		if err != nil {
			return fmt.Errorf("deleting rows: %w", err)
		}
	}
	left, err := c.held(ctx, rows)
	if err == nil && len(left) > 0 {
		err = fmt.Errorf("the Milvus server at %s still has %d of %d deleted rows of %s", c.address, len(left), len(rows), c.name)
	}
	return err
}

// catchUp has searches see what others have written until now: they wait for what
// was written on their own connection, and so for a deletion of nothing.
func (c *collection) catchUp(ctx context.Context) error {
	return c.call(ctx, func(ctx context.Context) error {
		return c.searching.Delete(ctx, c.name, "", in(rowField, []int64{noRow}).String())
	})
}

const noRow = -1

// verify makes sure that the server has the rows.
func (c *collection) verify(ctx context.Context, rows []uint32) error {
	held, err := c.held(ctx, rows)
	if err != nil {
		return err
	}
	for _, row := range rows {
		if _, there := held[row]; !there {
			return fmt.Errorf("the Milvus server at %s took row %d and does not have it: %w", c.address, row, index.ErrUnavailable)
		}
	}
	return nil
}
