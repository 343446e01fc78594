package audit

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
)

const (
	present = "audit.ndjson"
	rotated = "audit-%016d.ndjson" // with the number of its last record
	tail    = 64 << 10             // bytes that hold at least the last record
)

// file is what an open log file can do.
type file interface {
	io.Writer
	Sync() error
	Close() error
}

// opener opens a file for appending, and creates it if there is none.
type opener func(path string) (file, error)

func openFile(path string) (file, error) {
	return os.OpenFile(path, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
}

// files is the present file of a log and those that were rotated away. Only
// the writer uses it.
type files struct {
	options  Options
	file     file // nil after a failure to open it
	size     int64
	sequence uint64 // of the last record
	torn     bool   // the last line may lack its end
	unsynced bool
}

func openFiles(o Options) (*files, error) {
	if err := os.MkdirAll(o.Directory, 0o700); err != nil {
		return nil, err
	}
	f := &files{options: o}
	old, err := f.rotated()
	if err != nil {
		return nil, err
	}
	if len(old) > 0 {
		f.sequence, _ = number(old[len(old)-1])
	}
	if err := f.resume(); err != nil {
		return nil, err
	}
	return f, f.open()
}

func (f *files) path(name string) string { return filepath.Join(f.options.Directory, name) }

// resume reads from the end of the present file where to go on.
func (f *files) resume() error {
	in, err := os.Open(f.path(present))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer in.Close()
	info, err := in.Stat()
	if err != nil {
		return err
	}
	f.size = info.Size()
	end := make([]byte, min(tail, f.size))
	if _, err := in.ReadAt(end, f.size-int64(len(end))); err != nil {
		return err
	}
	f.torn = len(end) > 0 && end[len(end)-1] != '\n'
	for line := range bytes.Lines(end) {
		var r Record
		if json.Unmarshal(line, &r) == nil {
			f.sequence = max(f.sequence, r.Sequence)
		}
	}
	return nil
}

func (f *files) open() (err error) {
	if f.file, err = f.options.open(f.path(present)); err != nil {
		f.file = nil
		return err
	}
	return syncDir(f.options.Directory)
}

// append writes whole lines, the last of which has this number, to a file that
// has room for them.
func (f *files) append(lines []byte, sequence uint64) error {
	if f.size > 0 && f.size+int64(len(lines)) > f.options.FileBytes {
		if err := f.rotate(); err != nil {
			return err
		}
	}
	if f.file == nil {
		if err := f.open(); err != nil {
			return err
		}
	}
	if f.torn {
		lines = append([]byte("\n"), lines...)
	}
	n, err := f.file.Write(lines)
	f.size += int64(n)
	f.unsynced = true
	if err != nil {
		f.torn = f.torn || n > 0
		return err
	}
	f.torn, f.sequence = false, sequence
	return nil
}

// rotate moves the present file away, synced, and begins another.
func (f *files) rotate() error {
	if err := f.closeFile(); err != nil {
		return err
	}
	if err := os.Rename(f.path(present), f.path(fmt.Sprintf(rotated, f.sequence))); err != nil {
		return err
	}
	f.size, f.torn = 0, false
	if err := f.prune(); err != nil { // costs room, and nothing else
		f.options.Log.Error("removing old files of the audit log", "error", err)
	}
	return f.open()
}

// prune removes the oldest files that are too many.
func (f *files) prune() error {
	old, err := f.rotated()
	if err != nil || f.options.Files == 0 || len(old) <= f.options.Files {
		return err
	}
	for _, name := range old[:len(old)-f.options.Files] {
		err = errors.Join(err, os.Remove(f.path(name)))
	}
	return err
}

// rotated lists the files that were rotated away, oldest first.
func (f *files) rotated() (names []string, err error) {
	entries, err := os.ReadDir(f.options.Directory)
	for _, entry := range entries {
		if _, ok := number(entry.Name()); ok {
			names = append(names, entry.Name())
		}
	}
	slices.Sort(names)
	return names, err
}

func number(name string) (sequence uint64, ok bool) {
	_, err := fmt.Sscanf(name, rotated, &sequence)
	return sequence, err == nil && name == fmt.Sprintf(rotated, sequence)
}

func (f *files) sync() error {
	if !f.unsynced || f.file == nil {
		return nil
	}
	if err := f.file.Sync(); err != nil {
		return err
	}
	f.unsynced = false
	return nil
}

// closeFile closes the present file, if it is open.
func (f *files) closeFile() error {
	if f.file == nil {
		return nil
	}
	err := errors.Join(f.sync(), f.file.Close())
	f.file = nil
	return err
}

func (f *files) close() {
	if err := f.closeFile(); err != nil {
		f.options.Log.Error("closing the audit log", "error", err)
	}
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
