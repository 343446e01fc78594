package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/compose-spec/compose-go/v2/schema"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"sluice/needs"
	"sluice/server/config"
)

var dockerDir = filepath.Join("..", "..", "docker")

// No engine runs here, so the files are held against what an engine would read.
func TestComposeFiles(t *testing.T) {
	for _, name := range []string{"compose.yaml", "compose.gpu.yaml"} {
		text, err := os.ReadFile(filepath.Join(dockerDir, name))
		require.NoError(t, err)
		var file map[string]any
		require.NoError(t, yaml.Unmarshal(text, &file))
		require.NoError(t, schema.Validate(file), name)
		for service, value := range file["services"].(map[string]any) {
			checkService(t, file, service, value.(map[string]any))
		}
	}
	broken := map[string]any{"services": map[string]any{"a": map[string]any{"imaje": "x"}}}
	require.Error(t, schema.Validate(broken), "the schema refuses what it does not know")
}

// checkService follows what a service names: files, volumes, other services, settings.
func checkService(t *testing.T, file map[string]any, name string, service map[string]any) {
	t.Helper()
	if build, ok := service["build"].(map[string]any); ok {
		require.FileExists(t, filepath.Join(dockerDir, build["context"].(string), build["dockerfile"].(string)), name)
	}
	volumes, _ := service["volumes"].([]any)
	for _, v := range volumes {
		source, _, mounted := strings.Cut(v.(string), ":")
		switch {
		case strings.HasPrefix(source, "./"):
			_, err := os.Stat(filepath.Join(dockerDir, source))
			require.NoError(t, err, name)
		case mounted:
			require.Contains(t, file["volumes"], source, name)
		}
	}
	others, _ := service["depends_on"].(map[string]any)
	for other := range others {
		require.Contains(t, file["services"], other, name)
	}
	known := map[string]bool{"SLUICE_CACHE": true}
	for _, s := range config.Settings() {
		known[s.Environment] = true
	}
	environment, _ := service["environment"].(map[string]any)
	for variable := range environment {
		require.True(t, !strings.HasPrefix(variable, "SLUICE_") || known[variable], "%s: no setting has the variable %s", name, variable)
	}
}

func TestDockerConfigurationLoads(t *testing.T) {
	_, err := config.Load(filepath.Join(dockerDir, "sluice.yaml"), nil, false)
	require.NoError(t, err)
}

// systemd takes every line of the unit.
func TestSystemdUnit(t *testing.T) {
	analyze, err := exec.LookPath("systemd-analyze")
	if err != nil {
		needs.Missing(t, "systemd-analyze", err)
	}
	text := strings.ReplaceAll(readText(t, filepath.Join("..", "..", "release", "sluice.service")), "/usr/bin/sluice", "/bin/true")
	dir := lay(t, t.TempDir(), map[string]string{"sluice.service": text})
	out, err := exec.Command(analyze, "verify", "--man=no", filepath.Join(dir, "sluice.service")).CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.Empty(t, string(out))
}
