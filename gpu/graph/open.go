package graph

import (
	"sluice/gpu"
	"sluice/model"
	"sluice/model/tokenizer"
)

// Open is gpu.Open. Every text is a batch: a graph gains nothing by others.
func Open(o gpu.Options, dirs ...string) (*gpu.Scheduler, error) {
	o.BatchTokens = 1
	open := func(m *model.Model, _ *tokenizer.Tokenizer) ([]gpu.Device, error) { return []gpu.Device{New(m)}, nil }
	return gpu.Open(open, o, dirs...)
}
