package local

import (
	"context"
	"fmt"

	"sluice/filter"
	"sluice/index"
	"sluice/index/text"
)

// fewShare: where not more than this share of a part's rows is visible, their
// postings are picked out; otherwise blocks that cannot matter are skipped.
const fewShare = 16

// Lexical ranks the allowed rows that have a clause of the query.
func (r *Reader) Lexical(ctx context.Context, allowed filter.Set, query string, k int) ([]index.Hit, error) {
	if len(query) > index.MaxQueryBytes {
		return nil, fmt.Errorf("query of %d bytes, at most %d are taken: %w", len(query), index.MaxQueryBytes, index.ErrInvalid)
	}
	memory, err := r.begin()
	if err != nil {
		return nil, err
	}
	defer r.end(memory)
	v := r.state.view(allowed)
	if v.length == 0 || k < 1 {
		return nil, ctx.Err()
	}
	search := lexicalSearch{
		state:         r.state,
		clauses:       r.analyzer.Parse(query),
		model:         newBM25(v.rows, v.length),
		visible:       v.slots,
		lexicalMemory: &memory.lexical,
	}
	hits, err := search.run(ctx, k)
	if err != nil {
		memory.lexical = lexicalMemory{} // sums may be left in it
		return nil, err
	}
	return hits, nil
}

// lexicalMemory is the memory of one query, used again by the next.
type lexicalMemory struct {
	lists      []foundList
	weights    []float64 // by clause, in points
	built      []byte    // lists of phrases and prefixes
	picked     []posting
	sums       []uint32 // by slot; all zero between uses
	touched    []uint32 // slots with a sum
	contenders []contender
	decoded    decoded
	phrase     phraseMemory
	windows    windowMemory
}

// foundList is what one clause has in one part: the whole list, or, where few
// rows are visible, the visible postings.
type foundList struct {
	list   postingList
	picked []posting
}

// lexicalSearch first finds the lists of all clauses and how many visible rows
// each has, which gives the weights, and then scores part by part.
type lexicalSearch struct {
	state   *snapshot
	visible []slotSet // by part
	clauses []text.Clause
	model   bm25
	unit    float64 // score of one point
	least   uint32  // points below this cannot be among the best
	best    topK
	*lexicalMemory
}

func (s *lexicalSearch) run(ctx context.Context, k int) ([]index.Hit, error) {
	s.best = topK{k: k, list: s.contenders[:0]}
	if err := s.find(ctx); err != nil {
		return nil, err
	}
	for i := range s.state.parts {
		if err := s.score(ctx, i); err != nil {
			return nil, err
		}
	}
	hits := s.best.hits(s.state.ordinal)
	s.contenders = s.best.list
	return hits, ctx.Err()
}

// few reports whether so few rows of a part are visible that each is scored.
func (s *lexicalSearch) few(part int) bool {
	return s.visible[part].count*fewShare <= uint64(s.state.parts[part].seg.rows())
}

// seen is the set of visible slots; nil: all are.
func (s *lexicalSearch) seen(part int) *slotSet {
	if v := &s.visible[part]; v.count < uint64(s.state.parts[part].seg.rows()) {
		return v
	}
	return nil
}

// find gathers the lists of every clause in every part and weighs the clauses.
func (s *lexicalSearch) find(ctx context.Context) error {
	s.lists, s.weights = s.lists[:0], s.weights[:0]
	s.picked, s.built = s.picked[:0], s.built[:0]
	all := 0.0
	for _, c := range s.clauses {
		rows := uint64(0)
		for part := range s.state.parts {
			if err := ctx.Err(); err != nil {
				return err
			}
			n, err := s.findIn(ctx, part, c)
			if err != nil {
				return err
			}
			rows += n
		}
		weight := float64(c.Weight) * s.model.idf(rows)
		if rows == 0 {
			weight = 0
		}
		s.weights = append(s.weights, weight)
		all += weight
	}
	for i := range s.weights {
		s.weights[i] *= most / all // without a match there is no list to use it on
	}
	s.unit = all / most
	return nil
}

// findIn appends what a clause has in a part and returns in how many visible rows.
func (s *lexicalSearch) findIn(ctx context.Context, part int, c text.Clause) (rows uint64, err error) {
	if s.visible[part].count == 0 {
		s.lists = append(s.lists, foundList{})
		return 0, nil
	}
	list, err := s.listOf(ctx, part, c)
	if err != nil {
		return 0, err
	}
	if s.few(part) {
		start := len(s.picked)
		if err := s.pick(list, &s.visible[part]); err != nil {
			return 0, err
		}
		s.lists = append(s.lists, foundList{picked: s.picked[start:]})
		return uint64(len(s.picked) - start), nil
	}
	s.lists = append(s.lists, foundList{list: list})
	return s.count(list, s.seen(part))
}

