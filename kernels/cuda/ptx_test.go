package cuda

import (
	"debug/elf"
	"encoding/binary"
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

var rewrite = flag.Bool("rewrite", false, "write the modules that the sources give")

// toolchain reports whether the compilers are installed, or may be: CI has to have them.
func toolchain() bool {
	cache, err := hub.CacheDir()
	if err == nil {
		_, err = os.Stat(filepath.Join(cache, "cuda", "ready"))
	}
	return err == nil || os.Getenv("SLUICE_REQUIRE_ALL") == "1"
}

// compile returns the modules' files that the sources give, or skips where there is no toolchain.
func compile(t *testing.T) map[string]string {
	t.Helper()
	if !toolchain() {
		t.Skip("SKIPPED: the modules are not compared with their sources, as there is no CUDA toolchain (make -C kernels/cuda toolchain)")
	}
	log, err := exec.Command("make", "--silent", "ptx").CombinedOutput()
	require.NoError(t, err, "%s", log)
	modules := map[string]string{}
	for _, target := range targets {
		for _, file := range target.files {
			image, err := os.ReadFile("../../bin/cuda/" + file)
			require.NoError(t, err)
			modules[file] = string(image)
		}
	}
	return modules
}

func pack(t *testing.T, file, image string) {
	t.Helper()
	encoder, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedBestCompression))
	require.NoError(t, err)
	require.NoError(t, os.WriteFile("ptx/"+file+".zst", encoder.EncodeAll([]byte(image), nil), 0o644))
}

// What is committed is what the sources give, byte by byte.
func TestModulesAreThoseOfTheSources(t *testing.T) {
	for file, want := range compile(t) {
		if *rewrite {
			pack(t, file, want)
			continue
		}
		got, err := unpack(file)
		require.NoError(t, err)
		require.True(t, got == want, "%s differs from what the sources give: go test ./kernels/cuda -rewrite", file)
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
		ptx, err := unpack(name + ".ptx")
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

func TestImagesForDevice(t *testing.T) {
	for compute, target := range map[[2]int]string{{8, 0}: "sm_80", {8, 9}: "sm_80", {9, 0}: "sm_90a", {10, 0}: "sm_80", {12, 1}: "sm_80"} {
		images, err := Images(compute[0], compute[1])
		require.NoError(t, err)
		require.True(t, strings.Contains(images[len(images)-1], ".target "+target+"\n"), "%v", compute)
		require.Equal(t, target == "sm_90a", strings.HasPrefix(images[0], "\x7fELF"), "%v", compute)
	}
	_, err := Images(7, 5)
	require.ErrorContains(t, err, "need 8.0")
}

// The machine code has the kernels of its PTX, for compute 9.0.
func TestMachineCode(t *testing.T) {
	image, err := unpack("sm_90a.cubin")
	require.NoError(t, err)
	file, err := elf.NewFile(strings.NewReader(image))
	require.NoError(t, err)
	require.Equal(t, elf.Machine(190), file.Machine) // EM_CUDA
	require.Equal(t, uint32(90), binary.LittleEndian.Uint32([]byte(image[0x30:]))>>8&0xff, "the flags name the target")
	var got []string
	for _, s := range file.Sections {
		if name, ok := strings.CutPrefix(s.Name, ".nv.info."); ok {
			got = append(got, name)
		}
	}
	slices.Sort(got)
	require.Equal(t, kernels(t, "sm_90a"), got)
}
