package cpu

import (
	"errors"

	"sluice/gpu"
	"sluice/model"
	"sluice/model/tokenizer"
)

// Open is OpenPrecision with F32.
func Open(dir string, o gpu.Options) (*gpu.Scheduler, error) {
	return OpenPrecision(dir, F32, o)
}

// OpenPrecision loads the model in dir with its tokenizer and starts an
// embedder on all cores. Close ends it.
func OpenPrecision(dir string, p Precision, o gpu.Options) (*gpu.Scheduler, error) {
	m, err := model.Load(dir)
	if err != nil {
		return nil, err
	}
	t, err := tokenizer.Load(m.Tokenizer)
	if err != nil {
		return nil, err
	}
	device, err := NewPrecision(m, 0, p)
	if err != nil {
		return nil, err
	}
	s, err := gpu.NewScheduler(o, gpu.Served{Model: m, Tokenizer: t, Devices: []gpu.Device{device}})
	if err != nil {
		return nil, errors.Join(err, device.Close())
	}
	return s, nil
}