// listOf returns the list of a clause: a term's own, or one built for the query.
func (s *lexicalSearch) listOf(ctx context.Context, part int, c text.Clause) (postingList, error) {
	switch c.Kind {
	case text.Phrase:
		return s.phraseList(ctx, part, c)
	case text.Prefix:
		return s.prefixList(ctx, part, c)
	}
	return s.state.parts[part].seg.lookup(c.Terms[0])
}

// list is what the clause has in the part.
func (s *lexicalSearch) list(part, clause int) foundList {
	return s.lists[clause*len(s.state.parts)+part]
}

// count returns how many postings are visible; nil: all.
func (s *lexicalSearch) count(l postingList, visible *slotSet) (n uint64, err error) {
	if visible == nil {
		return uint64(l.count), nil
	}
	var b block
	for i := range l.blocks() {
		if err := b.open(l, i); err != nil {
			return 0, err
		}
		here, err := b.count(&s.decoded, visible)
		if err != nil {
			return 0, err
		}
		n += uint64(here)
	}
	return n, nil
}

// pick appends the visible postings of a list.
func (s *lexicalSearch) pick(l postingList, visible *slotSet) error {
	var b block
	for i := range l.blocks() {
		if visible.fewer(l.base(i), l.last(i), 0) {
			continue
		}
		if err := b.open(l, i); err != nil {
			return err
		}
		if err := s.pickFrom(&b, visible); err != nil {
			return err
		}
	}
	return nil
}

func (s *lexicalSearch) pickFrom(b *block, visible *slotSet) error {
	if visible.fewer(b.base, b.last, b.n/8) {
		for slot := range visible.within(b.base, b.last) {
			if i, ok := b.find(slot); ok {
				s.picked = append(s.picked, posting{slot, b.freq(i)})
			}
		}
		return nil
	}
	if err := b.decode(&s.decoded); err != nil {
		return err
	}
	for i, slot := range s.decoded.slots {
		if visible.has(slot) {
			s.picked = append(s.picked, posting{slot, s.decoded.freqs[i]})
		}
	}
	return nil
}

// score offers the rows of a part that may be among the best.
func (s *lexicalSearch) score(ctx context.Context, part int) error {
	switch {
	case s.visible[part].count == 0:
		return nil
	case s.few(part):
		s.scorePicked(part)
		return ctx.Err()
	default:
		return s.scoreWindows(ctx, part)
	}
}

// scorePicked sums up the clauses of every row. Points are positive, so a sum
// of zero is a row not yet touched.
func (s *lexicalSearch) scorePicked(part int) {
	seg := s.state.parts[part].seg
	sums := s.zeroSums(seg.rows())
	s.touched = s.touched[:0]
	for c, weight := range s.weights {
		term := s.model.term(weight)
		for _, p := range s.list(part, c).picked {
			if sums[p.slot] == 0 {
				s.touched = append(s.touched, p.slot)
			}
			sums[p.slot] += term.Points(p.freq, seg.length(p.slot))
		}
	}
	before := s.state.before[part]
	for _, slot := range s.touched {
		s.offer(seg, before, slot, sums[slot])
		sums[slot] = 0
	}
	s.settle()
}

// zeroSums returns a number for each of so many slots, all zero.
func (m *lexicalMemory) zeroSums(slots int) []uint32 {
	if len(m.sums) < slots {
		m.sums = make([]uint32, slots)
	}
	return m.sums[:slots]
}

// offer has a row take part if its points may be enough. Its slot counts on
// from before, the slots of the parts before its own.
func (s *lexicalSearch) offer(seg *segment, before, slot, points uint32) {
	if points >= s.least {
		score := float32(float64(points) * s.unit)
		s.best.add(contender{keyOf(score, seg.row(slot)), before + slot})
	}
}

// settle raises the least number of points to that of the worst row kept.
func (s *lexicalSearch) settle() {
	s.best.settle()
	if s.best.least > 0 {
		least := uint32(float64(contender{key: s.best.least + 1}.score()) / s.unit)
		s.least = least - least>>22 - min(least, 2) // what rounds to the same score stays
	}
}
