//go:build nvidia

package driver

import (
	"os"
	"runtime"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"
	"gorgonia.org/cu"
)

// open makes a context on the emulated device, and loads the emulator's examples.
func open(t *testing.T) cu.Module {
	t.Helper()
	runtime.LockOSThread()
	context, err := cu.Device(0).MakeContext(cu.SchedAuto)
	require.NoError(t, err)
	t.Cleanup(func() {
		_ = context.Destroy()
		runtime.UnlockOSThread()
	})
	ptx, err := os.ReadFile("../../../bin/cuda/examples.ptx")
	require.NoError(t, err)
	module, err := cu.LoadData(string(ptx))
	require.NoError(t, err)
	return module
}

func upload(t *testing.T, x []float32) cu.DevicePtr {
	t.Helper()
	p, err := cu.MemAlloc(int64(4 * len(x)))
	require.NoError(t, err)
	t.Cleanup(func() { _ = cu.MemFree(p) })
	require.NoError(t, cu.MemcpyHtoD(p, unsafe.Pointer(&x[0]), int64(4*len(x))))
	return p
}

func download(t *testing.T, p cu.DevicePtr, n int) []float32 {
	t.Helper()
	x := make([]float32, n)
	require.NoError(t, cu.MemcpyDtoH(unsafe.Pointer(&x[0]), p, int64(4*n)))
	return x
}

func lookUp(t *testing.T, m cu.Module, name string) cu.Function {
	t.Helper()
	f, err := m.Function(name)
	require.NoError(t, err)
	return f
}

func iota32(n int) []float32 {
	x := make([]float32, n)
	for i := range x {
		x[i] = float32(i)
	}
	return x
}

// The smallest use of cu as it is published, by its own Launch.
func TestCuRunsAKernel(t *testing.T) {
	devices, err := cu.NumDevices()
	require.NoError(t, err)
	require.Equal(t, 1, devices)
	name, err := cu.Device(0).Name()
	require.NoError(t, err)
	require.Equal(t, "emulated device", name)
	add := lookUp(t, open(t), "add")
	x, y, n := upload(t, iota32(1000)), upload(t, iota32(1000)), int64(1000)
	parameters := []unsafe.Pointer{unsafe.Pointer(&y), unsafe.Pointer(&x), unsafe.Pointer(&n)}
	require.NoError(t, add.Launch(8, 1, 1, 128, 1, 1, 0, cu.NoStream, parameters))
	require.NoError(t, cu.Synchronize())
	for i, v := range download(t, y, 1000) {
		require.Equal(t, float32(2*i), v)
	}
}

func TestLaunch(t *testing.T) {
	add := lookUp(t, open(t), "add")
	x, y := upload(t, iota32(100)), upload(t, iota32(100))
	launch := func() {
		require.NoError(t, Launch(add, cu.NoStream, Size{X: 2}, Size{X: 64}, 0, Pointer(y), Pointer(x), Int(100)))
	}
	launch()
	require.NoError(t, cu.Synchronize())
	require.Equal(t, float32(198), download(t, y, 100)[99])
	require.Zero(t, testing.AllocsPerRun(20, func() {
		_ = Launch(add, cu.NoStream, Size{X: 2}, Size{X: 64}, 0, Pointer(y), Pointer(x), Int(100))
	}))
}
