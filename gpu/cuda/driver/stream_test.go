//go:build nvidia

package driver

import (
	"fmt"
	"os"
	"os/exec"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"
	"gorgonia.org/cu"
)

// twoStreams adds x to y in one stream after a copy to x in another, and says
// what y is then. What orders the two is up to the caller.
func twoStreams(t *testing.T, ordered bool) float32 {
	m := open(t)
	add := lookUp(t, m, "add")
	host, err := NewHostMemory(4)
	require.NoError(t, err)
	defer func() { require.NoError(t, host.Free()) }()
	*(*float32)(host.Pointer()) = 1
	x, y := upload(t, []float32{5}), upload(t, []float32{10})
	copies, err := cu.MakeStream(cu.NonBlocking)
	require.NoError(t, err)
	kernels, err := cu.MakeStream(cu.NonBlocking)
	require.NoError(t, err)
	copied, err := cu.MakeEvent(cu.DefaultEvent)
	require.NoError(t, err)
	require.NoError(t, cu.MemcpyHtoDAsync(x, host.Pointer(), 4, copies))
	require.NoError(t, copied.Record(copies))
	if ordered {
		require.NoError(t, kernels.Wait(copied, 0))
	}
	require.NoError(t, Launch(add, kernels, Size{X: 1}, Size{X: 32}, 0, Pointer(y), Pointer(x), Int(1)))
	require.NoError(t, kernels.Synchronize())
	return download(t, y, 1)[0]
}

// Streams run in any order unless events order them: of some seeds, at least
// one shows the missing wait.
func TestStreamOrder(t *testing.T) {
	if ordered := os.Getenv("DRIVER_TEST_ORDERED"); ordered != "" {
		fmt.Printf("y = %v\n", twoStreams(t, ordered == "yes"))
		return
	}
	results := map[string]map[string]bool{"yes": {}, "no": {}}
	for ordered, seen := range results {
		for seed := range 8 {
			command := exec.Command(os.Args[0], "-test.run=^TestStreamOrder$")
			command.Env = append(os.Environ(), "DRIVER_TEST_ORDERED="+ordered, fmt.Sprint("CUDA_EMULATOR_SEED=", seed))
			out, err := command.CombinedOutput()
			require.NoErrorf(t, err, "seed %d: %s", seed, out)
			var y string
			_, err = fmt.Sscanf(string(out), "y = %s", &y)
			require.NoError(t, err)
			seen[y] = true
		}
	}
	require.Equal(t, map[string]bool{"11": true}, results["yes"])
	require.Equal(t, map[string]bool{"11": true, "15": true}, results["no"])
}

// The default stream waits for the others, and they for it.
func TestDefaultStream(t *testing.T) {
	add := lookUp(t, open(t), "add")
	x, y := upload(t, []float32{1}), upload(t, []float32{1})
	s, err := cu.MakeStream(cu.DefaultStream)
	require.NoError(t, err)
	for _, in := range []cu.Stream{s, cu.NoStream, s} { // y = 2, x = 3, y = 5
		to, from := y, x
		if in == cu.NoStream {
			to, from = x, y
		}
		require.NoError(t, Launch(add, in, Size{X: 1}, Size{X: 32}, 0, Pointer(to), Pointer(from), Int(1)))
	}
	require.NoError(t, s.Synchronize())
	require.Equal(t, float32(5), download(t, y, 1)[0])
}

// What an asynchronous copy into shared memory leaves out is zero.
func TestAsynchronousCopy(t *testing.T) {
	f := lookUp(t, open(t), "copy")
	x, y := upload(t, iota32(16)), upload(t, make([]float32, 16))
	require.NoError(t, Launch(f, cu.NoStream, Size{X: 1}, Size{X: 16}, 0, Pointer(y), Pointer(x), Int(1)))
	want := iota32(16)
	want[14], want[15] = 0, 0
	require.Equal(t, want, download(t, y, 16))
}

// Pinned memory is read when the copy runs; other memory before the call returns.
func TestHostMemory(t *testing.T) {
	open(t)
	host, err := NewHostMemory(8)
	require.NoError(t, err)
	require.Len(t, host.Bytes(), 8)
	pageable := []float32{1, 2}
	pinned := unsafe.Slice((*float32)(host.Pointer()), 2)
	copy(pinned, pageable)
	p := upload(t, []float32{0, 0, 0, 0})
	s, err := cu.MakeStream(cu.NonBlocking)
	require.NoError(t, err)
	require.NoError(t, cu.MemcpyHtoDAsync(p, unsafe.Pointer(&pageable[0]), 8, s))
	pageable[0] = 9
	require.NoError(t, cu.MemcpyHtoDAsync(p+8, host.Pointer(), 8, s))
	pinned[0] = 9
	require.NoError(t, s.Synchronize())
	require.Equal(t, []float32{1, 2, 9, 2}, download(t, p, 4))
	require.NoError(t, host.Free())
	require.Error(t, host.Free())
}
