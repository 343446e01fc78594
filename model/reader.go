package model

import (
	"fmt"
	"strings"

	"sluice/model/safetensors"
)

// reader reads tensors by name, each of a known shape, and keeps the first
// error.
type reader struct {
	archive *safetensors.Archive
	prefix  string // of the encoder's tensors
	read    map[string]bool
	err     error
}

func newReader(a *safetensors.Archive, f *family) *reader {
	r := &reader{archive: a, read: map[string]bool{}}
	for _, name := range a.Names() {
		for _, prefix := range f.prefixes {
			if strings.HasPrefix(name, prefix+f.layers) {
				r.prefix = prefix
			}
		}
	}
	return r
}

// strange refuses tensors of a layer that nothing has asked for: the model is
// not quite what its config says.
func (r *reader) strange(layers string) error {
	for _, name := range r.archive.Names() {
		if strings.HasPrefix(name, r.prefix+layers) && !r.read[name] && !strings.HasSuffix(name, ".inv_freq") {
			return fmt.Errorf("%w: tensor %q is not known in this architecture", ErrUnsupported, name)
		}
	}
	return nil
}

func (r *reader) tensor(name string, shape ...int) []float32 {
	if r.err != nil {
		return nil
	}
	r.read[r.prefix+name] = true
	values, err := r.archive.Float32(r.prefix+name, shape...)
	r.err = err
	return values
}

// dense reads a map and, if it has one, its bias.
func (r *reader) dense(name string, in, out int, biased bool) Dense {
	d := Dense{Weight: r.tensor(name+".weight", out, in), In: in, Out: out}
	if d.Bias = make([]float32, out); biased {
		d.Bias = r.tensor(name+".bias", out)
	}
	return d
}

// stacked reads parts maps of one input whose rows are one tensor.
func (r *reader) stacked(name string, in, out, parts int, biased bool) []Dense {
	all := r.dense(name, in, parts*out, biased)
	split := make([]Dense, parts)
	for i := range split {
		if r.err == nil {
			split[i] = Dense{Weight: all.Weight[i*out*in:][:out*in], Bias: all.Bias[i*out:][:out], In: in, Out: out}
		}
	}
	return split
}

// norm knows the names that checkpoints converted from TensorFlow have.
func (r *reader) norm(name string, size int, biased bool) Norm {
	gain, bias := name+".weight", name+".bias"
	if r.archive.Has(r.prefix + name + ".gamma") {
		gain, bias = name+".gamma", name+".beta"
	}
	n := Norm{Gain: r.tensor(gain, size), Bias: make([]float32, size)}
	if biased {
		n.Bias = r.tensor(bias, size)
	}
	return n
}

// each reads every layer.
func (r *reader) each(c Config, layers string, read func(name string, i int) Layer) []Layer {
	var list []Layer
	for i := 0; i < c.Layers && r.err == nil; i++ {
		list = append(list, read(fmt.Sprintf("%s%d.", layers, i), i))
	}
	return list
}

// beside reads what stands outside the encoder, without its prefix.
func (r *reader) beside(read func()) {
	prefix := r.prefix
	r.prefix = ""
	read()
	r.prefix = prefix
}
