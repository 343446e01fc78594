package cpu

import (
	"errors"

	"sluice/gpu"
	"sluice/kernels/simd"
	"sluice/model"
	"sluice/model/tokenizer"
)

// Open loads the models in dirs with their tokenizers and starts a scheduler
// that runs them on all cores, which they share. It is the Embedder of the
// first. Close ends it.
func Open(p Precision, o gpu.Options, dirs ...string) (*gpu.Scheduler, error) {
	var models []gpu.Served
	for _, dir := range dirs {
		m, err := load(dir, p)
		if err != nil {
			return nil, errors.Join(err, closeAll(models))
		}
		models = append(models, m)
	}
	s, err := gpu.NewScheduler(o, models...)
	if err != nil {
		return nil, errors.Join(err, closeAll(models))
	}
	return s, nil
}

func load(dir string, p Precision) (gpu.Served, error) {
	m, err := model.Load(dir)
	if err != nil {
		return gpu.Served{}, err
	}
	t, err := tokenizer.Load(m.Tokenizer)
	if err != nil {
		return gpu.Served{}, err
	}
	device, err := open(m, t, p)
	if err != nil {
		return gpu.Served{}, err
	}
	return gpu.Served{Model: m, Tokenizer: t, Devices: []gpu.Device{device}}, nil
}

func open(m *model.Model, t *tokenizer.Tokenizer, p Precision) (*Device, error) {
	if p == Auto {
		return fastest(m, t, 0, simd.Best())
	}
	return NewPrecision(m, 0, p)
}

func closeAll(models []gpu.Served) error {
	var all []error
	for _, m := range models {
		for _, d := range m.Devices {
			all = append(all, d.Close())
		}
	}
	return errors.Join(all...)
}
