package fidelity

import (
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Twin is a source file with its golden one.
type Twin struct {
	Source, Format       string
	Golden, GoldenFormat string
}

// Twins finds them in a directory and below: PDF and HTML with Markdown of the
// same name beside them, or in the folder md beside theirs; and DoclingDocument
// JSON, which is its own golden file.
func Twins(dir string) ([]Twin, error) {
	var all []Twin
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		switch ext := strings.ToLower(filepath.Ext(path)); ext {
		case ".pdf", ".html":
			if golden := markdownOf(path); golden != "" {
				all = append(all, Twin{path, ext[1:], golden, "markdown"})
			}
		case ".json":
			head, err := headOf(path)
			if err != nil {
				return err
			}
			if strings.Contains(head, `"DoclingDocument"`) && strings.Contains(head, `"schema_name"`) {
				all = append(all, Twin{path, "docling", path, "docling"})
			}
		}
		return nil
	})
	return all, err
}

func markdownOf(path string) string {
	name := strings.TrimSuffix(filepath.Base(path), filepath.Ext(path)) + ".md"
	candidates := []string{filepath.Join(filepath.Dir(path), name), filepath.Join(filepath.Dir(path), "..", "md", name)}
	at := slices.IndexFunc(candidates, func(path string) bool { _, err := os.Stat(path); return err == nil })
	if at < 0 {
		return ""
	}
	return candidates[at]
}

// headOf is the start of a file, where a DoclingDocument says what it is.
func headOf(path string) (string, error) {
	file, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer file.Close()
	head, err := io.ReadAll(io.LimitReader(file, 200))
	return string(head), err
}
