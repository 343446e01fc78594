package cpu

import (
	"context"
	"errors"
	"fmt"

	"sluice/gpu"
	"sluice/kernels/ref"
	"sluice/kernels/simd"
	"sluice/model"
	"sluice/model/tokenizer"
)

// leastProbeCosine is how near a probe's vector in 8 bits has to be to that in
// bfloat16, which suits every model.
const leastProbeCosine = 0.995

// probes are texts of several kinds and lengths.
var probes = []string{
	"volunteer days",
	"How many paid volunteer days do employees receive each year?",
	"The on-call engineer acknowledges an alert within 15 minutes; after 30 minutes without an answer it goes to the second line.",
	"Invoice 2026-0417, due 31.03.2026: EUR 1,249.50 (VAT 19 %), reference ACME-77/b.",
	"func main() { fmt.Println(len(os.Args)) } // exit code 0",
	"Die Kündigungsfrist beträgt drei Monate. Le délai de préavis est de trois mois.",
	"error: connection refused\n\tat client.dial (net/client.go:112)\n\tat main",
	"Refunds are granted within thirty days of purchase if the item is unused and in its original packaging. " +
		"Shipping costs are not refunded. Gift cards, perishable goods and software whose seal is broken are excluded, " +
		"and a refund is paid to the account that the purchase was paid from.",
}

// fastest is a device of the fastest precision that suits the model on this
// CPU: F32 without instructions for 8 bits; with them Int8 if all probes keep
// their vectors in it; else BF16, or F32 where that is no faster.
func fastest(m *model.Model, t *tokenizer.Tokenizer, workers int, kernels *simd.Set) (*Device, error) {
	if !kernels.Narrow() {
		return newPrecision(m, workers, F32, kernels), nil
	}
	d, wide := newPrecision(m, workers, Int8, kernels), newPrecision(m, workers, BF16, kernels)
	near, err := nearOnProbes(m, t, d, wide)
	switch {
	case err != nil:
		return nil, errors.Join(err, d.Close(), wide.Close())
	case near:
		return d, wide.Close()
	case kernels.FastBF16():
		return wide, d.Close()
	}
	return newPrecision(m, workers, F32, kernels), errors.Join(d.Close(), wide.Close())
}

// nearOnProbes compares the probes' vectors on two devices.
func nearOnProbes(m *model.Model, t *tokenizer.Tokenizer, a, b *Device) (bool, error) {
	x, err := probe(m, t, a)
	if err != nil {
		return false, err
	}
	y, err := probe(m, t, b)
	if err != nil {
		return false, err
	}
	for size := m.Dimensions(); len(x) > 0; x, y = x[size:], y[size:] {
		if !(ref.Dot(x[:size], y[:size]) >= leastProbeCosine) { // nor is NaN
			return false, nil
		}
	}
	return true, nil
}

func probe(m *model.Model, t *tokenizer.Tokenizer, d *Device) ([]float32, error) {
	var batch gpu.Batch
	var e tokenizer.Encoding
	batch.Reset()
	for _, text := range probes {
		if err := t.Encode(&e, text, tokenizer.Options{MaxLength: m.MaxTokens}); err != nil {
			return nil, fmt.Errorf("tokenizing a probe for %s: %w", m.Name, err)
		}
		batch.Append(e.IDs, e.TypeIDs)
	}
	vectors := make([]float32, batch.Len()*d.Dimensions())
	if err := d.Run(context.Background(), &batch, gpu.Output{Pooled: vectors}); err != nil {
		return nil, fmt.Errorf("running probes of %s: %w", m.Name, err)
	}
	return vectors, nil
}
