package bench

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/rivo/uniseg"
	"github.com/ulikunitz/xz"
)

const (
	minSentence = 20 // bytes
	maxSentence = 600
	maxArchive  = 512 << 20
)

// sentences are the distinct sentences of all Markdown and text files below a
// folder, those in .tar.xz archives too, in the order of the files' paths.
type sentences struct {
	seen map[string]bool
	list []string
}

func readSentences(dir string) ([]string, error) {
	s := sentences{seen: map[string]bool{}}
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !(isText(path) || isArchive(path)) {
			return err
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if isText(path) {
			s.add(string(data))
			return nil
		}
		if err := s.addArchive(data); err != nil {
			return fmt.Errorf("reading %s: %w", path, err)
		}
		return nil
	})
	return s.list, err
}

func isText(path string) bool { ext := filepath.Ext(path); return ext == ".md" || ext == ".txt" }

func isArchive(path string) bool { return strings.HasSuffix(path, ".tar.xz") }

func (s *sentences) addArchive(data []byte) error {
	return eachText(data, func(_, text string) { s.add(text) })
}

// eachText visits the texts of a .tar.xz archive, in its order.
func eachText(data []byte, visit func(name, text string)) error {
	unpacked, err := xz.NewReader(bytes.NewReader(data))
	if err != nil {
		return err
	}
	archive := tar.NewReader(io.LimitReader(unpacked, maxArchive))
	for {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if header.Typeflag != tar.TypeReg || !isText(header.Name) {
			continue
		}
		text, err := io.ReadAll(archive)
		if err != nil {
			return err
		}
		visit(header.Name, string(text))
	}
}

// add takes sentences paragraph by paragraph. A paragraph ends at an empty
// line, a list item, a heading or a row of a table.
func (s *sentences) add(text string) {
	var paragraph []string
	end := func() {
		s.split(strings.Join(paragraph, " "))
		paragraph = paragraph[:0]
	}
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if line == "" || strings.ContainsRune("-*+#|0123456789", rune(line[0])) {
			end()
		}
		if words := strings.Fields(strings.TrimLeft(line, "-*+#|> ")); len(words) > 0 {
			paragraph = append(paragraph, strings.Join(words, " "))
		}
	}
	end()
}

func (s *sentences) split(paragraph string) {
	for state := -1; paragraph != ""; {
		var sentence string
		sentence, paragraph, state = uniseg.FirstSentenceInString(paragraph, state)
		sentence = strings.TrimSpace(sentence)
		if len(sentence) < minSentence || len(sentence) > maxSentence || s.seen[sentence] {
			continue
		}
		s.seen[sentence] = true
		s.list = append(s.list, sentence)
	}
}
