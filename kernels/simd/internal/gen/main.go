// Command gen writes the assembly of the kernels on 8- and 16-bit numbers,
// narrow_amd64.s, and its Go declarations, narrow_amd64.go, in one folder.
package main

import (
	"fmt"
	"os"
	"path/filepath"
)

func main() {
	dir := "."
	if len(os.Args) > 1 {
		dir = os.Args[1]
	}
	for name, text := range generate() {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
}

// generate returns the files' content by name.
func generate() map[string]string {
	f := &file{}
	f.dots()
	f.softConstants()
	f.softDots()
	f.amxDots()
	f.finishes()
	f.norms()
	f.quantizes()
	f.softly(f.exponentials)
	f.packs()
	f.softly(f.rope)
	return map[string]string{"narrow_amd64.s": f.assembly(), "narrow_amd64.go": f.declarations()}
}
