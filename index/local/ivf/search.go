package ivf

import (
	"math"
	"math/bits"
	"slices"

	"sluice/kernels/ref"
)

// Scratch is the memory of one search, used again by the next.
type Scratch struct {
	probing
	found
	chunks    []chunk
	seen      []uint64 // rows of the present search, all zero between searches
	waiting   []uint32 // rows to score
	scores    []int32
	rows      []uint32
	estimates [chunkBlocks * ref.CodeLanes]float32
	masks     [chunkBlocks]uint16
}

// batch is how many rows are scored at once on the exact path.
const batch = 1024

// Search returns rows among which the k allowed and live ones of greatest
// inner product with the query are, as far as their products reach floor: that
// of the k-th best row known from elsewhere, or -Inf. The answer is certain
// where every allowed row is scored, else very likely; it is valid until the
// next search. live has a bit for each row; nil: all live.
func (x *Index) Search(q *Query, a *Allowed, live []uint64, k int, floor float32, s *Scratch) []uint32 {
	if k < 1 || a.count == 0 {
		return nil
	}
	if x.lists == 0 || a.count <= fewRows || a.count/mostOfAll <= k {
		return x.searchAll(q, a, live, k, floor, s)
	}
	if p := a.packed(x); p != nil {
		return x.searchPacked(q, p, live, k, floor, s)
	}
	if a.rows != nil || float64(a.count) <= x.listsCost(a) {
		return x.searchAll(q, a, live, k, floor, s)
	}
	return x.searchLists(q, a, live, k, floor, s)
}

// mostOfAll: where one of so many allowed rows is wanted, all are scored.
const mostOfAll = 16

// listsCost is what a search of the lists costs, in allowed rows that could be
// scored instead: the choice of lists, and codes that grow slower than the rows
// and faster than the allowed share shrinks. Fitted to sentence vectors.
func (x *Index) listsCost(a *Allowed) float64 {
	share := float64(a.count) / float64(x.rows)
	return fewRows + math.Pow(float64(x.rows), 0.64)*math.Pow(share, -0.45)
}

// fewRows is how many allowed rows are always all scored.
const fewRows = 1000

// unit is what a step of a product is worth.
func (x *Index) unit(q *Query) float32 { return q.step * x.step }

// certain bounds how far a product of bytes is from the true one: by Cauchy
// and Schwarz ‖q‖·‖x−x̂‖ + ‖q−q̂‖·‖x̂‖, and a little for float32's rounding.
func (x *Index) certain(q *Query) float32 {
	return q.norm*x.worst + q.rounding()*(x.longest+x.worst) + 1e-5*q.norm*x.longest
}

// floorOf is the product of bytes that a row reaching floor has at least.
func (x *Index) floorOf(q *Query, floor, margin float32) int32 {
	steps := (floor - margin) / x.unit(q)
	return int32(min(max(steps, math.MinInt32/2), math.MaxInt32/2)) - 1 // a conversion rounds towards zero
}

// searchAll scores every allowed row.
func (x *Index) searchAll(q *Query, a *Allowed, live []uint64, k int, floor float32, s *Scratch) []uint32 {
	margin := x.certain(q)
	s.found.reset(k, x.floorOf(q, floor, margin), int32(2*margin/x.unit(q))+1)
	if a.rows != nil && live == nil {
		for rows := range slices.Chunk(a.rows, batch) {
			x.score(q, rows, s)
		}
		return s.result()
	}
	s.waiting = s.waiting[:0]
	for row := range a.Each {
		if live == nil || live[row/64]>>(row%64)&1 == 1 {
			s.waiting = append(s.waiting, row)
		}
		if len(s.waiting) == batch {
			x.scoreWaiting(q, s)
		}
	}
	x.scoreWaiting(q, s)
	return s.result()
}

func (x *Index) scoreWaiting(q *Query, s *Scratch) {
	x.score(q, s.waiting, s)
	s.waiting = s.waiting[:0]
}

func (x *Index) score(q *Query, rows []uint32, s *Scratch) {
	s.scores = slices.Grow(s.scores[:0], len(rows))[:len(rows)]
	x.space.kernels.DotBytes(q.bytes, x.bytes, rows, s.scores)
	for i, row := range rows {
		if product := s.scores[i] - q.offset; product >= s.floor {
			s.found.add(product, row)
		}
	}
}

