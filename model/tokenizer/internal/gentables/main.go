// Command gentables writes the tokenizer's Unicode tables as Go source, from
// what the reference library was seen to do with every code point.
package main

import (
	"flag"
	"log"
	"os"
)

func main() {
	sweep := flag.String("sweep", "testdata/codepoint_sweeps.json.gz", "behaviour of every code point")
	classes := flag.String("classes", "testdata/combining_classes.json", "canonical combining classes")
	out := flag.String("out", "tables.go", "Go file to write")
	flag.Parse()
	src, err := generate(*sweep, *classes)
	if err == nil {
		err = os.WriteFile(*out, src, 0o644)
	}
	if err != nil {
		log.Fatal(err)
	}
}
