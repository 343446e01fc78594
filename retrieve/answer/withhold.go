package answer

import (
	"regexp"
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"
)

const withheld = "[withheld]"

// addressed is text that speaks to a language model in place of the reader, or
// tells it what to do.
var addressed = regexp.MustCompile(`(?is)` + strings.Join([]string{
	`\b(ignore|disregard|forget|override|bypass|do not follow)\b.{0,60}\b(instructions?|prompts?|rules?|messages?|guidelines|the above|everything above|all of the above|previous text)\b`,
	`\b(if|as|since|because) you(?: are|'re) (an? |the )?([a-z-]+ ){0,3}(ai|a\.i\.|llm|language model|assistant|chat ?bot|gpt|agent)\b`,
	`\byou are (now )?(an? |the )?([a-z-]+ ){0,3}(ai|llm|language model|assistant|chat ?bot|gpt)\b`,
	`\b(note|message|notice|instructions?|attention|warning|command|reminder)s?\W{1,3}(to|for)\b.{0,30}\b(ai|llms?|language models?|assistants?|chat ?bots?|models?)\b`,
	`\b(system|developer|assistant)[ -]?(prompt|message|note|instruction|override)s?\b\s*[:\-(]?`,
	`\b(ai|llm|language model|assistant)s? (reading|summari[sz]ing|processing|answering)\b`,
	`\b(answer|reply|respond)( to)? (every|all|any|each)\b.{0,20}\b(questions?|prompts?|quer(y|ies)|requests?|messages?)\b`,
	`\b(must|should|shall|will|always|only|please|now) (reply|respond|answer|output|print|say) (with|by|that|only|exactly)\b`,
	`\bcite (this|the following|only this) (passage|source|document|text|section)\b`,
	`<\|?(im_start|im_end|system|user|assistant|endoftext)\|?>|\[/?INST\]|<</?SYS>>`,
}, "|"))

// withhold takes the paragraphs out of a text that address a language model. A
// paragraph is a block between blank lines.
func withhold(text string) string {
	if !addressed.MatchString(plain(text)) {
		return text
	}
	blocks := strings.Split(text, "\n\n")
	for i, block := range blocks {
		if addressed.MatchString(plain(block)) {
			blocks[i] = withheld
		}
	}
	if out := strings.Join(blocks, "\n\n"); !addressed.MatchString(plain(out)) {
		return out
	}
	return withheld // it goes over several paragraphs
}

// plain is the text as it is read: compatibility forms, without what is invisible,
// white space as one space.
func plain(text string) string {
	visible := strings.Map(func(r rune) rune {
		if unicode.Is(unicode.Cf, r) || unicode.Is(unicode.Mn, r) {
			return -1
		}
		return r
	}, norm.NFKD.String(text))
	return strings.Join(strings.Fields(strings.ReplaceAll(visible, "’", "'")), " ")
}