func (s *Scratch) result() []uint32 {
	s.found.prune()
	s.rows = s.rows[:0]
	for _, e := range s.found.entries {
		s.rows = append(s.rows, e.row)
	}
	return s.rows
}

const (
	chunkBlocks = 8  // scanned with one threshold
	aheadChunks = 2  // fetched before they are scanned
	planChunks  = 32 // between two looks at what is still to be scanned
	fewWaiting  = 32 // rows are scored together

	// doubt is the errors of an estimate, in standard deviations, within which
	// a row is scored.
	doubt = 1.5

	estimateError = 0.6 // √(1−⟨o,ō⟩²), with ⟨o,ō⟩ about .8

	// Scanning a block costs about as much as scoring so many rows.
	rowsPerBlock = 2
)

// likely is how far a product of bytes is from the true one, all but surely:
// six standard deviations of the rounding errors' sum.
func (x *Index) likely(q *Query) float32 {
	rows, query := float64(q.norm*x.step), float64(x.longest*q.step)
	return float32(6 * math.Sqrt((rows*rows+query*query)/12))
}

// visit is one search of lists.
type visit struct {
	x         *Index
	q         *Query
	allowed   *Allowed // nil: every row is allowed, or listed says which
	listed    *listed  // nil: every row is allowed, or allowed says which
	live      []uint64
	s         *Scratch
	certain   bool    // k rows of this or other indexes reach the threshold
	threshold float32 // what an estimate must exceed
	reach     float32
	budget    int // blocks; beyond them scoring all rows is cheaper
}

// searchLists visits lists near the query, and turns to scoring all rows when
// that would have been cheaper.
func (x *Index) searchLists(q *Query, a *Allowed, live []uint64, k int, floor float32, s *Scratch) []uint32 {
	q.encode()
	margin := x.likely(q)
	s.found.reset(k, x.floorOf(q, floor, margin), int32(margin/x.unit(q))+1)
	s.begin(x.rows)
	share := float64(a.count) / float64(x.rows)
	v := visit{x: x, q: q, live: live, s: s, threshold: floor, certain: floor > float32(math.Inf(-1)), budget: a.count / rowsPerBlock,
		reach: x.space.effort.reachAmong(share)}
	switch {
	case a.count == x.rows:
	case a.used.Swap(true):
		v.listed = a.inLists(x)
	default:
		v.allowed = a
	}
	v.choose(v.most(share))
	complete := v.scan()
	s.forget()
	if !complete {
		return x.searchAll(q, a, live, k, floor, s)
	}
	return s.result()
}

// most is how many lists a search visits at most: what is nowhere near has its
// neighbours anywhere, and visiting all would find few of them.
func (v *visit) most(share float64) int {
	return min(int(math.Sqrt(v.x.space.effort.lists*float64(v.x.lists)/share)), v.x.lists)
}

// choose fills s.chunks with the blocks of the most nearest lists that have
// allowed rows. Where a filter leaves few such lists nearby, it looks at all.
func (v *visit) choose(most int) {
	v.x.nearest(v.q, most, &v.s.probing)
	if v.cut(most) < most/2 && most < v.x.lists {
		v.x.nearest(v.q, v.x.lists, &v.s.probing)
		v.cut(most)
	}
}

// cut fills s.chunks with the blocks of the first probes that have allowed
// rows, in their order, and returns of how many.
func (v *visit) cut(most int) (lists int) {
	s, starts := v.s, v.x.starts
	s.chunks = s.chunks[:0]
	for _, p := range s.probes {
		if v.listed != nil && v.listed.counts[p.list] == 0 {
			continue
		}
		s.split(p, starts[p.list], starts[p.list+1])
		if lists++; lists == most {
			break
		}
	}
	return lists
}

// split appends a list's blocks as chunks of about one size: while one is
// scanned as much is fetched of another.
func (s *Scratch) split(p probe, first, end uint32) {
	pieces := (end - first + chunkBlocks - 1) / chunkBlocks
	for ; pieces > 0; pieces-- {
		blocks := (end - first + pieces - 1) / pieces
		s.chunks = append(s.chunks, chunk{first, blocks, p.product, p.distance})
		first += blocks
	}
}

