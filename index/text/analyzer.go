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
	"github.com/blevesearch/bleve/v2/analysis/token/lowercase"
	"github.com/blevesearch/bleve/v2/analysis/tokenizer/unicode"
	"github.com/blevesearch/bleve/v2/registry"
)

// Default is the analyzer of collections that name none.
const Default = "english"

// MaxTermBytes bounds a term. Longer ones are cut: two that agree so far are one term.
const MaxTermBytes = 255

// version grows when the same text may give other terms (an upgrade of the
// analysis packages): indexes made before are then rebuilt.
const version = 2

// registered maps our names to those of bleve's registry.
var registered = map[string]string{
	"english":    en.AnalyzerName,
	"standard":   standard.Name,
	"cjk":        widthOnly,
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

// widthOnly is the one analyzer that is not bleve's own: no stop words, no
// stems, full-width letters and half-width kana folded.
const widthOnly = "width"

// Analyzer splits text into terms: words in lower case, without stop words,
// stemmed. "standard" and "cjk" do not stem. Ideographs and kana, whatever the
// analyzer, give overlapping bigrams: the script decides, token by token.
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
	chain, err := newChain(bleve)
	if err != nil {
		return Analyzer{}, fmt.Errorf("building analyzer %q: %w", name, err)
	}
	return Analyzer{name, chain}, nil
}

func newChain(name string) (analysis.Analyzer, error) {
	cache := registry.NewCache()
	if name != widthOnly {
		return cache.AnalyzerNamed(name)
	}
	tokenizer, err := cache.TokenizerNamed(unicode.Name)
	if err != nil {
		return nil, err
	}
	chain := analysis.DefaultAnalyzer{Tokenizer: tokenizer}
	for _, name := range []string{cjk.WidthName, lowercase.Name} {
		filter, err := cache.TokenFilterNamed(name)
		if err != nil {
			return nil, err
		}
		chain.TokenFilters = append(chain.TokenFilters, filter)
	}
	return &chain, nil
}

// Names lists the analyzers, sorted.
func Names() []string { return slices.Sorted(maps.Keys(registered)) }

// Identity names the analyzer and its version, e.g. "english/2". Terms of
// different identities do not belong in one index.
func (a Analyzer) Identity() string { return fmt.Sprintf("%s/%d", a.name, version) }

// Terms yields the terms of the text in order, duplicates included. A term is
// valid only until the next. Bytes that are not UTF-8 count as U+FFFD.
func (a Analyzer) Terms(text string) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		for _, term := range a.Places(text) {
			if !yield(term) {
				return
			}
		}
	}
}

// Places yields the same terms with their positions, which ascend from 0. A stop
// word leaves a gap, so that terms next to each other in the text differ by one.
func (a Analyzer) Places(text string) iter.Seq2[int, []byte] {
	return func(yield func(int, []byte) bool) {
		// bleve's own lowering breaks letters that grow shorter, such as İ; it finds none left.
		lower := strings.ToLower(strings.ToValidUTF8(text, "\uFFFD"))
		shift := -1 // bleve counts from 1, and knows nothing of bigrams
		for run := range runs(a.chain.Analyze([]byte(lower))) {
			terms := bigrams(run)
			for i, token := range terms {
				if len(token.Term) > 0 && !yield(run[0].Position+shift+i, cut(token.Term)) {
					return
				}
			}
			shift += len(terms) - len(run)
		}
	}
}

// runs yields the tokens in pieces: ideographs that touch each other together,
// any other token alone.
func runs(tokens analysis.TokenStream) iter.Seq[analysis.TokenStream] {
	return func(yield func(analysis.TokenStream) bool) {
		for len(tokens) > 0 {
			n := 1
			for n < len(tokens) && together(tokens[n-1], tokens[n]) {
				n++
			}
			if !yield(tokens[:n]) {
				return
			}
			tokens = tokens[n:]
		}
	}
}

func together(a, b *analysis.Token) bool {
	return a.Type == analysis.Ideographic && b.Type == analysis.Ideographic && a.End == b.Start
}

// bigrams are the terms of one run: two characters each, overlapping, where it
// is of ideographs; one that stands alone is its own term.
func bigrams(run analysis.TokenStream) analysis.TokenStream {
	if run[0].Type != analysis.Ideographic {
		return run
	}
	return cjk.NewCJKBigramFilter(false).Filter(run)
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
