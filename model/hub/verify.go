package hub

import (
	"crypto/sha1"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// ErrChecksum is wrapped where a file is not the one that was pinned.
var ErrChecksum = errors.New("wrong checksum")

// SumsFile is written into a model's folder once every file has been hashed,
// in the format of sha256sum.
const SumsFile = "SHA256SUMS"

// verified reports whether dir was verified before and every size is still right.
func verified(dir string, files []File) error {
	sums, err := os.ReadFile(filepath.Join(dir, SumsFile))
	if err != nil {
		return err
	}
	if string(sums) != formatSums(files) {
		return fmt.Errorf("%s in %s lists other files", SumsFile, dir)
	}
	for _, f := range files {
		if err := verifySize(dir, f); err != nil {
			return err
		}
	}
	return nil
}

// verify checks dir, hashing every file unless that was done before.
func verify(dir string, files []File) error {
	if verified(dir, files) == nil {
		return nil
	}
	for _, f := range files {
		if err := verifyFile(dir, f); err != nil {
			return err
		}
	}
	return writeSums(dir, files)
}

func verifySize(dir string, f File) error {
	info, err := os.Stat(filepath.Join(dir, f.Path))
	if err != nil {
		return err
	}
	if info.Size() != f.Size {
		return fmt.Errorf("%s: %d bytes, want %d: %w", f.Path, info.Size(), f.Size, ErrChecksum)
	}
	return nil
}

func verifyFile(dir string, f File) error {
	if err := verifySize(dir, f); err != nil {
		return err
	}
	name, want, h := "SHA-256", f.SHA256, sha256.New()
	if f.SHA256 == "" {
		name, want, h = "git's SHA-1", f.blob, sha1.New()
		fmt.Fprintf(h, "blob %d\x00", f.Size)
	}
	sum, err := hashFile(filepath.Join(dir, f.Path), h)
	if err != nil {
		return err
	}
	if sum != want {
		return fmt.Errorf("%s: %s %s, want %s: %w", f.Path, name, sum, want, ErrChecksum)
	}
	return nil
}

// hashFile is the hash of what h has seen already and the file.
func hashFile(path string, h hash.Hash) (string, error) {
	file, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer file.Close()
	if _, err := io.Copy(h, file); err != nil {
		return "", fmt.Errorf("hashing %s: %w", path, err)
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

func formatSums(files []File) string {
	var b strings.Builder
	for _, f := range files {
		fmt.Fprintf(&b, "%s  %s\n", f.SHA256, f.Path)
	}
	return b.String()
}

// writeSums records that dir was verified, and the SHA-256 of files that had
// none until now.
func writeSums(dir string, files []File) error {
	files = slices.Clone(files)
	for i, f := range files {
		if f.SHA256 != "" {
			continue
		}
		sum, err := hashFile(filepath.Join(dir, f.Path), sha256.New())
		if err != nil {
			return err
		}
		files[i].SHA256 = sum
	}
	if err := os.WriteFile(filepath.Join(dir, SumsFile), []byte(formatSums(files)), 0o644); err != nil {
		return fmt.Errorf("recording the verification: %w", err)
	}
	return nil
}

// recorded reports whether dir has a record of verification, and every file
// that it lists.
func recorded(dir string) error {
	files, err := readSums(dir)
	if err != nil {
		return err
	}
	for _, f := range files {
		if _, err := os.Stat(filepath.Join(dir, f.Path)); err != nil {
			return err
		}
	}
	return nil
}

// readSums returns the files of the record, with no sizes.
func readSums(dir string) (files []File, err error) {
	sums, err := os.ReadFile(filepath.Join(dir, SumsFile))
	if err != nil {
		return nil, err
	}
	for line := range strings.Lines(string(sums)) {
		sum, path, _ := strings.Cut(strings.TrimSpace(line), "  ")
		files = append(files, File{Path: path, SHA256: sum})
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("%s in %s is empty", SumsFile, dir)
	}
	return files, nil
}

// Verify hashes every file of a pulled model's folder again, against what was
// recorded when it was pulled. fs.ErrNotExist: there is no record, or a file is gone.
func Verify(dir string) error {
	files, err := readSums(dir)
	if err != nil {
		return err
	}
	for _, f := range files {
		sum, err := hashFile(filepath.Join(dir, f.Path), sha256.New())
		if err != nil {
			return err
		}
		if sum != f.SHA256 {
			return fmt.Errorf("%s: SHA-256 %s, want %s: %w", f.Path, sum, f.SHA256, ErrChecksum)
		}
	}
	return nil
}
