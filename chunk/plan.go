package chunk

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"sluice/document"
)

// plan cuts as a planner says: the document becomes elements with ids, in
// sections; the planner groups ids, and each group is a chunk. By name it is the
// planner of rules that is asked; Planned asks another one.
type plan struct{}

// PlanVersion names the chunker that a planner may be asked for.
const PlanVersion = "plan/1"

func (plan) Version() string { return PlanVersion }

func (plan) Chunk(d document.Document) []Chunk {
	chunks, err := Planned(context.Background(), d, Rules{})
	if err != nil { // the rules group every id once, and a test holds that
		return structure{}.Chunk(d)
	}
	return chunks
}

// maxElements is how many elements a section has at most.
const maxElements = 60

// Element is a heading or a piece of content with its id: its kind's letter and
// its number among those of its kind, as "h2" or "p17".
type Element struct {
	ID    string
	Kind  document.Kind
	Level int    // of a heading
	Text  string // a table in words
	Words int

	block *document.Block
	path  []string
}

// Section is a run of elements, cut before a heading if that is possible, with the
// headings that it stands under.
type Section struct {
	Ancestors []Element
	Elements  []Element
}

// Planner groups the elements of a section by their ids. Groups hold every id
// of content exactly once, and of headings any number of times.
type Planner interface {
	Plan(ctx context.Context, s Section) (groups [][]string, err error)
}

// ErrPlan means that a planner's groups are none: an id is unknown, or one of
// content is in two of them.
var ErrPlan = errors.New("not a plan of the section")

// ErrPlanner means that a planner failed, or gave no plan.
var ErrPlanner = errors.New("no plan of the document's chunks")

// Check reports, as ErrPlan, what is wrong with groups, and else the ids of
// content that are in none.
func (s Section) Check(groups [][]string) (missing []string, err error) {
	known, used := map[string]bool{}, map[string]bool{}
	for _, e := range slices.Concat(s.Ancestors, s.Elements) {
		known[e.ID] = true
	}
	for _, id := range slices.Concat(groups...) {
		if !known[id] {
			return nil, fmt.Errorf("%w: id %q is unknown", ErrPlan, id)
		}
		if used[id] && id[0] != 'h' {
			return nil, fmt.Errorf("%w: id %q is there twice", ErrPlan, id)
		}
		used[id] = true
	}
	for _, e := range s.Elements {
		if e.Kind != document.Heading && !used[e.ID] {
			missing = append(missing, e.ID)
		}
	}
	return missing, nil
}

// Planned cuts a document by a planner. What it leaves out becomes a group of its
// own; a group whose elements are not neighbours becomes a chunk for each run of
// neighbours, and what does not fit into one chunk is cut. It fails with
// ErrPlanner if the planner does, unless ctx has ended.
func Planned(ctx context.Context, d document.Document, planner Planner) ([]Chunk, error) {
	w := newWalk(d.Text)
	for _, s := range sectionsOf(elementsOf(d)) {
		groups, missing, err := s.plan(ctx, planner)
		if err != nil {
			return nil, err
		}
		for _, run := range s.runs(append(groups, missing)) {
			w.pack(run)
		}
	}
	slices.SortStableFunc(w.chunks, func(a, b Chunk) int { return a.Start - b.Start })
	return w.chunks, nil
}

// plan asks a planner, and says what it left out.
func (s Section) plan(ctx context.Context, planner Planner) (groups [][]string, missing []string, err error) {
	if groups, err = planner.Plan(ctx, s); err == nil {
		missing, err = s.Check(groups)
	}
	if err != nil && ctx.Err() == nil {
		err = fmt.Errorf("%w: %w", ErrPlanner, err)
	}
	return groups, missing, err
}

