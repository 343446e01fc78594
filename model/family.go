package model

import (
	"fmt"
	"slices"
	"strings"
)

// What transformers appends to a family's name.
const (
	encoderSuffix    = "Model"
	maskedSuffix     = "ForMaskedLM" // its head is ignored
	classifierSuffix = "ForSequenceClassification"
)

// family is how one kind of model names its config's keys and tensors, and
// what its config leaves unsaid.
type family struct {
	class    string
	types    []string          // model_type
	keys     map[string]string // its config keys to those of configFile
	defaults configFile
	shape    func(*configFile, *Config) error // completes the Config
	prefixes []string                         // of the encoder's tensors beside a head
	layers   string                           // of the layers' tensors, after the prefix
	encoder  func(*reader, Config) Encoder
	head     func(r *reader, c Config, f *configFile, labels int) Classifier // nil: no classifiers
}

var families = []*family{&bert, &roberta, &xlmRoberta, &distilBERT, &mpnet, &modernBERT, &nomicBERT, &gte, &newGTE}

// familyOf finds the family, and refuses architectures outside it by name.
func familyOf(modelType string, architectures []string) (*family, error) {
	i := slices.IndexFunc(families, func(f *family) bool { return slices.Contains(f.types, modelType) })
	if i < 0 || len(architectures) > 1 || (len(architectures) == 1 && !slices.Contains(families[i].architectures(), architectures[0])) {
		return nil, fmt.Errorf("%w: architecture %q of type %q; supported: %s",
			ErrUnsupported, strings.Join(architectures, ", "), modelType, strings.Join(supported(), ", "))
	}
	return families[i], nil
}

func (f *family) architectures() []string {
	names := []string{f.class + encoderSuffix, f.class + maskedSuffix}
	if f.head != nil {
		names = append(names, f.class+classifierSuffix)
	}
	return names
}

func supported() (names []string) {
	for _, f := range families {
		names = append(names, f.architectures()...)
	}
	return names
}
