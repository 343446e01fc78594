package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// named is what stands for a value in the commands of the docs.
var named = map[string]string{"F": "f.json", "P": "int8", "S": "dev", "B": "8", "DIR": ".", "D": ".", "DATASET": ".", "RUN": ".", "ANSWERS": ".", "KEPS": ".", "R": "0.5", "TEXTS": ".", "…": "."}

var (
	span    = regexp.MustCompile("`([^`]+)`")
	envVars = regexp.MustCompile(`^([A-Z_]+=\S+ )+`)
)

// commandsIn are the commands that a document names, each as its words.
func commandsIn(t *testing.T, document string) (all [][]string) {
	t.Helper()
	text, err := os.ReadFile(document)
	require.NoError(t, err)
	for _, m := range span.FindAllStringSubmatch(string(text), -1) {
		command := strings.ReplaceAll(envVars.ReplaceAllString(m[1], ""), `\|`, "|") // in a table
		words := strings.Fields(strings.ReplaceAll(command, "'", ""))
		if len(words) > 1 && slices.Contains([]string{"sluice", "go", "make"}, filepath.Base(words[0])) {
			all = append(all, words)
		}
	}
	return all
}

// Every command that docs/measured.md and the README print figures by exists:
// its flags are accepted, its tests and benchmarks are there.
func TestCommandsOfTheDocs(t *testing.T) {
	t.Chdir("../..")
	commands := commandsIn(t, "docs/measured.md")
	require.Greater(t, len(commands), 40)
	for _, words := range append(commands, commandsIn(t, "README.md")...) {
		name := strings.Join(words, " ")
		switch {
		case words[0] == "make":
			makefile, err := os.ReadFile("Makefile")
			require.NoError(t, err)
			require.Contains(t, string(makefile), "\n"+words[1]+":", name)
		case words[1] == "test":
			requireTests(t, name, words[2:])
		case words[1] == "bench" || words[1] == "eval":
			_, err := newParser(t.Context()).Parse(withValues(words[1:]))
			require.NoError(t, err, name)
		}
	}
}

func withValues(words []string) (values []string) {
	for _, w := range words {
		parts := strings.Split(w, ",")
		for i, p := range parts {
			parts[i] = valueOf(p)
		}
		values = append(values, strings.Join(parts, ","))
	}
	return values
}

func valueOf(word string) string {
	if value, known := named[word]; known {
		return value
	}
	if strings.HasPrefix(word, "$SLUICE_DATA") || strings.HasPrefix(word, "CHECKOUT/") { // data that may not be here
		return "."
	}
	return word
}

// requireTests looks for what -run or else -bench names in the packages.
func requireTests(t *testing.T, command string, args []string) {
	t.Helper()
	var packages []string
	pattern, kinds := ".", []string{"Test", "Fuzz", "Example"}
	for i, arg := range args {
		switch {
		case strings.HasPrefix(arg, "./"):
			packages = append(packages, arg)
		case arg == "-bench":
			pattern, kinds = args[i+1], []string{"Benchmark"}
		case arg == "-run" && !slices.Contains(args, "-bench"):
			pattern = args[i+1]
		}
	}
	wanted := regexp.MustCompile(strings.Split(pattern, "/")[0])
	require.NotEmpty(t, packages, command)
	for _, dir := range packages {
		found := slices.ContainsFunc(testsIn(t, dir), func(name string) bool {
			return slices.ContainsFunc(kinds, func(kind string) bool { return strings.HasPrefix(name, kind) }) && wanted.MatchString(name)
		})
		require.True(t, found, "%s: %s has no such test", command, dir)
	}
}

func testsIn(t *testing.T, dir string) (names []string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*_test.go"))
	require.NoError(t, err)
	for _, path := range files {
		f, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		require.NoError(t, err)
		for _, d := range f.Decls {
			if function, ok := d.(*ast.FuncDecl); ok && function.Recv == nil {
				names = append(names, function.Name.Name)
			}
		}
	}
	return names
}

// quick are headings of docs/measured.md whose first command takes seconds, and
// what makes it shorter still.
var quick = map[string][]string{
	"The load generator": {"--connections", "1,4", "--rounds", "2", "--turn", "250ms"},
	"Who may read what":  {"--documents", "2000", "--classes", "200", "--rounds", "2"},
}

// The figures of those sections are what their commands print.
func TestQuickFiguresOfTheDocs(t *testing.T) {
	text, err := os.ReadFile("../../docs/measured.md")
	require.NoError(t, err)
	for heading, shorter := range quick {
		_, section, found := strings.Cut(string(text), "\n## "+heading)
		require.True(t, found, heading)
		section, _, _ = strings.Cut(section, "\n## ")
		path := filepath.Join(t.TempDir(), "figures.json")
		var printed map[string]float64
		names := 0
		for _, m := range span.FindAllStringSubmatch(section, -1) {
			words := strings.Fields(m[1])
			if printed == nil {
				args := slices.DeleteFunc(withValues(words[1:]), func(w string) bool { return w == "--json" || w == "f.json" })
				r := sluice(t, append(append(args, shorter...), "--json", path)...)
				require.Zero(t, r.code, "%s: %s", m[1], r)
				printed = readFigures(t, path)
				continue
			}
			if len(words) == 1 && strings.ContainsAny(m[1], "._") && !strings.ContainsAny(m[1], "/()") {
				names++
				require.Contains(t, printed, m[1], heading)
			}
		}
		require.Positive(t, names, heading)
	}
}

// documented are the first numbers in the cells of a table's row, by its heading
// and first cell, as docs/measured.md has them.
func documented(t *testing.T, heading, row string) (cells []float64) {
	t.Helper()
	text, err := os.ReadFile("../../docs/measured.md")
	require.NoError(t, err)
	_, section, found := strings.Cut(string(text), "\n## "+heading)
	require.True(t, found, heading)
	section, _, _ = strings.Cut(section, "\n## ")
	_, line, found := strings.Cut(section, "\n| "+row)
	require.True(t, found, row)
	line, _, _ = strings.Cut(line, "\n")
	number := regexp.MustCompile(`\d*\.?\d+`)
	for _, cell := range strings.Split(line, "|")[1:] {
		if n := number.FindString(cell); n != "" {
			value, err := strconv.ParseFloat(n, 64)
			require.NoError(t, err)
			cells = append(cells, value)
		}
	}
	return cells
}