// elementsOf lists headings and content in order. Containers that are in no
// list are one element each.
func elementsOf(d document.Document) []Element {
	var all []Element
	counts := map[byte]int{}
	var visit func(blocks []*document.Block, path []string)
	visit = func(blocks []*document.Block, path []string) {
		for _, b := range blocks {
			kind := b.Kind
			switch {
			case kind == document.Section && len(b.Children) > 1:
				visit(b.Children, extend(path, b.Title))
				continue
			case kind == document.Section: // nothing but its heading, which would be in no path
				kind, b = document.Paragraph, b.Children[0]
			}
			letter := letterOf(kind)
			counts[letter]++
			text := wordsOf(d.Text, b.Start, b.End, tablesIn(b, nil), plannedBytes(b))
			all = append(all, Element{
				ID: fmt.Sprintf("%c%d", letter, counts[letter]), Kind: kind, Level: b.Level, Text: text,
				Words: countWords(text), block: b, path: path,
			})
		}
	}
	visit(d.Blocks, nil)
	return all
}

func countWords(text string) (n int) {
	for range strings.FieldsSeq(text) {
		n++
	}
	return n
}

// plannedBytes bounds what a planner is shown of a block.
func plannedBytes(b *document.Block) int { return maxRepeated*(b.End-b.Start) + 4<<10 }

func letterOf(k document.Kind) byte {
	switch k {
	case document.Heading:
		return 'h'
	case document.Table:
		return 't'
	case document.List:
		return 'l'
	case document.Code:
		return 'c'
	case document.Figure:
		return 'f'
	}
	return 'p'
}

// sectionsOf cuts the elements before headings of the highest level that there
// is, as late as possible; a run without any is cut where it is full.
func sectionsOf(all []Element) []Section {
	var sections []Section
	var above []Element // the headings around what comes next, by level
	for len(all) > 0 {
		n := cutAt(all)
		sections = append(sections, Section{Ancestors: slices.Clone(above), Elements: all[:n]})
		for _, e := range all[:n] {
			if e.Kind == document.Heading {
				above = append(slices.DeleteFunc(above, func(a Element) bool { return a.Level >= e.Level }), e)
			}
		}
		all = all[n:]
	}
	return sections
}

func cutAt(all []Element) int {
	if len(all) <= maxElements {
		return len(all)
	}
	best, level := maxElements, 7
	for i := maxElements; i > maxElements/2; i-- {
		if e := all[i]; e.Kind == document.Heading && e.Level < level {
			best, level = i, e.Level
		}
	}
	return best
}

// runs turns groups into runs of neighbouring elements, without the headings at
// their ends: those are in the paths.
func (s Section) runs(groups [][]string) [][]Element {
	at := map[string]int{}
	for i, e := range s.Elements {
		at[e.ID] = i
	}
	var runs [][]Element
	for _, group := range groups {
		var places []int
		for _, id := range group {
			if i, ok := at[id]; ok {
				places = append(places, i)
			}
		}
		slices.Sort(places)
		from := 0
		for i := 1; i <= len(places); i++ {
			if i < len(places) && places[i] <= places[i-1]+1 {
				continue
			}
			if run := content(s.Elements[places[from] : places[i-1]+1]); len(run) > 0 {
				runs = append(runs, run)
			}
			from = i
		}
	}
	return runs
}

// content is a run without the headings at its ends. One that is all headings
// is none, but for those that have nothing below them.
func content(run []Element) []Element {
	for len(run) > 0 && run[len(run)-1].Kind == document.Heading {
		run = run[:len(run)-1]
	}
	for len(run) > 0 && run[0].Kind == document.Heading {
		run = run[1:]
	}
	return run
}

// pack makes a chunk of a run, or several if it does not fit.
func (w *walk) pack(run []Element) {
	path := run[0].path
	for _, e := range run[1:] {
		path = common(path, e.path)
	}
	p := packer{walk: w, path: path, limits: semantic.beside(path)}
	for _, e := range run {
		switch {
		case p.inWords(e.block.Start, e.block):
		case isTable(e.block):
			p.flush()
			p.table(e.block, e.block.Start, e.block.Grid.Caption)
		default:
			p.block(e.block)
		}
	}
	p.flush()
}

func common(a, b []string) []string {
	n := 0
	for n < min(len(a), len(b)) && a[n] == b[n] {
		n++
	}
	return a[:n]
}
