// Package sluice holds the tests of the tree as a whole.
package sluice

import (
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// floors of the house: a package imports rooms of lower floors only; its tests
// those of its own as well.
var floors = map[string]int{
	"cmd":    4,
	"server": 3, "bench": 3, "eval": 3,
	"retrieve": 2, "ingest": 2, "client": 2,
	"index": 1, "store": 1, "gpu": 1, "chunk": 1,
	"filter": 0, "model": 0, "kernels": 0, "document": 0, "trace": 0, "statistics": 0, "needs": 0,
}

// neighbours are imports on one floor that are meant to be: a store keeps
// chunks, an evaluation writes the figures file of bench, tests need models.
var neighbours = map[string]string{"store": "chunk", "eval": "bench", "needs": "model"}

type listed struct {
	ImportPath                         string
	Imports, TestImports, XTestImports []string
}

func TestImportsPointDownwards(t *testing.T) {
	packages := list(t)
	if len(packages) < 15 {
		t.Fatalf("only %d packages listed; is the list broken?", len(packages))
	}
	for _, p := range packages {
		for _, imported := range p.Imports {
			checkImport(t, p.ImportPath, imported, 1)
		}
		for _, imported := range slices.Concat(p.TestImports, p.XTestImports) {
			checkImport(t, p.ImportPath, imported, 0)
		}
	}
}

// checkImport: the imported room is so many floors below, at least.
func checkImport(t *testing.T, path, imported string, least int) {
	t.Helper()
	from, to := room(path), room(imported)
	if to != "" && from != to && neighbours[from] != to && floor(t, from)-floor(t, to) < least {
		t.Errorf("%s imports %s: %s may not use %s", path, imported, from, to)
	}
}

func list(t *testing.T) []listed {
	t.Helper()
	out, err := exec.Command("go", "list", "-json", "./...").Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	var packages []listed
	for decoder := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p listed
		if err := decoder.Decode(&p); errors.Is(err, io.EOF) {
			return packages
		} else if err != nil {
			t.Fatal(err)
		}
		if p.ImportPath != "sluice" {
			packages = append(packages, p)
		}
	}
}

// room is the top folder of a package of this module, "" for others.
func room(path string) string {
	below, ours := strings.CutPrefix(path, "sluice/")
	if !ours {
		return ""
	}
	top, _, _ := strings.Cut(below, "/")
	return top
}

func floor(t *testing.T, room string) int {
	t.Helper()
	f, known := floors[room]
	if !known {
		t.Fatalf("room %q has no floor: add it to the map, below everything that uses it", room)
	}
	return f
}
