package main

import (
	"fmt"
	"os"
	"runtime"

	"sluice/kernels/simd"
)

type versionCommand struct {
	JSON bool `name:"json" help:"Write it as JSON."`
}

// Run says what a report of a fault has to say.
func (c versionCommand) Run() error {
	v := struct {
		Commit   string `json:"commit"`
		Go       string `json:"go"`
		Platform string `json:"platform"`
		Kernels  string `json:"kernels"`
	}{commit, runtime.Version(), runtime.GOOS + "/" + runtime.GOARCH, simd.Best().Level}
	if c.JSON {
		return printJSON(os.Stdout, v)
	}
	_, err := fmt.Printf("sluice   %s\ngo       %s %s\nkernels  %s\n", v.Commit, v.Go, v.Platform, v.Kernels)
	return err
}
