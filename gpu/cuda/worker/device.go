//go:build nvidia

package worker

import (
	"errors"
	"fmt"

	"gorgonia.org/cu"

	"sluice/gpu/cuda/driver"
	"sluice/gpu/cuda/kernel"
	"sluice/gpu/cuda/wire"
	"sluice/kernels/cuda"
)

// ErrNoDevice is wrapped where there is no device of that number, or none at all.
var ErrNoDevice = errors.New("no CUDA device")

// Device is one GPU, with the kernels loaded. Goroutines that use it, its
// models and slots have it bound.
type Device struct {
	device  cu.Device
	context cu.CUContext
	kernels *kernel.Set
}

// Devices describes those that there are; an error if there are none says why.
func Devices() ([]wire.Device, error) {
	count, err := cu.NumDevices()
	if err == nil && count == 0 {
		err = missing()
	}
	if err != nil {
		return nil, err
	}
	devices := make([]wire.Device, count)
	for i := range devices {
		if devices[i], err = describe(i); err != nil {
			return nil, fmt.Errorf("device %d: %w", i, err)
		}
	}
	return devices, nil
}

func missing() error {
	code := driver.Status()
	if code == 0 || code == int(cu.NoDevice) {
		return fmt.Errorf("%w: no NVIDIA driver (libcuda.so.1), or no GPU that it knows", ErrNoDevice)
	}
	return fmt.Errorf("%w: the driver does not start: CUDA error %d", ErrNoDevice, code)
}

func describe(ordinal int) (wire.Device, error) {
	d := wire.Device{Ordinal: ordinal, Driver: fmt.Sprintf("%d.%d", cu.Version()/1000, cu.Version()%1000/10)}
	device, err := cu.GetDevice(ordinal)
	if err != nil {
		return d, err
	}
	major, minor, err := device.ComputeCapability()
	if err != nil {
		return d, err
	}
	d.Compute = fmt.Sprintf("%d.%d", major, minor)
	if d.Kernels, err = cuda.Module(major, minor); err != nil {
		d.Kernels = wire.NoKernels
	}
	if d.Processors, err = device.Attribute(cu.MultiprocessorCount); err != nil {
		return d, err
	}
	if d.Memory, err = device.TotalMem(); err != nil {
		return d, err
	}
	d.Name, err = device.Name()
	return d, err
}

// Open prepares a device, and binds it to the calling goroutine.
func Open(ordinal int) (*Device, error) {
	devices, err := Devices()
	if err != nil {
		return nil, err
	}
	if ordinal < 0 || ordinal >= len(devices) {
		return nil, fmt.Errorf("%w %d: there are %d, counted from 0", ErrNoDevice, ordinal, len(devices))
	}
	d := &Device{device: cu.Device(ordinal)}
	if d.context, err = d.device.MakeContext(cu.SchedAuto); err != nil {
		return nil, fmt.Errorf("device %d: %w", ordinal, err)
	}
	if err := d.Bind(); err != nil {
		return nil, err
	}
	if d.kernels, err = kernel.Load(); err != nil {
		return nil, errors.Join(err, d.context.Destroy())
	}
	return d, nil
}

// Bind ties the calling goroutine to its thread, and the device to that.
func (d *Device) Bind() error { return d.context.Lock() }

// Describe says how the device is now.
func (d *Device) Describe() (wire.Device, error) {
	w, err := describe(int(d.device))
	if err != nil {
		return w, err
	}
	w.Free, _, err = cu.MemInfo()
	return w, err
}

// Close ends the device's context, and with it all that was made on it.
func (d *Device) Close() error { return d.context.Destroy() }
