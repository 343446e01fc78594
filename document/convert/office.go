package convert

import (
	"archive/zip"
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sync/semaphore"

	"sluice/document"
)

// ErrNoOffice means that the program which prints office files is missing.
var ErrNoOffice = errors.New("office files are read by LibreOffice, which this machine lacks: install it, so that soffice is on the daemon's PATH, or send PDF")

var officeFormats = []string{"docx", "pptx", "xlsx"}

const (
	maxUnpacked = 1 << 30 // bytes that an office file may unpack to
	maxPrinted  = 256 << 20
	printTime   = 3 * time.Minute
)

// office prints office files to PDF, one at a time: each run takes a core and
// hundreds of megabytes.
type office struct {
	program string // "": missing
	turn    *semaphore.Weighted
}

func newOffice() *office {
	program, _ := exec.LookPath("soffice")
	return &office{program, semaphore.NewWeighted(1)}
}

// print returns the file as PDF.
func (o *office) print(ctx context.Context, format string, raw []byte) ([]byte, error) {
	if err := checkPacked(raw); err != nil {
		return nil, err
	}
	if o.program == "" {
		return nil, ErrNoOffice
	}
	ctx, cancel := context.WithTimeout(ctx, printTime)
	defer cancel()
	if err := o.turn.Acquire(ctx, 1); err != nil {
		return nil, err
	}
	defer o.turn.Release(1)
	dir, err := os.MkdirTemp("", "sluice-office-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	return o.run(ctx, dir, "document."+format, raw)
}

// run prints in a directory, with a profile of its own: macros and settings of a
// user are none of a document's.
func (o *office) run(ctx context.Context, dir, name string, raw []byte) ([]byte, error) {
	source := filepath.Join(dir, name)
	if err := os.WriteFile(source, raw, 0o600); err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, o.program, "-env:UserInstallation=file://"+filepath.Join(dir, "profile"),
		"--headless", "--norestore", "--convert-to", "pdf", "--outdir", dir, source)
	cmd.WaitDelay = 5 * time.Second
	said, err := cmd.CombinedOutput()
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	printed := strings.TrimSuffix(source, filepath.Ext(source)) + ".pdf"
	info, statErr := os.Stat(printed)
	switch {
	case err != nil || statErr != nil:
		return nil, fmt.Errorf("%w: LibreOffice does not print it: %.200s", document.ErrMalformed, bytes.TrimSpace(said))
	case info.Size() > maxPrinted:
		return nil, fmt.Errorf("%w: it prints to more than %d MiB", document.ErrMalformed, maxPrinted>>20)
	}
	return os.ReadFile(printed)
}

// checkPacked refuses what is no zip archive, as an encrypted file is none, and
// what unpacks to too much.
func checkPacked(raw []byte) error {
	archive, err := zip.NewReader(bytes.NewReader(raw), int64(len(raw)))
	if err != nil {
		return fmt.Errorf("%w: it is encrypted, or no office file of this kind", document.ErrMalformed)
	}
	var size uint64
	for _, f := range archive.File {
		if size += min(f.UncompressedSize64, maxUnpacked+1); size > maxUnpacked {
			return fmt.Errorf("%w: it unpacks to more than %d MiB", document.ErrMalformed, maxUnpacked>>20)
		}
	}
	return nil
}
