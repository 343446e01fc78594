package chunk

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"sluice/document"
)

// hostile are texts made to be slow or deep. An algorithm that is quadratic in
// one of them, or recursive in its depth, does not get through the test.
func hostile(n int) map[string]map[string]string {
	of := func(s string) string { return strings.Repeat(s, n/len(s)+1) }
	half := func(s string) string { return strings.Repeat(s, n/len(s)/2+1) }
	markdown := map[string]string{
		"brackets": of("["), "stars": of("*a "), "backticks": of("`"), "entities": of("&amp;"), "escapes": of("\\"),
		"quotes": of("> "), "quote lines": of(strings.Repeat("> ", 200) + "a\n"), "lazy lines": strings.Repeat("> ", 60) + "a\n" + of("b\n"),
		"lists": of("- "), "lists, then blank lines": half("- ") + half("\n"), "open lists over blank lines": strings.Repeat("- ", 64) + "a" + of("\n") + "  b",
		"mixed containers": of("> - 1. > a\n"), "short items": of("- a\n"), "short paragraphs": of("a\n\n"), "short lines": of("a\n"),
		"headings": of("# *a*\n"), "underlines": of("a\n=\n"), "long underlined": half("a\n") + "===", "hashes": of("#"),
		"wide table": "|" + half("a|") + "\n|" + half("-|") + "\n" + half("|\n"), "delimiter rows": of("-:\n"), "small tables": of("|a|\n|-|\n\n"),
		"fences": of("```\n"), "changing fences": of("````` ~~~\n"), "long fence": "```\n" + of("a b\n"),
		"tags": of("<a "), "tag lines": of("<a\n"), "one tag": "<a " + of("b='c' "), "comments": of("<!--\n"),
		"tabs": of("\ta"), "spaces": "a" + of(" ") + "b", "flow YAML": "---\na: " + of("[") + "\n---\n",
	}
	html := map[string]string{
		"divs": of("<div>a"), "lists": of("<ul><li>a"), "lists without items": of("<ul>a"), "quotes": of("<blockquote>a"),
		"end tags for nothing": of("</ul>"), "item ends in quotes": half("<ul><blockquote>") + half("</li>"),
		"formatting": of("<b>a<p>"), "attributes": "<a " + of("b=c ") + ">", "hidden": of("<div hidden>"), "styles": of("<p style='a  b'>"),
		"tables": of("<table><tr><td>"), "cells": "<table>" + of("<td>"), "rows": "<table>" + of("<tr><td>a"),
		"headings": of("<h1>a"), "divs in a heading": "<h1>" + of("<div>a"), "pre": of("<pre>a"), "breaks": of("<br>"),
		"less than": of("<"), "comments": of("<!--"), "ampersands": of("&#"), "scripts": of("<script></scrip"), "titles": of("<title>"),
	}
	text := map[string]string{
		"one word": of("x"), "one line": of("word "), "dots": of(". "), "quoted dots": of(".)\""), "initials": of("A. "),
		"CJK": of("日。"), "marks": of("a\u0301"), "symbols": of("☃"), "wide spaces": of("a\u3000"), "short paragraphs": of("a\n\n"),
	}
	for name, s := range text {
		markdown[name] = s
	}
	return map[string]map[string]string{"markdown": markdown, "html": html, "text": text}
}

func TestHostileInput(t *testing.T) {
	for format, texts := range hostile(256 << 10) {
		for name, s := range texts {
			t.Run(format+"/"+name, func(t *testing.T) {
				doc, chunks := parseAndChunk(t, format, s)
				require.NoError(t, document.Check(doc))
				require.NoError(t, check(doc, chunks))
			})
		}
	}
}

// TestOneLongLine parses one line of 4 MB, or of 50 MB with SLUICE_LARGE=1.
func TestOneLongLine(t *testing.T) {
	n := 4_000_000
	if os.Getenv("SLUICE_LARGE") == "1" {
		n = 50_000_000
	}
	for _, unit := range []string{"word and another, ", "x", "[", "- ", "> ", "<a ", "|a", "日本"} {
		for _, format := range own {
			t.Run(fmt.Sprintf("%s/%q", format, unit), func(t *testing.T) {
				doc, chunks := parseAndChunk(t, format, strings.Repeat(unit, n/len(unit)))
				require.NoError(t, document.Check(doc))
				require.NoError(t, check(doc, chunks))
			})
		}
	}
}

func TestTooManyBlocks(t *testing.T) {
	for format, unit := range map[string]string{"markdown": "a\n\n", "html": "<p>a", "text": "a\n\n"} {
		_, err := document.Parse(format, []byte(strings.Repeat(unit, 1<<20+1000)))
		require.ErrorIs(t, err, document.ErrTooManyBlocks, format)
	}
}
