package eval

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"sluice/eval/fidelity"
)

// poor is what a part of a file is read worse than that makes it a bad case.
const poor = 0.9

// BadCase is what came out badly: a part of a file beside its golden one, or an
// item of evidence that a strategy missed.
type BadCase struct {
	Place
	Name  string          `json:"name"`  // of the file; or the case and the strategy
	Score float64         `json:"score"` // of the part; 0 of a miss
	Fault *fidelity.Fault `json:"fault,omitempty"`
	Error string          `json:"error,omitempty"` // why the file is not read
}

// Place is where it was lost: a bucket of a layer.
type Place struct {
	Layer  Layer  `json:"layer"`
	Bucket string `json:"bucket"`
}

func (p Place) name() string { return string(p.Layer) + "." + p.Bucket }

// bucketNotRead is of files that are refused.
const bucketNotRead = "not-read"

// badOf are the parts of a file that are read badly: what there is of words,
// tables and captions is the element layer's, in which order the structure's.
func badOf(p Parsed) (all []BadCase) {
	if p.Error != "" {
		return []BadCase{{Place: Place{LayerElement, bucketNotRead}, Name: p.File, Error: p.Error}}
	}
	add := func(layer Layer, part string, score *float64) {
		if score != nil && *score < poor {
			fault := p.faults[part]
			all = append(all, BadCase{Place: Place{layer, part}, Name: p.File, Score: *score, Fault: &fault})
		}
	}
	add(LayerElement, fidelity.TextPart, &p.Scores.Text)
	add(LayerElement, fidelity.TablesPart, p.Scores.Tables)
	add(LayerElement, fidelity.CaptionsPart, p.Scores.Captions)
	add(LayerStructure, fidelity.OrderPart, p.Scores.Order)
	return all
}

// addBad gathers the bad cases of all layers, those of questions from a directory
// of misses, if there is one.
func (a *Axes) addBad(misses string) error {
	for _, p := range a.Parsed {
		a.Bad = append(a.Bad, badOf(p)...)
	}
	if misses == "" {
		return nil
	}
	files, err := filepath.Glob(filepath.Join(misses, "*.json"))
	if err != nil {
		return fmt.Errorf("%s: %w", misses, err)
	}
	if a.NoMisses = len(files) == 0; a.NoMisses && !isFailuresReport(filepath.Join(misses, "report.md")) {
		return fmt.Errorf("%s has no misses and no report of them: give a directory that sluice eval failures --out wrote", misses)
	}
	for _, file := range files {
		cases, err := readLines[[]Miss](file)
		if err != nil {
			return fmt.Errorf("%w: give a directory that sluice eval failures --out wrote", err)
		}
		for _, m := range slices.Concat(cases...) {
			a.Bad = append(a.Bad, BadCase{Place: Place{m.Layer, string(m.Stage)}, Name: m.Case + ", " + m.Strategy})
		}
	}
	return nil
}

func isFailuresReport(file string) bool {
	text, err := os.ReadFile(file)
	return err == nil && bytes.HasPrefix(text, []byte(failuresTitle))
}

func (a Axes) badCounts() map[Place]int {
	counts := map[Place]int{}
	for _, b := range a.Bad {
		counts[b.Place]++
	}
	return counts
}

// layerOrder is that in which an item passes them.
var layerOrder = []Layer{LayerAccess, LayerElement, LayerStructure, LayerIndex, LayerOutcome}

func (a Axes) writeBad(b *strings.Builder) {
	if a.NoMisses {
		b.WriteString("\nNo item of evidence was missed.\n")
	}
	if len(a.Bad) == 0 {
		return
	}
	fmt.Fprintf(b, "\n## Bad cases\n\nParts of files below %g, and items that a strategy missed.\n\n| Layer | Bucket | Cases | The worst, or first |\n|%s\n", poor, strings.Repeat(" --- |", 4))
	counts := a.badCounts()
	places := slices.SortedFunc(maps.Keys(counts), func(x, y Place) int {
		return cmp.Or(cmp.Compare(slices.Index(layerOrder, x.Layer), slices.Index(layerOrder, y.Layer)), cmp.Compare(x.Bucket, y.Bucket))
	})
	for _, place := range places {
		in := slices.DeleteFunc(slices.Clone(a.Bad), func(c BadCase) bool { return c.Place != place })
		worst := slices.MinFunc(in, func(x, y BadCase) int { return cmp.Or(cmp.Compare(x.Score, y.Score), cmp.Compare(x.Name, y.Name)) })
		fmt.Fprintf(b, "| %s | %s | %d | %s |\n", place.Layer, place.Bucket, counts[place], worst.Name)
	}
}

// writeBadFiles writes FILE.json for every file that is read badly: its
// regression file. Misses have theirs already.
func (a Axes) writeBadFiles(dir string) error {
	byFile := map[string][]BadCase{}
	for _, b := range a.Bad {
		if b.Fault != nil || b.Error != "" {
			byFile[b.Name] = append(byFile[b.Name], b)
		}
	}
	if dir == "" || len(byFile) == 0 {
		return nil
	}
	var d directory
	for name, cases := range byFile {
		d.addJSON(url.PathEscape(name)+".json", cases)
	}
	return d.write(filepath.Join(dir, "bad"))
}
