package model

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Classifier is a head that gives a sequence logits: it pools the hidden
// states and computes Out·n(a(Dense·x)), with a the Activation and n the Norm.
type Classifier struct {
	Pooling    Pooling
	Dense      Dense
	Activation Activation
	Norm       Norm
	Out        Dense
	Labels     []string // one per logit
	Sigmoid    bool     // whether a logit's sigmoid is the score, or the logit itself
}

// Score turns a logit into the score that the model's own config asks for.
func (c *Classifier) Score(logit float32) float32 {
	if !c.Sigmoid {
		return logit
	}
	return float32(1 / (1 + math.Exp(-float64(logit))))
}

// classifierConfig is the keys that only classifiers have.
type classifierConfig struct {
	IDToLabel            map[string]string `json:"id2label"`
	NumLabels            int               `json:"num_labels"`
	SentenceTransformers struct {
		Activation string `json:"activation_fn"`
	} `json:"sentence_transformers"`
	OldActivation string `json:"sbert_ce_default_activation_function"`
}

// classifier reads the head, if the architecture has one.
func (f *configFile) classifier(r *reader, c Config) (*Classifier, error) {
	if !strings.HasSuffix(c.Architecture, classifierSuffix) {
		return nil, nil
	}
	labels, err := f.labels()
	if err != nil {
		return nil, err
	}
	head := f.family.head(r, c, f, len(labels))
	head.Labels = labels
	if head.Sigmoid, err = f.sigmoid(len(labels)); err != nil {
		return nil, err
	}
	return &head, r.err
}

// labels has transformers' default of two.
func (f *configFile) labels() ([]string, error) {
	const limit = 1 << 16
	n := 2
	if f.NumLabels != 0 {
		n = f.NumLabels
	}
	if len(f.IDToLabel) > 0 {
		n = len(f.IDToLabel)
	}
	if n < 1 || n > limit {
		return nil, fmt.Errorf("%w: %d labels", ErrInvalid, n)
	}
	labels := make([]string, n)
	for i := range labels {
		labels[i] = fmt.Sprintf("LABEL_%d", i)
		if name, ok := f.IDToLabel[strconv.Itoa(i)]; ok {
			labels[i] = name
		} else if len(f.IDToLabel) > 0 {
			return nil, fmt.Errorf("%w: id2label has %d labels, but none with id %d", ErrInvalid, n, i)
		}
	}
	return labels, nil
}

// sigmoid follows sentence-transformers: the config names a function, or a
// single label means the sigmoid.
func (f *configFile) sigmoid(labels int) (bool, error) {
	name := f.SentenceTransformers.Activation
	if name == "" {
		name = f.OldActivation
	}
	switch name[strings.LastIndexByte(name, '.')+1:] {
	case "":
		return labels == 1, nil
	case "Sigmoid":
		return true, nil
	case "Identity":
		return false, nil
	}
	return false, fmt.Errorf("%w: activation_fn %q; supported: Sigmoid, Identity", ErrUnsupported, name)
}

// pooledHead is BERT's: the pooler that it was pretrained with, and a map.
func pooledHead(r *reader, c Config, _ *configFile, labels int) Classifier {
	h := Classifier{Pooling: CLSPooling, Activation: Tanh, Dense: r.dense("pooler.dense", c.Hidden, c.Hidden, true)}
	r.beside(func() { h.Out = r.dense("classifier", c.Hidden, labels, true) })
	return h
}

// denseHead is RoBERTa's.
func denseHead(r *reader, c Config, _ *configFile, labels int) Classifier {
	h := Classifier{Pooling: CLSPooling, Activation: Tanh}
	r.beside(func() {
		h.Dense = r.dense("classifier.dense", c.Hidden, c.Hidden, true)
		h.Out = r.dense("classifier.out_proj", c.Hidden, labels, true)
	})
	return h
}

func distilHead(r *reader, c Config, _ *configFile, labels int) Classifier {
	h := Classifier{Pooling: CLSPooling, Activation: ReLU}
	r.beside(func() {
		h.Dense = r.dense("pre_classifier", c.Hidden, c.Hidden, true)
		h.Out = r.dense("classifier", c.Hidden, labels, true)
	})
	return h
}

func modernHead(r *reader, c Config, f *configFile, labels int) Classifier {
	h := Classifier{Pooling: f.HeadPooling, Activation: activations[f.HeadFunction]}
	if (h.Pooling != CLSPooling && h.Pooling != MeanPooling) || h.Activation == "" {
		r.err = fmt.Errorf("%w: classifier_pooling %q, classifier_activation %q", ErrUnsupported, f.HeadPooling, f.HeadFunction)
	}
	r.beside(func() {
		h.Dense = r.dense("head.dense", c.Hidden, c.Hidden, f.HeadBias)
		h.Norm = r.norm("head.norm", c.Hidden, f.NormBias)
		h.Out = r.dense("classifier", c.Hidden, labels, true)
	})
	return h
}
