package safetensors

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
)

const (
	singleName = "model.safetensors"
	indexName  = "model.safetensors.index.json"
)

// Archive is the weights of one model.
type Archive struct {
	tensors map[string]location
	files   []*os.File
}

type location struct {
	Info
	file *os.File
	data int64 // where the file's data begins
}

// Open opens the weights in dir: model.safetensors, or the shards that
// model.safetensors.index.json lists.
func Open(dir string) (*Archive, error) {
	names, index, err := fileNames(dir)
	if err != nil {
		return nil, err
	}
	a := &Archive{tensors: map[string]location{}}
	for _, name := range names {
		if err := a.add(filepath.Join(dir, name)); err != nil {
			return nil, errors.Join(err, a.Close())
		}
	}
	if err := a.checkIndex(index); err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", filepath.Join(dir, indexName), err), a.Close())
	}
	return a, nil
}

// fileNames lists the weight files in dir, and the index (tensor → shard) if
// there is one.
func fileNames(dir string) ([]string, map[string]string, error) {
	data, err := os.ReadFile(filepath.Join(dir, indexName))
	if errors.Is(err, fs.ErrNotExist) {
		return []string{singleName}, nil, nil
	}
	if err != nil {
		return nil, nil, fmt.Errorf("reading the index of the weights: %w", err)
	}
	var index struct {
		WeightMap map[string]string `json:"weight_map"`
	}
	if err := json.Unmarshal(data, &index); err != nil {
		return nil, nil, fmt.Errorf("%s: %w: %w", filepath.Join(dir, indexName), ErrFormat, err)
	}
	names := slices.Compact(slices.Sorted(maps.Values(index.WeightMap)))
	for _, name := range names {
		if name != filepath.Base(name) || !filepath.IsLocal(name) {
			return nil, nil, fmt.Errorf("%s: %w: shard %q is not a file name", filepath.Join(dir, indexName), ErrFormat, name)
		}
	}
	return names, index.WeightMap, nil
}

func (a *Archive) add(path string) error {
	file, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("opening the weights: %w", err)
	}
	a.files = append(a.files, file)
	tensors, data, err := readHeader(file)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	for name, info := range tensors {
		if other, twice := a.tensors[name]; twice {
			return fmt.Errorf("%s: %w: tensor %q is also in %s", path, ErrFormat, name, other.file.Name())
		}
		a.tensors[name] = location{info, file, data}
	}
	return nil
}

func readHeader(file *os.File) (map[string]Info, int64, error) {
	stat, err := file.Stat()
	if err != nil {
		return nil, 0, err
	}
	var length [8]byte
	if _, err := file.ReadAt(length[:], 0); err != nil {
		return nil, 0, fmt.Errorf("%w: header length: %w", ErrFormat, err)
	}
	n := binary.LittleEndian.Uint64(length[:])
	if n > maxHeader || int64(n) > stat.Size()-8 {
		return nil, 0, fmt.Errorf("%w: header of %d bytes in a file of %d", ErrFormat, n, stat.Size())
	}
	header := make([]byte, n)
	if _, err := file.ReadAt(header, 8); err != nil {
		return nil, 0, fmt.Errorf("%w: header: %w", ErrFormat, err)
	}
	data := 8 + int64(n)
	tensors, err := ParseHeader(header, stat.Size()-data)
	return tensors, data, err
}

func (a *Archive) checkIndex(index map[string]string) error {
	for _, name := range slices.Sorted(maps.Keys(index)) {
		shard := index[name]
		at, ok := a.tensors[name]
		if !ok || filepath.Base(at.file.Name()) != shard {
			return fmt.Errorf("%w: tensor %q is not in shard %s", ErrFormat, name, shard)
		}
	}
	return nil
}

// Names lists all tensors, sorted.
func (a *Archive) Names() []string { return slices.Sorted(maps.Keys(a.tensors)) }

// Has reports whether there is a tensor of that name.
func (a *Archive) Has(name string) bool {
	_, ok := a.tensors[name]
	return ok
}

// Paths lists the weight files in the order of their names.
func (a *Archive) Paths() []string {
	paths := make([]string, len(a.files))
	for i, f := range a.files {
		paths[i] = f.Name()
	}
	return paths
}

// Close closes the files; tensors that were read stay valid.
func (a *Archive) Close() error {
	var errs []error
	for _, f := range a.files {
		errs = append(errs, f.Close())
	}
	return errors.Join(errs...)
}
