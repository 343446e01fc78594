package wire

import (
	"encoding/json"
	"fmt"
)

// Hello is what a worker says of its device.
type Hello struct {
	Device  Device
	Process int // the worker's
}

// Device describes one.
type Device struct {
	Ordinal    int    `json:"ordinal"`
	Name       string `json:"name"`
	Memory     int64  `json:"memory_bytes"`
	Free       int64  `json:"free_bytes"` // when it was asked
	Compute    string `json:"compute"`    // capability, as in "9.0"
	Processors int    `json:"processors"`
	Kernels    string `json:"kernels"` // the module that it runs, as in "sm_90a"
	Driver     string `json:"driver"`  // the CUDA version that it speaks, as in "13.0"
}

// NoKernels stands in Device.Kernels where the device is too old for them.
const NoKernels = "none"

// Usable reports whether the kernels run on the device.
func (d Device) Usable() bool { return d.Kernels != NoKernels }

// Load has the worker read a model's files, once; requests name it by Number.
// The files must have the digest that the daemon knows. Kernels are those for
// products of the model, by ascending rows; where none is named, the worker decides.
type Load struct {
	Number            int
	Directory, Digest string
	Kernels           []Tried
}

// Loaded is a model or memory that is there, and what it takes of the device's.
type Loaded struct {
	Bytes int64
}

// AppendStatus makes a frame in place of dst that asks for a Hello.
func AppendStatus(dst []byte, id uint32) ([]byte, error) { return seal(begin(dst), KindStatus, id) }

// AppendJSON makes a frame of a Hello, Load or Loaded in place of dst.
func AppendJSON(dst []byte, kind Kind, id uint32, message any) ([]byte, error) {
	data, err := json.Marshal(message)
	if err != nil {
		return nil, fmt.Errorf("wire: %w", err)
	}
	return seal(append(begin(dst), data...), kind, id)
}

// DecodeJSON reads the message of a frame.
func DecodeJSON(f Frame, message any) error {
	if err := json.Unmarshal(f.Payload, message); err != nil {
		return fmt.Errorf("%w: %w", ErrFrame, err)
	}
	return nil
}
