package hub

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
)

// ErrRepository is wrapped where a repository on the hub holds no model that
// can be used.
var ErrRepository = errors.New("unusable repository")

const (
	defaultRevision = "main"
	listingLimit    = 16 << 20  // bytes of the hub's list of files
	fileLimit       = 100 << 30 // bytes of a file
)

var (
	repositoryName = regexp.MustCompile(`^([A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*)(?:@([A-Za-z0-9][\w.-]*))?$`)

	// wanted is what a model is made of; the rest of a repository is the same
	// weights for other programs.
	wanted = regexp.MustCompile(`^((config|tokenizer|tokenizer_config|special_tokens_map|modules|sentence_bert_config|config_sentence_transformers)\.json|` +
		`model(-\d+-of-\d+)?\.safetensors|model\.safetensors\.index\.json|\d+_\w+/(config\.json|model\.safetensors))$`)
	commitHash = regexp.MustCompile(`^[0-9a-f]{40}$`)
)

// repository makes a Model of "owner/name" or "owner/name@revision". Its files
// are not known yet.
func repository(name string) (Model, error) {
	parts := repositoryName.FindStringSubmatch(name)
	if parts == nil {
		return Model{}, fmt.Errorf("%w %q: neither a known name nor owner/name or owner/name@revision", ErrUnknownModel, name)
	}
	return Model{Name: name, Repo: parts[1], Revision: parts[2]}, nil
}

// listing is the hub's answer about a revision of a repository.
type listing struct {
	Commit string `json:"sha"`
	Files  []struct {
		Path string `json:"rfilename"`
		Size int64  `json:"size"`
		Blob string `json:"blobId"` // git's SHA-1
		LFS  *struct {
			SHA256 string `json:"sha256"`
		} `json:"lfs"`
	} `json:"siblings"`
}

// resolve asks the hub for the commit that a revision is, and for its files'
// sizes and checksums.
func resolve(ctx context.Context, m Model, opts Options) (Model, error) {
	url := fmt.Sprintf("%s/api/models/%s/revision/%s?blobs=true", opts.URL, m.Repo, m.revision())
	resp, err := get(ctx, opts.Client, url, 0)
	if err != nil {
		return m, fmt.Errorf("asking %s: %w", url, err)
	}
	defer resp.Body.Close()
	var l listing
	if err := json.NewDecoder(io.LimitReader(resp.Body, listingLimit)).Decode(&l); err != nil {
		return m, fmt.Errorf("asking %s: %w", url, err)
	}
	if !commitHash.MatchString(l.Commit) {
		return m, fmt.Errorf("asking %s: the hub names no commit", url)
	}
	m.Revision = l.Commit
	if m.Files, err = l.files(); err != nil {
		return m, fmt.Errorf("%s at %s: %w", m.Repo, l.Commit, err)
	}
	return m, nil
}

// files are those of the model.
func (l listing) files() ([]File, error) {
	var files []File
	for _, f := range l.Files {
		if !wanted.MatchString(f.Path) {
			continue
		}
		file := File{Path: f.Path, Size: f.Size, blob: f.Blob}
		if f.LFS != nil {
			file.SHA256, file.blob = strings.ToLower(f.LFS.SHA256), ""
		}
		if f.Size < 0 || f.Size > fileLimit || file.SHA256+file.blob == "" {
			return nil, fmt.Errorf("%w: size or checksum of %s is missing", ErrRepository, f.Path)
		}
		files = append(files, file)
	}
	has := func(suffix string) bool {
		return slices.ContainsFunc(files, func(f File) bool { return f.Path == suffix })
	}
	if !has("config.json") || !(has("model.safetensors") || has("model.safetensors.index.json")) {
		return nil, fmt.Errorf("%w: it has no config.json with model.safetensors", ErrRepository)
	}
	return files, nil
}
