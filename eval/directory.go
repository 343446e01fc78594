package eval

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
)

// runDirectory is run.json, report.md, and the cases of a run, a line each under
// that name.
func runDirectory[T any](r interface{ Markdown() string }, name string, cases []T) *directory {
	d := &directory{}
	d.add("report.md", []byte(r.Markdown()))
	d.addJSON("run.json", r)
	var lines bytes.Buffer
	encoder := json.NewEncoder(&lines)
	for _, c := range cases {
		d.fail(encoder.Encode(c))
	}
	d.add(name, lines.Bytes())
	return d
}

// directory is files on their way. The first error sticks and is what write returns.
type directory struct {
	files map[string][]byte
	err   error
}

func (d *directory) fail(err error) {
	if d.err == nil {
		d.err = err
	}
}

func (d *directory) add(name string, text []byte) {
	if d.files == nil {
		d.files = map[string][]byte{}
	}
	d.files[name] = text
}

// addJSON adds a value as programs and people read it.
func (d *directory) addJSON(name string, value any) {
	text, err := json.MarshalIndent(value, "", "  ")
	d.fail(err)
	d.add(name, append(text, '\n'))
}

// write makes the directory where it is missing. It does nothing where path is "".
func (d *directory) write(path string) error {
	if path == "" {
		return nil
	}
	if d.err == nil {
		d.fail(os.MkdirAll(path, 0o755))
	}
	for name, text := range d.files {
		if d.err != nil {
			break
		}
		d.fail(os.WriteFile(filepath.Join(path, name), text, 0o644))
	}
	if d.err != nil {
		return fmt.Errorf("writing the report: %w", d.err)
	}
	return nil
}
