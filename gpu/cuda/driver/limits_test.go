//go:build nvidia

package driver

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"
	"gorgonia.org/cu"
)

func TestSharedMemoryIsAskedFor(t *testing.T) {
	f := lookUp(t, open(t), "rotate")
	x := upload(t, iota32(64))
	launch := func(shared int) error {
		return Launch(f, cu.NoStream, Size{X: 1}, Size{X: 64}, shared, Pointer(x), Int(1))
	}
	require.NoError(t, launch(48<<10))
	require.Error(t, launch(64<<10))
	require.NoError(t, AllowShared(f, 64<<10))
	require.NoError(t, launch(64<<10))
	require.Error(t, AllowShared(f, 228<<10))
	require.NoError(t, cu.Synchronize())
}

func TestBadCallsAreErrors(t *testing.T) {
	m := open(t)
	_, err := m.Function("nonesuch")
	require.Error(t, err)
	_, err = cu.LoadData(".version 9.9\n.target sm_80\n")
	require.Error(t, err)
	_, err = cu.LoadData(".version 7.0\n.target sm_100\n")
	require.Error(t, err)
	_, err = cu.MemAlloc(1 << 40)
	require.Equal(t, cu.OutOfMemory, err)
	p, x := upload(t, iota32(3)), make([]float32, 4)
	require.Error(t, cu.MemcpyDtoH(unsafe.Pointer(&x[0]), p, 16))
	require.Error(t, cu.MemcpyHtoD(p+4, unsafe.Pointer(&x[0]), 12))
	require.Error(t, cu.MemFree(p+4))
	require.Error(t, Launch(lookUp(t, m, "add"), cu.NoStream, Size{X: 1}, Size{X: 1025}, 0, Pointer(p), Pointer(p), Int(1)))
}

func TestTensorMap(t *testing.T) {
	open(t)
	p := upload(t, make([]float32, 64*64))
	matrix := Matrix{Address: p, Rows: 64, Columns: 128, Stride: 256, BoxRows: 64, BoxColumns: 64}
	_, err := NewTensorMap(matrix)
	require.NoError(t, err)
	for name, spoil := range map[string]func(m *Matrix){
		"a narrow box":          func(m *Matrix) { m.BoxColumns = 32 },
		"a wide box":            func(m *Matrix) { m.BoxColumns = 128 },
		"a high box":            func(m *Matrix) { m.BoxRows = 257 },
		"an empty box":          func(m *Matrix) { m.BoxRows = 0 },
		"no rows":               func(m *Matrix) { m.Rows = 0 },
		"too many columns":      func(m *Matrix) { m.Columns = 1<<32 + 1 },
		"rows on no boundary":   func(m *Matrix) { m.Stride = 200 },
		"rows too far apart":    func(m *Matrix) { m.Stride = 1 << 40 },
		"a matrix on no border": func(m *Matrix) { m.Address += 4 },
	} {
		bad := matrix
		spoil(&bad)
		_, err = NewTensorMap(bad)
		require.Error(t, err, name)
	}
	require.Zero(t, testing.AllocsPerRun(10, func() { _, _ = NewTensorMap(matrix) }))
}

// The program starts where there is no driver, or a broken one, and finds no device.
func TestWithoutDriver(t *testing.T) {
	if os.Getenv("DRIVER_TEST_WITHOUT") != "" {
		devices, err := cu.NumDevices()
		_, alloc := cu.MemAlloc(4)
		fmt.Printf("%d devices (%v), version %d, status %d, %v\n", devices, err, cu.Version(), Status(), alloc)
		return
	}
	for library, want := range map[string]string{
		"/nonexistent/libcuda.so.1": "0 devices (<nil>), version 0, status 100, NoDevice",
		"libm.so.6":                 "0 devices (<nil>), version 0, status 801, NotSupported",
	} {
		command := exec.Command(os.Args[0], "-test.run=^TestWithoutDriver$")
		command.Env = append(os.Environ(), "DRIVER_TEST_WITHOUT=1", "CUDA_DRIVER_LIBRARY="+library)
		out, err := command.CombinedOutput()
		require.NoError(t, err, "%s", out)
		require.True(t, strings.HasPrefix(string(out), want), "%s: %s", library, out)
	}
}

// Nothing of NVIDIA's is linked in.
func TestLinksWithoutDriver(t *testing.T) {
	out, err := exec.Command("ldd", os.Args[0]).Output()
	require.NoError(t, err)
	require.NotContains(t, string(out), "cuda")
}
