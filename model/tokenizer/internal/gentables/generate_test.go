package main

import (
	"bytes"
	"os"
	"testing"
)

func TestTablesAreCurrent(t *testing.T) {
	want, err := generate("../../testdata/codepoint_sweeps.json.gz", "../../testdata/combining_classes.json")
	if err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile("../../tables.go")
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Fatal("tables.go is not what gentables writes; run go generate ./model/tokenizer")
	}
}
