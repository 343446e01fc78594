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
	tail    = 64 << 10             // bytes at the end of a file that are read first for the last record
)

// file is what an open log file can do.
type file interface {
	io.Writer
	Sync() error
	Close() error
}

// disk is what changes the directory of a log.
type disk interface {
	Append(path string) (file, error) // opens it for appending, and creates it if there is none
	Rename(from, to string) error
	SyncDir(path string) error
}

// system is the operating system's.
type system struct{}

func (system) Append(path string) (file, error) {
	return os.OpenFile(path, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
}

func (system) Rename(from, to string) error { return os.Rename(from, to) }

func (system) SyncDir(path string) error {
	d, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// files is the present file of a log and those that were rotated away. Only
// the writer uses it. After a failure the file is closed, and read before it is
// opened again: only it knows what a failed write has left there.
type files struct {
	options  Options
	file     file // nil after a failure
	size     int64
	sequence uint64 // of the last record; none has a lower or the same one later
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
	return f, f.open()
}

func (f *files) path(name string) string { return filepath.Join(f.options.Directory, name) }

// open opens the present file, to go on where it ends.
func (f *files) open() error {
	if err := f.resume(); err != nil {
		return err
	}
	opened, err := f.options.disk.Append(f.path(present))
	if err != nil {
		return err
	}
	if err := f.options.disk.SyncDir(f.options.Directory); err != nil {
		return errors.Join(err, opened.Close())
	}
	f.file = opened
	return nil
}

// resume reads from the end of the present file where to go on.
func (f *files) resume() error {
	f.size, f.torn = 0, false
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
	for length := int64(tail); ; length *= 2 { // until it has a record, or is the whole file
		end := make([]byte, min(length, f.size))
		if _, err := in.ReadAt(end, f.size-int64(len(end))); err != nil {
			return err
		}
		f.torn = len(end) > 0 && end[len(end)-1] != '\n'
		if last, found := lastSequence(end); found || length >= f.size {
			f.sequence = max(f.sequence, last)
			return nil
		}
	}
}

// lastSequence is the greatest number of the records in the text.
func lastSequence(text []byte) (last uint64, found bool) {
	for line := range bytes.Lines(text) {
		var r Record
		if json.Unmarshal(line, &r) == nil {
			last, found = max(last, r.Sequence), true
		}
	}
	return last, found
}

// append writes so many lines to a file that has room for them, numbered from the
// next number on. It returns how many of them are in the file, also with an error.
func (f *files) append(lines []byte, count int) (written int, err error) {
	if err := f.makeRoom(int64(len(lines))); err != nil {
		return 0, err
	}
	before := f.sequence
	if f.torn {
		lines = slices.Concat([]byte("\n"), lines)
	}
	f.unsynced = true
	n, err := f.file.Write(lines)
	if err != nil {
		err = errors.Join(err, f.closeFile(), f.resume())
		return int(f.sequence - before), err
	}
	f.size, f.sequence, f.torn = f.size+int64(n), before+uint64(count), false
	return count, nil
}

// makeRoom opens the present file, and begins another one if it would become too large.
func (f *files) makeRoom(bytes int64) error {
	if f.file == nil {
		if err := f.open(); err != nil {
			return err
		}
	}
	if f.size > 0 && f.size+bytes > f.options.FileBytes {
		return f.rotate()
	}
	return nil
}

// rotate moves the present file away, synced, and begins another.
func (f *files) rotate() error {
	to := f.path(fmt.Sprintf(rotated, f.sequence))
	if _, err := os.Lstat(to); !errors.Is(err, fs.ErrNotExist) {
		return err // nil: only failed writes are in the present file, and nothing is to be overwritten
	}
	if err := f.closeFile(); err != nil {
		return err
	}
	if err := f.options.disk.Rename(f.path(present), to); err != nil {
		return err
	}
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
