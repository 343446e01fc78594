//go:build nvidia

package kernel

import (
	"errors"
	"fmt"
	"slices"

	"gorgonia.org/cu"

	"sluice/gpu/cuda/driver"
	"sluice/kernels/cuda"
)

// Set is the kernels, loaded into a context. Its methods queue work in a
// stream and return at once; the memory that they are given must live until it
// has run. They allocate nothing, and trust their callers' shapes.
type Set struct {
	module     cu.Module
	processors int // of the device
	shared     int // bytes of dynamic shared memory that a block may have
	functions  map[string]cu.Function
	products   [2]Variant // for few rows and for many
	variants   []Variant  // these, and what else the device can run
}

// Load loads the kernels for the device of the current context.
func Load() (*Set, error) {
	device, err := cu.CurrentDevice()
	if err != nil {
		return nil, fmt.Errorf("kernel: %w", err)
	}
	var has [4]int
	for i, attribute := range []cu.DeviceAttribute{
		cu.ComputeCapabilityMajor, cu.ComputeCapabilityMinor, cu.MultiprocessorCount, driver.SharedPerBlock,
	} {
		if has[i], err = device.Attribute(attribute); err != nil {
			return nil, fmt.Errorf("kernel: %w", err)
		}
	}
	module, err := load(has[0], has[1])
	if err != nil {
		return nil, err
	}
	s := &Set{module: module, processors: has[2], shared: has[3] - declared, functions: map[string]cu.Function{}}
	s.products, s.variants = variants80, variants80[:]
	if has[0] == 9 && has[1] == 0 {
		s.products = variants90
		s.variants = append(variants90[:], tensorVariant)
	}
	s.variants = slices.DeleteFunc(slices.Clone(s.variants), func(v Variant) bool { return v.shared > s.shared })
	if err := s.find(); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// load loads the first image that the driver takes.
func load(major, minor int) (cu.Module, error) {
	images, err := cuda.Images(major, minor)
	if err != nil {
		return cu.Module{}, err
	}
	var refused []error
	for _, image := range images {
		module, err := cu.LoadData(image)
		if err == nil {
			return module, nil
		}
		refused = append(refused, err)
	}
	return cu.Module{}, fmt.Errorf("kernel: the driver does not take the kernels: %w", errors.Join(refused...))
}

// names are the kernels of every device, and whether one may need more than 48 KiB of shared memory.
var names = map[string]bool{
	"embed": false, "layernorm": false, "gemm_1": false, "gemm_2": false, "gemm_f32": false, "attention_32": false, "attention_64": false,
	"attention_32_near": false, "attention_64_near": false, "rope": false,
	"pool": false, "classify": false, "maxsim": true, "merge": false, "scan": true,
	"search_f16_8": true, "search_f16_64": true, "search_i8_8": true, "search_i8_64": true,
}

// declared is what kernels have of shared memory without asking, and the driver for itself.
const declared = 1 << 10

func (s *Set) find() error {
	for name, wide := range names {
		if err := s.add(name, wide); err != nil {
			return err
		}
	}
	for _, v := range s.variants {
		if err := s.add(v.Name, v.shared > 48<<10); err != nil {
			return err
		}
	}
	return nil
}

func (s *Set) add(name string, wide bool) error {
	f, err := s.module.Function(name)
	if err != nil {
		return fmt.Errorf("kernel: %s: %w", name, err)
	}
	s.functions[name] = f
	if !wide {
		return nil
	}
	if err := driver.AllowShared(f, s.shared); err != nil {
		return fmt.Errorf("kernel: %s with %d KiB of shared memory: %w", name, s.shared>>10, err)
	}
	return nil
}

// Close unloads the kernels.
func (s *Set) Close() error { return s.module.Unload() }

func ceil(n, by int) uint32 { return uint32((n + by - 1) / by) }
