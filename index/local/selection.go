package local

// span is the slots [lo, hi).
type span struct{ lo, hi uint32 }

// selection is the live rows of allowed documents in one part: the only rows
// either leg looks at.
type selection struct {
	spans  []span // ascending, apart
	rows   uint64
	length uint64 // terms in all
}

// choose joins the part's documents with the allowed ordinals, both ascending,
// in time logarithmic in the gaps between those they share.
func (s *selection) choose(p part, allowed []uint32) {
	s.spans, s.rows, s.length = s.spans[:0], 0, 0
	for d, a := 0, 0; d < p.seg.documents() && a < len(allowed); {
		ordinal := p.seg.ordinal(d)
		switch {
		case ordinal < allowed[a]:
			d = p.seg.seek(d+1, allowed[a])
		case ordinal > allowed[a]:
			a = gallop(a+1, len(allowed), func(i int) bool { return allowed[i] >= ordinal })
		default:
			if !p.isDeleted(ordinal) {
				s.add(p.seg.document(d), p.seg.lengthBefore(d))
			}
			d, a = d+1, a+1
		}
	}
}

func (s *selection) add(d document, before uint64) {
	s.rows += uint64(d.hi - d.lo)
	s.length += d.length - before
	if n := len(s.spans); n > 0 && s.spans[n-1].hi == d.lo {
		s.spans[n-1].hi = d.hi
		return
	}
	s.spans = append(s.spans, span{d.lo, d.hi})
}
