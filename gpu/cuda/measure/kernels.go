//go:build nvidia

package measure

import (
	"errors"
	"fmt"

	"gorgonia.org/cu"

	"sluice/gpu/cuda/kernel"
)

// memory is scratch that a measurement frees when it is done. What it holds is
// zero: kernels take as long for that.
type memory struct{ all []cu.DevicePtr }

func (m *memory) take(bytes int) (cu.DevicePtr, error) {
	p, err := cu.MemAlloc(int64(bytes))
	if err != nil {
		return 0, fmt.Errorf("%d MiB of device memory: %w", bytes>>20, err)
	}
	m.all = append(m.all, p)
	return p, cu.MemsetD8(p, 0, int64(bytes))
}

// several takes memory of several sizes.
func (m *memory) several(bytes ...int) (all []cu.DevicePtr, err error) {
	for _, n := range bytes {
		p, err := m.take(n)
		if err != nil {
			return nil, err
		}
		all = append(all, p)
	}
	return all, nil
}

func (m *memory) free() {
	for _, p := range m.all {
		_ = cu.MemFree(p) // an error here is one of the kernels before, which has been reported
	}
}

const warmUps, repeats = 2, 10

// seconds is the time of one call of do in the default stream.
func seconds(do func() error) (float64, error) {
	for range warmUps {
		if err := do(); err != nil {
			return 0, err
		}
	}
	took, err := kernel.Seconds(cu.NoStream, func() (err error) {
		for i := 0; i < repeats && err == nil; i++ {
			err = do()
		}
		return err
	})
	return took / repeats, err
}

// measureProducts times the matrices of each shape, by the kernel that Multiply
// chooses and by each that it may.
func (r *run) measureProducts() error {
	for _, s := range r.sizes.Shapes {
		for name, d := range map[string][2]int{"qkv": {s.Hidden, 3 * s.Hidden}, "up": {s.Hidden, s.Intermediate}, "down": {s.Intermediate, s.Hidden}} {
			if err := r.measureProduct(fmt.Sprintf("gemm.%s.%s", s.Name, name), d[0], d[1]); err != nil {
				return err
			}
		}
	}
	return nil
}

func (r *run) measureProduct(name string, in, out int) error {
	var m memory
	defer m.free()
	rows := r.sizes.Tokens
	p, err := m.several(2*rows*in, 2*rows*out, 2*in*out, 4*out)
	if err != nil {
		return err
	}
	d := kernel.Dense{Weight: p[2], Bias: p[3], In: in, Out: out}
	timed := func(name string, multiply func() error) error {
		took, err := seconds(multiply)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		r.figure(name+".tflops", 2*float64(rows)*float64(in)*float64(out)/took/1e12)
		return nil
	}
	if err := timed(name, func() error { return r.kernels.Multiply(cu.NoStream, p[1], p[0], 0, d, rows) }); err != nil {
		return err
	}
	for _, v := range r.kernels.Variants() {
		if err := timed(name+"."+v.Name, func() error { return r.kernels.MultiplyBy(v, cu.NoStream, p[1], p[0], 0, d, rows) }); err != nil {
			return err
		}
	}
	return nil
}

// measureAttention is of sequences of 128 tokens.
func (r *run) measureAttention() error {
	const length, heads = 128, 12
	for _, size := range []int{32, 64} {
		var m memory
		tokens := r.sizes.Tokens / length * length
		var offsets []int
		for at := 0; at <= tokens; at += length {
			offsets = append(offsets, at)
		}
		tiles := kernel.AppendTiles(nil, offsets)
		p, err := m.several(2*tokens*heads*size, 6*tokens*heads*size)
		if err != nil {
			return err
		}
		list, err := upload(&m, tiles)
		if err != nil {
			return err
		}
		took, err := seconds(func() error {
			return r.kernels.Attention(cu.NoStream, p[0], p[1], list, len(tiles), kernel.Heads{Count: heads, Size: size, Used: size})
		})
		m.free()
		if err != nil {
			return err
		}
		r.figure(fmt.Sprintf("attention.%d.tflops", size), 4*float64(tokens)*length*heads*float64(size)/took/1e12)
		r.figure(fmt.Sprintf("attention.%d.gb_per_s", size), 8*float64(tokens)*heads*float64(size)/took/1e9)
	}
	return nil
}

