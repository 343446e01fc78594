package cuda

import (
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/require"

	"sluice/model/hub"
)

var rewrite = flag.Bool("rewrite", false, "write the PTX that the sources give")

// toolchain reports whether the compilers are installed, or may be: CI has to have them.
func toolchain() bool {
	cache, err := hub.CacheDir()
	if err == nil {
		_, err = os.Stat(filepath.Join(cache, "cuda", "ready"))
	}
	return err == nil || os.Getenv("SLUICE_REQUIRE_ALL") == "1"
}

// compile returns the modules that the sources give, or skips where there is no toolchain.
func compile(t *testing.T) map[string]string {
	t.Helper()
	if !toolchain() {
		t.Skip("SKIPPED: the PTX is not compared with its sources, as there is no CUDA toolchain (make -C kernels/cuda toolchain)")
	}
	log, err := exec.Command("make", "--silent", "ptx").CombinedOutput()
	require.NoError(t, err, "%s", log)
	modules := map[string]string{}
	for _, target := range targets {
		ptx, err := os.ReadFile("../../bin/cuda/" + target.name + ".ptx")
		require.NoError(t, err)
		modules[target.name] = string(ptx)
	}
	return modules
}

func pack(t *testing.T, name, ptx string) {
	t.Helper()
	encoder, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedBestCompression))
	require.NoError(t, err)
	require.NoError(t, os.WriteFile("ptx/"+name+".ptx.zst", encoder.EncodeAll([]byte(ptx), nil), 0o644))
}

// What is committed is what the sources give, byte by byte.
func TestPTXIsThatOfTheSources(t *testing.T) {
	for name, want := range compile(t) {
		if *rewrite {
			pack(t, name, want)
			continue
		}
		got, err := unpack(name)
		require.NoError(t, err)
		require.True(t, got == want, "%s differs from what the sources give: go test ./kernels/cuda -rewrite", name)
	}
}

// kernels lists those of the sources for a target: files that end in _90a.cu are for that one only.
func kernels(t *testing.T, target string) (names []string) {
	t.Helper()
	sources, err := filepath.Glob("*.cu")
	require.NoError(t, err)
	require.NotEmpty(t, sources)
	declaration := regexp.MustCompile(`__global__ void (?:__launch_bounds__\([^)]*\) )?(\w+)\(`)
	for _, source := range sources {
		if strings.HasSuffix(source, "_90a.cu") && target != "sm_90a" {
			continue
		}
		text, err := os.ReadFile(source)
		require.NoError(t, err)
		for _, match := range declaration.FindAllStringSubmatch(string(text), -1) {
			names = append(names, match[1])
		}
	}
	slices.Sort(names)
	return names
}

// Each module has every kernel of its sources, and says a version of PTX that old drivers read.
func TestModules(t *testing.T) {
	for name, version := range map[string]string{"sm_80": ".version 7.0\n", "sm_90a": ".version 8.0\n"} {
		ptx, err := unpack(name)
		require.NoError(t, err)
		require.Contains(t, ptx, version)
		require.Contains(t, ptx, ".target "+name+"\n")
		var got []string
		for _, match := range regexp.MustCompile(`\.entry (\w+)\(`).FindAllStringSubmatch(ptx, -1) {
			got = append(got, match[1])
		}
		slices.Sort(got)
		require.Equal(t, kernels(t, name), got, name)
	}
}

func TestPTXForDevice(t *testing.T) {
	for compute, target := range map[[2]int]string{{8, 0}: "sm_80", {8, 9}: "sm_80", {9, 0}: "sm_90a", {10, 0}: "sm_80", {12, 1}: "sm_80"} {
		ptx, err := PTX(compute[0], compute[1])
		require.NoError(t, err)
		require.True(t, strings.Contains(ptx, ".target "+target+"\n"), "%v", compute)
	}
	_, err := PTX(7, 5)
	require.ErrorContains(t, err, "need 8.0")
}
