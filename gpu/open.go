package gpu

import (
	"errors"

	"sluice/model"
	"sluice/model/tokenizer"
)

// Opener prepares devices for a model and the tokenizer that feeds it: replicas
// of each other, as in Served.
type Opener func(*model.Model, *tokenizer.Tokenizer) ([]Device, error)

// Open loads the models in dirs with their tokenizers and starts a scheduler
// that runs each on devices of its own. It is the Embedder of the first. Close
// ends it.
func Open(open Opener, o Options, dirs ...string) (*Scheduler, error) {
	var models []Served
	for _, dir := range dirs {
		m, err := load(dir, open)
		if err != nil {
			return nil, errors.Join(err, closeAll(models))
		}
		models = append(models, m)
	}
	s, err := NewScheduler(o, models...)
	if err != nil {
		return nil, errors.Join(err, closeAll(models))
	}
	return s, nil
}

func load(dir string, open Opener) (Served, error) {
	m, err := model.Load(dir)
	if err != nil {
		return Served{}, err
	}
	t, err := tokenizer.Load(m.Tokenizer)
	if err != nil {
		return Served{}, err
	}
	devices, err := open(m, t)
	if err != nil {
		return Served{}, err
	}
	return Served{Model: m, Tokenizer: t, Devices: devices}, nil
}

func closeAll(models []Served) error {
	var all []error
	for _, m := range models {
		for _, d := range m.Devices {
			all = append(all, d.Close())
		}
	}
	return errors.Join(all...)
}