// measureRows is of what is bound by memory: embeddings and normalisation.
func (r *run) measureRows() error {
	const width = 384
	var m memory
	defer m.free()
	rows := r.sizes.Tokens
	p, err := m.several(2*rows*width, 2*rows*width, 4*width, 4*width, 4*rows, 2*width)
	if err != nil {
		return err
	}
	n := kernel.Norm{Gain: p[2], Bias: p[3], Epsilon: 1e-12}
	took, err := seconds(func() error { return r.kernels.LayerNorm(cu.NoStream, p[1], p[0], 0, n, rows, width) })
	if err != nil {
		return err
	}
	r.figure("layernorm.gb_per_s", 4*float64(rows)*width/took/1e9)
	t := kernel.Tables{Word: p[5], Norm: n, Width: width}
	if took, err = seconds(func() error { return r.kernels.Embed(cu.NoStream, p[1], t, p[4], p[4], p[4], rows) }); err != nil {
		return err
	}
	r.figure("embed.gb_per_s", 4*float64(rows)*width/took/1e9)
	return nil
}

const kernelResults = 10 // of each query

// measureSearch is the exact search among all vectors, half of them allowed, in
// halves and in bytes, and the scan of their 1-bit codes.
func (r *run) measureSearch() error {
	const width = 384
	free, _, err := cu.MemInfo()
	if err != nil {
		return err
	}
	rows := min(r.sizes.Vectors, int(free)/2/(2*width))
	r.figure("search.vectors", float64(rows))
	for _, queries := range []int{1, 8, 64} {
		err := errors.Join(
			r.measureFound("search_f16", rows, queries, 2*width, r.searchHalves(rows, queries, width)),
			r.measureFound("search_i8", rows, queries, width+4, r.searchBytes(rows, queries, width)),
			r.measureFound("scan", rows, queries, width/8+4, r.scan(rows, queries, width)))
		if err != nil {
			return err
		}
	}
	return nil
}

// finder takes memory and returns a search in it.
type finder func(m *memory, a kernel.Answer, allowed kernel.Allowed) (search func() error, err error)

// measureFound times a search that reads so many bytes a row.
func (r *run) measureFound(name string, rows, queries, rowBytes int, find finder) error {
	var m memory
	defer m.free()
	words := (rows + 31) / 32
	p, err := m.several(4*words, 4*queries*kernelResults, 4*queries*kernelResults, r.kernels.CandidateBytes(queries, kernelResults))
	if err != nil {
		return err
	}
	if err := cu.MemsetD32(p[0], 0x55555555, int64(words)); err != nil {
		return err
	}
	search, err := find(&m, kernel.Answer{Rows: p[1], Scores: p[2], Candidates: p[3], K: kernelResults}, kernel.Allowed{Bits: p[0]})
	if err != nil {
		return err
	}
	took, err := seconds(search)
	if err != nil {
		return err
	}
	r.figure(fmt.Sprintf("%s.%d.ms", name, queries), took*1000)
	r.figure(fmt.Sprintf("%s.%d.gb_per_s", name, queries), float64(rowBytes)*float64(rows)/took/1e9)
	return nil
}

func (r *run) searchHalves(rows, queries, width int) finder {
	return func(m *memory, a kernel.Answer, allowed kernel.Allowed) (func() error, error) {
		p, err := m.several(2*rows*width, 2*queries*width)
		return func() error {
			return r.kernels.Search(cu.NoStream, a, kernel.Vectors{Data: p[0], Count: rows, Width: width},
				kernel.Vectors{Data: p[1], Count: queries, Width: width}, allowed)
		}, err
	}
}

func (r *run) searchBytes(rows, queries, width int) finder {
	return func(m *memory, a kernel.Answer, allowed kernel.Allowed) (func() error, error) {
		p, err := m.several(rows*width, 4*rows, queries*width, 4*queries)
		return func() error {
			return r.kernels.Search(cu.NoStream, a, kernel.Vectors{Data: p[0], Scales: p[1], Count: rows, Width: width},
				kernel.Vectors{Data: p[2], Scales: p[3], Count: queries, Width: width}, allowed)
		}, err
	}
}

func (r *run) scan(rows, queries, width int) finder {
	return func(m *memory, a kernel.Answer, allowed kernel.Allowed) (func() error, error) {
		words, whole := width/32, (rows+31)/32*32 // codes lie in blocks of 32 rows
		p, err := m.several(4*whole*words, 4*rows, 16*queries*words, 12*queries)
		return func() error {
			return r.kernels.Scan(cu.NoStream, a, kernel.Codes{Bits: p[0], Factors: p[1], Words: words, Count: rows},
				kernel.Quantized{Planes: p[2], Numbers: p[3], Count: queries}, allowed)
		}, err
	}
}
