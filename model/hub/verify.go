package hub

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
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
	sum, err := hashFile(filepath.Join(dir, f.Path))
	if err != nil {
		return err
	}
	if sum != f.SHA256 {
		return fmt.Errorf("%s: SHA-256 %s, want %s: %w", f.Path, sum, f.SHA256, ErrChecksum)
	}
	return nil
}

func hashFile(path string) (string, error) {
	file, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer file.Close()
	h := sha256.New()
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

func writeSums(dir string, files []File) error {
	if err := os.WriteFile(filepath.Join(dir, SumsFile), []byte(formatSums(files)), 0o644); err != nil {
		return fmt.Errorf("recording the verification: %w", err)
	}
	return nil
}
