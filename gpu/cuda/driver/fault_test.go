//go:build nvidia

package driver

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"gorgonia.org/cu"
)

// faults are launches, and what the emulated device has to say of each; "" is
// a right one.
var faults = map[string]struct {
	launch func(t *testing.T, m cu.Module) error
	says   string
	code   int
}{
	"in bounds":           {touch(255, 1), "", 0},
	"the last word":       {touch(252, 4), "", 0},
	"past the end":        {touch(256, 1), "illegal address: write of 1 bytes", 700},
	"across the end":      {touch(253, -4), "misaligned address: read of 4 bytes", 716},
	"misaligned":          {touch(2, 4), "misaligned address: write of 4 bytes", 716},
	"before the start":    {touch(-4, -4), "illegal address: read of 4 bytes", 700},
	"diverging barriers":  {simple("diverge", 64), "diverging barriers: threads wait in lines", 719},
	"a thread left":       {simple("leave_early", 64), "returned", 719},
	"ordered sum":         {flagged("sum", 64, 1), "", 0},
	"racing sum":          {flagged("sum", 64, 0), "race in shared memory", 719},
	"syncwarp":            {flagged("neighbours", 32, 1), "", 0},
	"no syncwarp":         {flagged("neighbours", 32, 0), "race in shared memory", 719},
	"shuffle is no fence": {flagged("neighbours", 32, 2), "race in shared memory", 719},
	"rotation":            {rotation(1), "", 0},
	"write after read":    {rotation(0), "race in shared memory", 719},
	"copy not waited for": {flagged("copy", 16, 0), "race in shared memory", 719},
	"atomic counts":       {simple("count", 96), "", 0},

	"tiles":                             {mistaken(0), "", 0},
	"a barrier without a fence":         {mistaken(1), "without a fence of the async proxy", 719},
	"a tile not waited for":             {mistaken(2), "a read of a tile that a tensor copy brings, which the thread has not waited for", 719},
	"more bytes than told of":           {mistaken(3), "1024 bytes arrive, 512 more than the barrier was told of", 719},
	"fewer bytes than told of":          {mistaken(4), "deadlock: thread", 719},
	"a tile on no boundary":             {mistaken(5), "which is no multiple of 128 bytes", 716},
	"a phase that never ends":           {mistaken(6), "waits for a phase of a barrier that lacks 64 arrivals and 0 bytes", 719},
	"a tile filled while it is read":    {mistaken(7), "race in shared memory", 719},
	"a block that leaves its copies":    {mistaken(8), "the block ends before its tensor copies", 719},
	"no tensor map":                     {mistaken(9), "is no tensor map", 719},
	"a barrier started twice":           {mistaken(10), "is started a second time", 719},
	"written over while others read it": {mistaken(11), "race in shared memory", 719},
	"one arrival too many":              {mistaken(12), "one arrival more than the 1 of the barrier's phase", 719},
	"no barrier":                        {mistaken(13), "no barrier has been started", 719},
	"a tensor map in global memory":     {mistaken(14), "a tensor map in global memory", 719},
}

// mistaken launches tile with one of its mistakes.
func mistaken(mistake int) func(*testing.T, cu.Module) error {
	return func(t *testing.T, m cu.Module) error {
		return launchTile(t, m, upload(t, make([]float32, 8*64)), mistake)
	}
}

func touch(at int64, bytes int) func(*testing.T, cu.Module) error {
	return func(t *testing.T, m cu.Module) error {
		x := upload(t, make([]float32, 64))
		return Launch(lookUp(t, m, "touch"), cu.NoStream, Size{X: 1}, Size{X: 1}, 0, Pointer(x), uint64(at), Int(bytes))
	}
}

func simple(name string, threads int) func(*testing.T, cu.Module) error {
	return func(t *testing.T, m cu.Module) error {
		y := upload(t, make([]float32, 96))
		return Launch(lookUp(t, m, name), cu.NoStream, Size{X: 1}, Size{X: uint32(threads)}, 0, Pointer(y))
	}
}

func flagged(name string, threads, flag int) func(*testing.T, cu.Module) error {
	return func(t *testing.T, m cu.Module) error {
		x, y := upload(t, iota32(64)), upload(t, make([]float32, 64))
		return Launch(lookUp(t, m, name), cu.NoStream, Size{X: 1}, Size{X: uint32(threads)}, 0, Pointer(y), Pointer(x), Int(flag))
	}
}

func rotation(barrier int) func(*testing.T, cu.Module) error {
	return func(t *testing.T, m cu.Module) error {
		x := upload(t, iota32(64))
		return Launch(lookUp(t, m, "rotate"), cu.NoStream, Size{X: 1}, Size{X: 64}, 256, Pointer(x), Int(barrier))
	}
}

// A fault poisons its process, so every case has one, and some seeds each.
func TestFaults(t *testing.T) {
	for name, fault := range faults {
		t.Run(name, func(t *testing.T) {
			for seed := range 4 {
				command := exec.Command(os.Args[0], "-test.run=^TestFault$")
				command.Env = append(os.Environ(), "DRIVER_TEST_FAULT="+name, fmt.Sprint("CUDA_EMULATOR_SEED=", seed))
				out, err := command.CombinedOutput()
				require.NoErrorf(t, err, "seed %d: %s", seed, out)
				require.Equal(t, fault.code != 0, strings.Contains(string(out), "emulated CUDA device: "), "%s", out)
			}
		})
	}
}

// TestFault is one case, in a process that TestFaults starts.
func TestFault(t *testing.T) {
	name := os.Getenv("DRIVER_TEST_FAULT")
	if name == "" {
		return
	}
	fault := faults[name]
	module := open(t)
	err := fault.launch(t, module)
	require.NoError(t, err)
	err = cu.Synchronize()
	if fault.code == 0 {
		require.NoError(t, err)
		return
	}
	require.Error(t, err)
	require.Contains(t, Text(fault.code), fault.says)
	_, again := cu.MemAlloc(4)
	require.Equal(t, err, again, "a fault stays")
	var own *Error
	require.ErrorAs(t, AllowShared(cu.Function{}, 0), &own)
	require.Equal(t, fault.code, own.Code)
}
