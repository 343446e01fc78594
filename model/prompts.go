package model

import (
	"fmt"
	"path/filepath"
)

// Prompts is what a model was trained to see before a text: by name, as in
// "query", and the name of the one that is used where none is asked for.
type Prompts struct {
	ByName  map[string]string
	Default string // empty: none
}

// Prompt finds a prompt; an empty name means the default one.
func (p Prompts) Prompt(name string) (string, error) {
	if name == "" {
		name = p.Default
	}
	if name == "" {
		return "", nil
	}
	prompt, ok := p.ByName[name]
	if !ok {
		return "", fmt.Errorf("%w %q", ErrUnknownPrompt, name)
	}
	return prompt, nil
}

// Query is what goes before a query: the prompt named so, or else the default
// one; empty if there is neither. Names are sentence-transformers'.
func (p Prompts) Query() string { return p.first("query") }

// Document is what goes before a passage that is to be found.
func (p Prompts) Document() string { return p.first("document", "passage", "corpus") }

func (p Prompts) first(names ...string) string {
	for _, name := range append(names, p.Default) {
		if prompt, ok := p.ByName[name]; ok {
			return prompt
		}
	}
	return ""
}

func readPrompts(dir string) (Prompts, error) {
	path := filepath.Join(dir, "config_sentence_transformers.json")
	var file struct {
		Prompts map[string]string `json:"prompts"`
		Default string            `json:"default_prompt_name"`
	}
	if _, err := readJSON(path, &file); err != nil {
		return Prompts{}, err
	}
	p := Prompts{ByName: file.Prompts, Default: file.Default}
	if _, err := p.Prompt(""); err != nil {
		return Prompts{}, fmt.Errorf("%s: %w: default_prompt_name: %w", path, ErrInvalid, err)
	}
	return p, nil
}
