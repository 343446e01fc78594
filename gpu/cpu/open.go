package cpu

import (
	"sluice/gpu"
	"sluice/model"
	"sluice/model/tokenizer"
)

// Open is gpu.Open on all cores, which the models share.
func Open(p Precision, o gpu.Options, dirs ...string) (*gpu.Scheduler, error) {
	open := func(m *model.Model, _ *tokenizer.Tokenizer) (gpu.Device, error) { return NewPrecision(m, 0, p) }
	return gpu.Open(open, o, dirs...)
}
