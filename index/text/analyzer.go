// Package text turns text into the terms of the lexical leg.
package text

import (
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/blevesearch/bleve/v2/analysis"
	"github.com/blevesearch/bleve/v2/analysis/analyzer/standard"
	"github.com/blevesearch/bleve/v2/analysis/lang/cjk"
	"github.com/blevesearch/bleve/v2/analysis/lang/da"
	"github.com/blevesearch/bleve/v2/analysis/lang/de"
	"github.com/blevesearch/bleve/v2/analysis/lang/en"
	"github.com/blevesearch/bleve/v2/analysis/lang/es"
	"github.com/blevesearch/bleve/v2/analysis/lang/fi"
	"github.com/blevesearch/bleve/v2/analysis/lang/fr"
	"github.com/blevesearch/bleve/v2/analysis/lang/it"
	"github.com/blevesearch/bleve/v2/analysis/lang/nl"
	"github.com/blevesearch/bleve/v2/analysis/lang/no"
	"github.com/blevesearch/bleve/v2/analysis/lang/pt"
	"github.com/blevesearch/bleve/v2/analysis/lang/ru"
	"github.com/blevesearch/bleve/v2/analysis/lang/sv"
	"github.com/blevesearch/bleve/v2/registry"
)

// Default is the analyzer of collections that name none.
const Default = "english"

// MaxTermBytes bounds a term. Longer ones are cut: two that agree so far are one term.
const MaxTermBytes = 255

// version grows when the same text may give other terms (an upgrade of the
// analysis packages): indexes made before are then rebuilt.
const version = 1

// registered maps our names to those of bleve's registry.
var registered = map[string]string{
	"english":    en.AnalyzerName,
	"standard":   standard.Name,
	"cjk":        cjk.AnalyzerName,
	"danish":     da.AnalyzerName,
	"dutch":      nl.AnalyzerName,
	"finnish":    fi.AnalyzerName,
	"french":     fr.AnalyzerName,
	"german":     de.AnalyzerName,
	"italian":    it.AnalyzerName,
	"norwegian":  no.AnalyzerName,
	"portuguese": pt.AnalyzerName,
	"russian":    ru.AnalyzerName,
	"spanish":    es.AnalyzerName,
	"swedish":    sv.AnalyzerName,
}

// Analyzer splits text into terms: words in lower case, without stop words,
// stemmed. "standard" does not stem; "cjk" gives bigrams of ideographs.
// It is safe for concurrent use.
type Analyzer struct {
	name  string
	chain analysis.Analyzer
}

// New returns the analyzer of that name ("": Default).
func New(name string) (Analyzer, error) {
	if name == "" {
		name = Default
	}
	bleve, ok := registered[name]
	if !ok {
		return Analyzer{}, fmt.Errorf("unknown analyzer %q: choose one of %s", name, strings.Join(Names(), ", "))
	}
	chain, err := registry.NewCache().AnalyzerNamed(bleve)
	if err != nil {
		return Analyzer{}, fmt.Errorf("building analyzer %q: %w", name, err)
	}
	return Analyzer{name, chain}, nil
}

// Names lists the analyzers, sorted.
func Names() []string { return slices.Sorted(maps.Keys(registered)) }

// Identity names the analyzer and its version, e.g. "english/1". Terms of
// different identities do not belong in one index.
func (a Analyzer) Identity() string { return fmt.Sprintf("%s/%d", a.name, version) }

// Terms yields the terms of the text in order, duplicates included. A term is
// valid only until the next. Bytes that are not UTF-8 count as U+FFFD.
func (a Analyzer) Terms(text string) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		// bleve's own lowering breaks letters that grow shorter, such as İ; it finds none left.
		lower := strings.ToLower(strings.ToValidUTF8(text, "\uFFFD"))
		for _, token := range a.chain.Analyze([]byte(lower)) {
			if len(token.Term) > 0 && !yield(cut(token.Term)) {
				return
			}
		}
	}
}

// cut shortens a term to MaxTermBytes without breaking a character.
func cut(term []byte) []byte {
	if len(term) <= MaxTermBytes {
		return term
	}
	end := MaxTermBytes
	for end > 0 && !utf8.RuneStart(term[end]) {
		end--
	}
	return term[:end]
}
