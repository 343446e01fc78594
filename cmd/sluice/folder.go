package main

import (
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"sluice/client"
)

const maxFileBytes = 64 << 20 // the daemon's own limit may be lower and is named by it

// formats by file name extension.
var formats = map[string]string{
	".md": "markdown", ".markdown": "markdown",
	".html": "html", ".htm": "html",
	".txt": "text",
	".pdf": "pdf", ".docx": "docx", ".pptx": "pptx", ".xlsx": "xlsx",
	".docling.json": "docling",
}

// unsent is a file that is not sent, and why.
type unsent struct {
	path   string
	reason string
}

// folder is what a directory has to ingest: slash-separated paths below root,
// which are the document keys, in lexical order. What is skipped is no document;
// what is unreadable may be one.
type folder struct {
	root       string
	files      []string
	skipped    []unsent
	unreadable []unsent
}

// readFolder lists a directory. Links in it are not followed: they could point
// outside of what the caller named.
func readFolder(root string) (*folder, error) {
	if info, err := os.Stat(root); err == nil && info.IsDir() {
		if root, err = filepath.EvalSymlinks(root); err != nil {
			return nil, err
		}
	}
	f := &folder{root: root}
	err := filepath.WalkDir(root, func(file string, entry fs.DirEntry, err error) error {
		switch {
		case err == nil:
			return f.visit(file, entry)
		case file == root:
			return err
		}
		f.unread(f.key(file), err)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("listing %s: %w", root, err)
	}
	if len(f.files)+len(f.skipped)+len(f.unreadable) == 0 {
		return nil, fmt.Errorf("%s has no files", root)
	}
	return f, nil
}

func (f *folder) visit(file string, entry fs.DirEntry) error {
	if file != f.root && strings.HasPrefix(entry.Name(), ".") {
		f.skip(file, "hidden")
		if entry.IsDir() {
			return fs.SkipDir
		}
		return nil
	}
	if entry.IsDir() {
		return nil
	}
	switch reason, err := unfit(entry); {
	case err != nil:
		f.unread(f.key(file), err)
	case reason != "":
		f.skip(file, reason)
	default:
		f.files = append(f.files, f.key(file))
	}
	return nil
}

// unfit says why a file cannot be a document, "" if it can.
func unfit(entry fs.DirEntry) (string, error) {
	if !entry.Type().IsRegular() {
		return "not a regular file", nil
	}
	if formats[extension(entry.Name())] == "" {
		return fmt.Sprintf("not Markdown, HTML, text, PDF, an office file or .docling.json (%q)", path.Ext(entry.Name())), nil
	}
	info, err := entry.Info()
	if err != nil {
		return "", err
	}
	switch {
	case info.Size() == 0:
		return "empty", nil
	case info.Size() > maxFileBytes:
		return fmt.Sprintf("larger than %d MiB", maxFileBytes>>20), nil
	}
	return "", nil
}

// extension is the last ending of a name, or the last two of .docling.json.
func extension(name string) string {
	name = strings.ToLower(name)
	if strings.HasSuffix(name, ".docling.json") {
		return ".docling.json"
	}
	return path.Ext(name)
}

func (f *folder) skip(file, reason string) {
	f.skipped = append(f.skipped, unsent{f.key(file), reason})
}

func (f *folder) unread(key string, err error) {
	f.unreadable = append(f.unreadable, unsent{key, err.Error()})
}

func (f *folder) key(file string) string {
	below, err := filepath.Rel(f.root, file)
	if err != nil || below == "." { // the root itself is a file
		below = filepath.Base(file)
	}
	return filepath.ToSlash(below)
}

// documents yields what the files hold; one that cannot be read is noted.
func (f *folder) documents() iter.Seq2[client.Document, error] {
	return func(yield func(client.Document, error) bool) {
		for _, key := range f.files {
			d, err := f.document(key)
			if err != nil {
				f.unread(key, err)
				continue
			}
			if !yield(d, nil) {
				return
			}
		}
	}
}

// document reads one file.
func (f *folder) document(key string) (client.Document, error) {
	text, err := f.read(key)
	switch {
	case err != nil:
		return client.Document{}, err
	case !utf8.ValidString(key): // JSON would have other characters in the place of the bad bytes
		return client.Document{}, errors.New("its name is not valid UTF-8")
	}
	d := client.Document{Key: key, Format: formats[extension(key)]}
	switch {
	case isBinary(d.Format):
		d.Data = text
	case !utf8.Valid(text):
		return client.Document{}, errors.New("it is not valid UTF-8; convert it, as with iconv")
	default:
		d.Text = string(text)
	}
	return d, nil
}

// isBinary says whether a format is sent as bytes.
func isBinary(format string) bool {
	return format == "pdf" || format == "docx" || format == "pptx" || format == "xlsx"
}

// read does not leave the folder: since it was listed, a file may have become a
// link to somewhere else.
func (f *folder) read(key string) ([]byte, error) {
	dir := f.root
	if info, err := os.Stat(f.root); err == nil && !info.IsDir() {
		dir = filepath.Dir(f.root)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	return root.ReadFile(filepath.FromSlash(key))
}

// reasons counts the skipped files by reason, in lexical order, and names some.
func (f *folder) reasons() []string {
	paths := map[string][]string{}
	for _, s := range f.skipped {
		paths[s.reason] = append(paths[s.reason], s.path)
	}
	var lines []string
	for reason, skipped := range paths {
		lines = append(lines, fmt.Sprintf("%d skipped: %s: %s", len(skipped), reason, some(skipped)))
	}
	slices.Sort(lines)
	return lines
}
