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
	sums, err := os.ReadFile(filepath.Join(dir, SumsFile))
	if err != nil {
		return err
	}
	if len(sums) == 0 {
		return fmt.Errorf("%s in %s is empty", SumsFile, dir)
	}
	for line := range strings.Lines(string(sums)) {
		_, path, _ := strings.Cut(strings.TrimSpace(line), "  ")
		if _, err := os.Stat(filepath.Join(dir, path)); err != nil {
			return err
		}
	}
	return nil
}
