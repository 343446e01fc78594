package main

import (
	"fmt"
	"io/fs"
	"os"
	"time"

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

// watchLoad shows how a load goes on, in a line of standard error that does not
// stay; nil where that is no terminal.
func watchLoad() func(what string, answered int, since time.Duration) {
	if !onTerminal(os.Stderr) {
		return nil
	}
	return func(what string, answered int, since time.Duration) {
		fmt.Fprintf(os.Stderr, "\r\x1b[K%s: %.0f requests/s, %.1f s\r", what, float64(answered)/since.Seconds(), since.Seconds())
	}
}

func onTerminal(f *os.File) bool {
	info, err := f.Stat()
	return err == nil && info.Mode()&fs.ModeCharDevice != 0
}
