package figures

import (
	"math"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestFileFormat(t *testing.T) {
	path := filepath.Join(t.TempDir(), "figures.json")
	file := File{
		Command:     "sluice eval run x",
		Commit:      "abc",
		Environment: Environment{CPU: "c", GPU: "none", Kernels: "ref", Go: "go1.26", OS: "linux/amd64", Cores: 2},
		Figures:     map[string]float64{"leaks": 0, "dense.ndcg@10": 0.5},
	}
	require.NoError(t, file.Write(path))
	got, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, `{
  "command": "sluice eval run x",
  "commit": "abc",
  "environment": {
    "cpu": "c",
    "gpu": "none",
    "kernels": "ref",
    "go": "go1.26",
    "os": "linux/amd64",
    "cores": 2
  },
  "figures": {
    "dense.ndcg@10": 0.5,
    "leaks": 0
  }
}
`, string(got))
}

func TestFileRefusesWhatIsNoNumber(t *testing.T) {
	path := filepath.Join(t.TempDir(), "figures.json")
	for _, value := range []float64{math.NaN(), math.Inf(1)} {
		err := File{Figures: map[string]float64{"p50_ms": value}}.Write(path)
		require.ErrorContains(t, err, "p50_ms")
	}
	require.NoFileExists(t, path)
}

func TestFieldOf(t *testing.T) {
	const cpuinfo = "processor\t: 0\nmodel name\t: A CPU: fast\nmodel name\t: Another\n"
	require.Equal(t, "A CPU: fast", fieldOf(strings.NewReader(cpuinfo), "model name"))
	require.Equal(t, "unknown", fieldOf(strings.NewReader(cpuinfo), "vendor"))
}

func TestCommitOf(t *testing.T) {
	revision := debug.BuildSetting{Key: "vcs.revision", Value: "abc"}
	require.Equal(t, "abc", commitOf([]debug.BuildSetting{revision, {Key: "vcs.modified", Value: "false"}}))
	require.Equal(t, "abc-modified", commitOf([]debug.BuildSetting{{Key: "vcs.modified", Value: "true"}, revision}))
	require.Empty(t, commitOf(nil))
}

func TestMedian(t *testing.T) {
	require.Equal(t, 2.0, MedianOf([]float64{3, 1, 2}))
	require.Equal(t, 2.5, MedianOf([]float64{4, 1, 2, 3}))
}

func TestName(t *testing.T) {
	require.Equal(t, "bench serve", File{Command: "sluice bench serve --null"}.Name())
	require.Equal(t, "", File{Command: "sluice"}.Name())
	require.Equal(t, "", File{}.Name())
}
