// Package cuda holds the CUDA kernels as PTX, which a driver translates for its
// device, and for compute 9.0 as machine code too, which saves that. The sources
// are the .cu files beside it; a file tells a kernel's contract. Package
// gpu/cuda/kernel starts them.
//
// Modules are committed, so that building Sluice takes no toolchain of NVIDIA's;
// a test compiles the sources and compares. After a change:
//
//	go test ./kernels/cuda -rewrite
package cuda

import (
	"embed"
	"fmt"

	"github.com/klauspost/compress/zstd"
)

//go:embed ptx/*.zst
var modules embed.FS

// targets are the modules' names, the best first, and the compute capability
// that each wants: a or more, or exactly that.
var targets = []struct {
	name    string
	compute int
	exactly bool
	files   []string // what there is of the module, the best first
}{
	{"sm_90a", 90, true, []string{"sm_90a.cubin", "sm_90a.ptx"}},
	{"sm_80", 80, false, []string{"sm_80.ptx"}},
}

// Images returns the module for a device of compute capability major.minor, as
// a driver loads it: in machine code, if there is any, which drivers refuse that
// are older than the compiler; and then in PTX.
func Images(major, minor int) (images []string, err error) {
	name, err := Module(major, minor)
	if err != nil {
		return nil, err
	}
	for _, t := range targets {
		for _, file := range t.files {
			if t.name != name {
				continue
			}
			image, err := unpack(file)
			if err != nil {
				return nil, err
			}
			images = append(images, image)
		}
	}
	return images, nil
}

// Module names it, as in "sm_90a".
func Module(major, minor int) (string, error) {
	compute := 10*major + minor
	for _, t := range targets {
		if compute == t.compute || compute > t.compute && !t.exactly {
			return t.name, nil
		}
	}
	return "", fmt.Errorf("kernels/cuda: the device has compute capability %d.%d; the kernels need 8.0", major, minor)
}

func unpack(file string) (string, error) {
	packed, err := modules.ReadFile("ptx/" + file + ".zst")
	if err != nil {
		return "", fmt.Errorf("kernels/cuda: %w", err)
	}
	decoder, err := zstd.NewReader(nil)
	if err != nil {
		return "", fmt.Errorf("kernels/cuda: %w", err)
	}
	defer decoder.Close()
	image, err := decoder.DecodeAll(packed, nil)
	if err != nil {
		return "", fmt.Errorf("kernels/cuda: module %s: %w", file, err)
	}
	return string(image), nil
}
