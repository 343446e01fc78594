package figures

import (
	"bufio"
	"context"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"
)

// Environment says where figures were measured. Kernels is the kernel set in
// use ("ref", "avx512", …), which only the caller knows.
type Environment struct {
	CPU     string `json:"cpu"`
	GPU     string `json:"gpu"`
	Kernels string `json:"kernels"`
	Go      string `json:"go"`
	OS      string `json:"os"`
	Cores   int    `json:"cores"`

	// Governor chooses the processor's frequency ("performance", "powersave", …);
	// "unknown" where the machine does not say, as most virtual ones.
	Governor string `json:"governor,omitempty"`
}

// Local describes this machine.
func Local(kernels string) Environment {
	return Environment{
		CPU:     procField("/proc/cpuinfo", "model name"),
		GPU:     localGPU(),
		Kernels: kernels,
		Go:      runtime.Version(),
		OS:      runtime.GOOS + "/" + runtime.GOARCH,
		Cores:   runtime.NumCPU(),

		Governor: governor("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"),
	}
}

func governor(path string) string {
	name, err := os.ReadFile(path)
	if err != nil {
		return "unknown"
	}
	return strings.TrimSpace(string(name))
}

// modules are the versions of what the binary was built from.
func modules() map[string]string {
	versions := map[string]string{}
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, m := range info.Deps {
			if m.Replace != nil {
				m = m.Replace
			}
			versions[m.Path] = m.Version
		}
	}
	return versions
}

// localGPU is the model of the first NVIDIA device, "none" without one.
func localGPU() string {
	files, err := filepath.Glob("/proc/driver/nvidia/gpus/*/information")
	if err != nil || len(files) == 0 {
		return "none"
	}
	return procField(files[0], "Model")
}

// procField reads the first "name : value" line of a /proc file, "unknown" if
// there is none: not every system has these files.
func procField(path, name string) string {
	file, err := os.Open(path)
	if err != nil {
		return "unknown"
	}
	defer file.Close()
	return fieldOf(file, name)
}

func fieldOf(r io.Reader, name string) string {
	lines := bufio.NewScanner(io.LimitReader(r, 1<<20))
	for lines.Scan() {
		key, value, ok := strings.Cut(lines.Text(), ":")
		if ok && strings.TrimSpace(key) == name {
			return strings.TrimSpace(value)
		}
	}
	return "unknown"
}

// Commit is the revision that the binary was built from, or else that of the
// working directory (as under `go run` and in tests), or else "unknown".
func Commit(ctx context.Context) string {
	if info, ok := debug.ReadBuildInfo(); ok {
		if commit := commitOf(info.Settings); commit != "" {
			return commit
		}
	}
	out, err := exec.CommandContext(ctx, "git", "rev-parse", "HEAD").Output()
	if err != nil {
		return "unknown"
	}
	return strings.TrimSpace(string(out))
}

func commitOf(settings []debug.BuildSetting) string {
	var revision, suffix string
	for _, s := range settings {
		switch {
		case s.Key == "vcs.revision":
			revision = s.Value
		case s.Key == "vcs.modified" && s.Value == "true":
			suffix = "-modified"
		}
	}
	if revision == "" {
		return ""
	}
	return revision + suffix
}
