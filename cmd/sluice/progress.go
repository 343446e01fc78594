package main

import (
	"fmt"
	"io/fs"
	"os"

	"github.com/schollz/progressbar/v3"
)

// progress is a bar on standard error; where that is no terminal, none.
func progress(total int64, what string) *progressbar.ProgressBar {
	if !onTerminal(os.Stderr) {
		return progressbar.DefaultSilent(total, what)
	}
	return progressbar.Default(total, what)
}

// byteProgress is the same for bytes, which take long enough to be announced.
func byteProgress(total int64, what string) *progressbar.ProgressBar {
	if !onTerminal(os.Stderr) {
		fmt.Fprintln(os.Stderr, what)
		return progressbar.DefaultBytesSilent(total, what)
	}
	return progressbar.DefaultBytes(total, what)
}

func onTerminal(f *os.File) bool {
	info, err := f.Stat()
	return err == nil && info.Mode()&fs.ModeCharDevice != 0
}
