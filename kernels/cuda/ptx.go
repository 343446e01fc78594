// Package cuda holds the CUDA kernels as PTX, which a driver translates for its
// device. The sources are the .cu files beside it; a file tells a kernel's
// contract. Package gpu/cuda/kernel starts them.
//
// The PTX is committed, so that building Sluice takes no toolchain of NVIDIA's;
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
}{
	{"sm_90a", 90, true},
	{"sm_80", 80, false},
}

// PTX returns the module for a device of compute capability major.minor.
func PTX(major, minor int) (string, error) {
	name, err := Module(major, minor)
	if err != nil {
		return "", err
	}
	return unpack(name)
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

func unpack(name string) (string, error) {
	packed, err := modules.ReadFile("ptx/" + name + ".ptx.zst")
	if err != nil {
		return "", fmt.Errorf("kernels/cuda: %w", err)
	}
	decoder, err := zstd.NewReader(nil)
	if err != nil {
		return "", fmt.Errorf("kernels/cuda: %w", err)
	}
	defer decoder.Close()
	ptx, err := decoder.DecodeAll(packed, nil)
	if err != nil {
		return "", fmt.Errorf("kernels/cuda: module %s: %w", name, err)
	}
	return string(ptx), nil
}
