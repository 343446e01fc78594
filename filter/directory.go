package filter

import (
	"embed"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
)

// SchemaFile is the name of the Cedar schema beside the *.cedar files.
const SchemaFile = "schema.cedarschema"

//go:embed starter
var starter embed.FS

// StarterPolicies permit every principal within its tenant, so that reader
// lists alone decide.
func StarterPolicies() (*Policies, error) {
	directory, err := fs.Sub(starter, "starter")
	if err != nil {
		return nil, err
	}
	return loadPolicies(directory)
}

func (p *Policies) isStarter() bool {
	starter, err := StarterPolicies()
	return err == nil && starter.Digest() == p.Digest()
}

// LoadPolicies reads the schema, the *.cedar files and the hierarchy of groups
// of a directory, not of its subdirectories. A directory without any denies everything; one that
// cannot be read is an error.
func LoadPolicies(directory string) (*Policies, error) {
	p, err := loadPolicies(os.DirFS(directory))
	if err != nil {
		return nil, fmt.Errorf("policies in %s: %w", directory, err)
	}
	return p, nil
}

func loadPolicies(directory fs.FS) (*Policies, error) {
	names, err := policyFiles(directory)
	if err != nil {
		return nil, err
	}
	schema, err := readBounded(directory, SchemaFile)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	files := make(map[string]string, len(names))
	for _, name := range names {
		if files[name], err = readBounded(directory, name); err != nil {
			return nil, err
		}
	}
	return ParsePolicies(schema, files)
}

func policyFiles(directory fs.FS) ([]string, error) {
	entries, err := fs.ReadDir(directory, ".")
	if err != nil {
		return nil, err
	}
	var names []string
	for _, entry := range entries {
		if strings.HasSuffix(entry.Name(), ".cedar") || entry.Name() == GroupsFile {
			names = append(names, entry.Name())
		}
	}
	if len(names) > maxPolicyFiles {
		return nil, fmt.Errorf("%d policy files: at most %d are allowed", len(names), maxPolicyFiles)
	}
	return names, nil
}

func readBounded(directory fs.FS, name string) (string, error) {
	info, err := fs.Stat(directory, name)
	if err != nil {
		return "", err
	}
	if !info.Mode().IsRegular() { // to open a pipe is to wait for its other end
		return "", fmt.Errorf("%w: %s is not a regular file", ErrInvalidPolicies, name)
	}
	file, err := directory.Open(name)
	if err != nil {
		return "", err
	}
	defer file.Close()
	text, err := io.ReadAll(io.LimitReader(file, maxPolicyBytes+1))
	if err != nil {
		return "", fmt.Errorf("reading %s: %w", name, err)
	}
	if len(text) > maxPolicyBytes {
		return "", fmt.Errorf("%w: %s: at most %d bytes are allowed", ErrInvalidPolicies, name, maxPolicyBytes)
	}
	return string(text), nil
}