// scan goes through the chunks until a list is too far. It is not complete if
// the budget appears not to do, or if k rows are not known.
func (v *visit) scan() (complete bool) {
	block := ref.CodeBlock(v.x.space.padded)
	for i, c := range v.s.chunks {
		if v.certain && c.distance > v.farthest() {
			break
		}
		if i%planChunks == 0 && v.needed(v.s.chunks[i:]) > v.budget {
			return false
		}
		v.budget -= int(c.blocks)
		var ahead []byte
		if i+aheadChunks < len(v.s.chunks) {
			ahead = v.x.codes[int(v.s.chunks[i+aheadChunks].first)*block:]
		}
		v.scanChunk(c, v.x.codes[int(c.first)*block:][:int(c.blocks)*block], ahead)
	}
	v.rank()
	return v.certain
}

// needed is how many blocks of the chunks will be scanned, as it now looks.
func (v *visit) needed(chunks []chunk) (blocks int) {
	if !v.certain {
		return 0
	}
	farthest := v.farthest()
	for _, c := range chunks {
		if c.distance > farthest {
			break
		}
		blocks += int(c.blocks)
	}
	return blocks
}

// farthest is the squared distance up to which lists are visited.
func (v *visit) farthest() float32 {
	return v.q.norm*v.q.norm + v.x.longest*v.x.longest - 2*v.threshold + v.reach
}

// scanChunk estimates the rows of a chunk. An estimate errs by about
// f·‖q−c‖·estimateError/√(d−1).
func (v *visit) scanChunk(c chunk, codes, ahead []byte) {
	s, d := v.s, float64(v.x.space.padded)
	shift := v.q.shift + doubt*estimateError*float32(math.Sqrt(float64(c.distance)/(d-1)))
	v.x.space.kernels.ScanCodes(&v.q.code, codes, ahead, c.product, shift, v.threshold, s.estimates[:], s.masks[:])
	for b, lanes := range s.masks[:c.blocks] {
		if v.listed != nil {
			lanes &= v.listed.lanes[int(c.first)+b]
		}
		if lanes != 0 {
			v.take(int(c.first)+b, lanes, s.estimates[b*ref.CodeLanes:][:ref.CodeLanes])
		}
	}
}

// take puts the rows of a block's lanes among those to be scored.
func (v *visit) take(block int, lanes uint16, estimates []float32) {
	s := v.s
	ids := v.x.ids[block*ref.CodeLanes:][:ref.CodeLanes]
	for ; lanes != 0; lanes &= lanes - 1 {
		lane := bits.TrailingZeros16(lanes)
		row := ids[lane]
		if estimates[lane] <= v.threshold || row == none {
			continue
		}
		word, bit := row/64, uint64(1)<<(row%64)
		if s.seen[word]&bit != 0 || v.live != nil && v.live[word]&bit == 0 || v.allowed != nil && !v.allowed.has(row) {
			continue
		}
		s.seen[word] |= bit
		s.rows = append(s.rows, row)
		s.waiting = append(s.waiting, row)
		v.x.space.kernels.Fetch(v.x.bytes[int(row)*v.x.space.padded:][:v.x.space.padded])
	}
	if len(s.waiting) >= fewWaiting {
		v.rank()
	}
}

// rank scores the waiting rows, which may raise the threshold.
func (v *visit) rank() {
	v.x.scoreWaiting(v.q, v.s)
	if v.s.full() {
		v.certain = true
		v.threshold = max(v.threshold, v.s.kth(v.x.unit(v.q)))
	}
}

// begin prepares for rows to be seen.
func (s *Scratch) begin(rows int) {
	if words := (rows + 63) / 64; len(s.seen) < words {
		s.seen = make([]uint64, words)
	}
	s.rows, s.waiting = s.rows[:0], s.waiting[:0]
}

// forget clears what was seen, which s.rows lists.
func (s *Scratch) forget() {
	for _, row := range s.rows {
		s.seen[row/64] = 0
	}
}

// chunk is a run of blocks of one list.
type chunk struct {
	first, blocks     uint32
	product, distance float32 // of the query and the list's centroid
}
