package milvustest

import (
	"os"
	"os/exec"
	"testing"
)

// A server ends with a process that ends without a word to it.
func TestServerEndsWithItsParent(t *testing.T) {
	const parent = "MILVUSTEST_PARENT"
	if os.Getenv(parent) != "" {
		c := leashed("sleep", "1000")
		c.Stdout = os.Stdout
		if start(c) != nil {
			os.Exit(1)
		}
		os.Exit(0)
	}
	c := exec.Command(os.Args[0], "-test.run", t.Name())
	c.Env = append(os.Environ(), parent+"=1")
	// All who hold the output's pipe must have ended for this to return.
	if out, err := c.Output(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
}
