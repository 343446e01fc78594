package fidelity

import (
	"slices"
	"strings"
)

// Fault is where a part of a reading first differs from the golden one, an
// excerpt of both. What is missing, or too much, is "" on the other side.
type Fault struct {
	Wanted string `json:"wanted"`
	Read   string `json:"read"`
}

// Parts of a document, as Scores has them.
const (
	TextPart     = "text"
	TablesPart   = "tables"
	CaptionsPart = "captions"
	OrderPart    = "order"
)

const (
	excerptWords = 20
	excerptRunes = 1000
)

// Faults are by part; a part that both readings have alike has none.
func Faults(want, got Reading) map[string]Fault {
	wanted, read := wordsOf(want.Text), wordsOf(got.Text)
	faults := map[string]Fault{}
	for part, f := range map[string]Fault{
		TextPart: textFault(wanted, read), TablesPart: tableFault(want.Tables, got.Tables),
		CaptionsPart: captionFault(want.Captions, got.Captions), OrderPart: orderFault(want.Blocks, wanted, read),
	} {
		if f != (Fault{}) {
			faults[part] = f
		}
	}
	return faults
}

// textFault shows what follows the words that both begin with.
func textFault(want, got []string) Fault {
	same := 0
	for same < min(len(want), len(got)) && want[same] == got[same] {
		same++
	}
	return Fault{excerpt(want[same:]), excerpt(got[same:])}
}

func excerpt(words []string) string { return strings.Join(words[:min(len(words), excerptWords)], " ") }

// tableFault shows the first table that none of those read is equal to, beside
// the one that is most like it; or else one that is too much.
func tableFault(want, got []Table) Fault {
	for _, w := range want {
		best, near := 0.0, Table{}
		for _, g := range got {
			if alike, err := TEDS(w, g); err == nil && alike > best {
				best, near = alike, g
			}
		}
		if best < 1 {
			return Fault{w.excerpt(), near.excerpt()}
		}
	}
	if len(got) > len(want) {
		return Fault{Read: got[len(want)].excerpt()}
	}
	return Fault{}
}

func (t Table) excerpt() string {
	rows := make([]string, len(t))
	for i, cells := range t {
		rows[i] = strings.Join(cells, " | ")
	}
	text := []rune(strings.Join(rows, "\n"))
	return string(text[:min(len(text), excerptRunes)])
}

// captionFault shows the first caption that is not read, or else one that is
// too much.
func captionFault(want, got []string) Fault {
	for _, w := range want {
		if !slices.ContainsFunc(got, func(g string) bool { return captions([]string{w}, []string{g}) == 1 }) {
			return Fault{Wanted: w}
		}
	}
	if len(got) > len(want) {
		return Fault{Read: got[len(want)]}
	}
	return Fault{}
}

// orderFault shows the beginnings of the first two blocks that are read the other
// way round.
func orderFault(blocks []string, want, got []string) Fault {
	before, last := "", -1
	for _, a := range anchors(blocks, want, got) {
		if a.at < last {
			return Fault{before + " … " + a.words, a.words + " … " + before}
		}
		before, last = a.words, a.at
	}
	return Fault{}
}
