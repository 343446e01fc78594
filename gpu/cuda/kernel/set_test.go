//go:build nvidia

package kernel

import (
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"runtime"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"
	"gorgonia.org/cu"

	"sluice/kernels/cuda"
	"sluice/kernels/ref"
)

// bench is a context with the kernels, and memory that ends with the test.
type bench struct {
	*testing.T
	*Set
	rng *rand.Rand
}

func open(t *testing.T) *bench {
	t.Helper()
	runtime.LockOSThread()
	context, err := cu.Device(0).MakeContext(cu.SchedAuto)
	require.NoError(t, err)
	set, err := Load()
	require.NoError(t, err)
	t.Cleanup(func() {
		require.NoError(t, set.Close())
		require.NoError(t, context.Destroy())
		runtime.UnlockOSThread()
	})
	return &bench{t, set, rand.New(rand.NewPCG(1, 7))}
}

func room(b *bench, bytes int) cu.DevicePtr {
	b.Helper()
	p, err := cu.MemAlloc(int64(bytes))
	require.NoError(b, err)
	b.Cleanup(func() { require.NoError(b, cu.MemFree(p)) })
	return p
}

func upload[T any](b *bench, x []T) cu.DevicePtr {
	b.Helper()
	bytes := len(x) * int(unsafe.Sizeof(x[0]))
	p := room(b, bytes)
	require.NoError(b, cu.MemcpyHtoD(p, unsafe.Pointer(&x[0]), int64(bytes)))
	return p
}

func download[T any](b *bench, p cu.DevicePtr, n int) []T {
	b.Helper()
	x := make([]T, n)
	require.NoError(b, cu.MemcpyDtoH(unsafe.Pointer(&x[0]), p, int64(n*int(unsafe.Sizeof(x[0])))))
	return x
}

// normals are numbers of a scale, with an outlier of fifty times that in every hundred.
func (b *bench) normals(n int, scale float64) []float32 {
	x := make([]float32, n)
	for i := range x {
		x[i] = float32(b.rng.NormFloat64() * scale)
		if b.rng.IntN(100) == 0 {
			x[i] *= 50
		}
	}
	return x
}

// rounded makes the numbers of x what bfloat16 has, and returns their bits.
func rounded(x []float32) []uint16 {
	bits := make([]uint16, len(x))
	for i, v := range x {
		bits[i] = ref.BF16(v)
		x[i] = ref.FromBF16(bits[i])
	}
	return bits
}

func widened(bits []uint16) []float32 {
	x := make([]float32, len(bits))
	for i, v := range bits {
		x[i] = ref.FromBF16(v)
	}
	return x
}

// near asks that got is want within a share of it and an absolute error.
func near(b *bench, want, got []float32, share, absolute float64) {
	b.Helper()
	require.Len(b, got, len(want))
	for i, w := range want {
		bound := share*math.Abs(float64(w)) + absolute
		if d := math.Abs(float64(w) - float64(got[i])); !(d <= bound) {
			require.Failf(b, "wrong", "element %d of %d is %v, not %v (off by %g, of %g)", i, len(want), got[i], w, d, bound)
		}
	}
}

// halfStep is the error of rounding to bfloat16.
const halfStep = 1.0 / 256

func TestLoad(t *testing.T) {
	b := open(t)
	require.Contains(t, b.functions, b.products[0].Name)
	require.Contains(t, b.functions, b.products[1].Name)
	require.Equal(t, 2, b.processors)
	major, minor, err := cu.Device(0).ComputeCapability()
	require.NoError(t, err)
	images, err := cuda.Images(major, minor)
	require.NoError(t, err)
	module, err := cu.LoadData(images[0])
	require.Equal(t, len(images) == 1 || cu.Version() >= 13000, err == nil, "machine code on a driver of its age: %v", err)
	if err == nil {
		require.NoError(t, module.Unload())
	}
	x := upload(b, make([]float32, 1<<12))
	a := Answer{x, x, room(b, b.CandidateBytes(9, 1)), 1}
	vectors := Vectors{Data: x, Count: 9, Width: 384}
	require.NoError(t, b.Search(cu.NoStream, a, vectors, vectors, Allowed{x, 0}))
	require.NoError(t, cu.Synchronize())
}

// Other devices get the other module, and drivers of CUDA 13 machine code; those with less shared memory search in smaller groups.
func TestOtherDevices(t *testing.T) {
	for _, device := range [][2]string{{"80", "11080"}, {"89", "12020"}, {"90", "12000"}, {"90", "13000"}} {
		command := exec.Command(os.Args[0], "-test.run=^(TestLoad|TestSearchOfNothing|TestAttentionIgnoresNeighbours)$")
		command.Env = append(os.Environ(), "CUDA_EMULATOR_COMPUTE="+device[0], "CUDA_EMULATOR_VERSION="+device[1])
		out, err := command.CombinedOutput()
		require.NoError(t, err, "compute %s: %s", device[0], out)
	}
	command := exec.Command(os.Args[0], "-test.run=^TestLoad$")
	command.Env = append(os.Environ(), "CUDA_EMULATOR_COMPUTE=75")
	out, err := command.CombinedOutput()
	require.Error(t, err)
	require.Contains(t, string(out), "the device has compute capability 7.5; the kernels need 8.0")
}

func TestStartingAllocatesNothing(t *testing.T) {
	b := open(t)
	x := upload(b, make([]float32, 1<<12))
	d, a := Dense{Weight: x, Bias: x, In: 8, Out: 2}, Answer{x, x, room(b, b.CandidateBytes(1, 1)), 1}
	vectors := Vectors{Data: x, Count: 1, Width: 8}
	require.Zero(t, testing.AllocsPerRun(10, func() {
		_ = b.Multiply(cu.NoStream, x, x, 0, d, 1)
		_ = b.MultiplyBy(tensorVariant, cu.NoStream, x, x, 0, d, 1)
		_ = b.Attention(cu.NoStream, x, x, x, 3, Heads{Count: 1, Size: 32, Used: 32})
		_ = b.Search(cu.NoStream, a, vectors, vectors, Allowed{x, 0})
	}))
}
