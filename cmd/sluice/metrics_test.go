package main

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
)

var metricName = regexp.MustCompile(`\b(?:sluice|process|go)_\w+|\bup\b`)

// A daemon has every metric that alerts, dashboard and documentation name, and
// its own are named as Prometheus' own linter wants.
func TestMetrics(t *testing.T) {
	t.Parallel()
	r := newReloading(t)
	key := r.home.keys["ann"]
	require.Equal(t, 201, r.send("PUT", "/v1/collections/docs", "{}", key))
	require.Equal(t, 201, r.send("POST", "/v1/collections/docs/documents", `{"key": "a", "format": "text", "text": "harbour"}`, key))
	require.Equal(t, 200, r.send("POST", "/v1/collections/docs/search", `{"query": "harbour"}`, key))
	require.Equal(t, strconv.Itoa(runtime.GOMAXPROCS(0)+1), r.metric("go_sched_gomaxprocs_threads"), "one to spare")
	text := r.metrics()
	r.stop()

	problems, err := promlint.New(strings.NewReader(text)).Lint()
	require.NoError(t, err)
	for _, p := range problems {
		if strings.HasPrefix(p.Metric, "sluice_") {
			t.Errorf("%s: %s", p.Metric, p.Text)
		}
	}

	there := map[string]bool{"up": true} // made by the scrape
	for _, line := range regexp.MustCompile(`(?m)^(\w+)[{ ]`).FindAllStringSubmatch(text, -1) {
		there[line[1]] = true
	}
	for _, line := range regexp.MustCompile(`(?m)^# TYPE (\w+)`).FindAllStringSubmatch(text, -1) {
		there[line[1]] = true
	}
	for where, expression := range concat(alerts(t), panels(t)) {
		names := metricName.FindAllString(expression, -1)
		require.NotEmpty(t, names, where)
		for _, name := range names {
			require.True(t, there[name], "%s: the daemon has no metric %s", where, name)
		}
	}
	documented := regexp.MustCompile("(?m)^\\| `(sluice_\\w+)`").FindAllStringSubmatch(readText(t, filepath.Join("..", "..", "docs", "operations.md")), -1)
	require.Greater(t, len(documented), 20)
	for _, line := range documented {
		if strings.HasPrefix(line[1], "sluice_gpu_") {
			continue // of a daemon with GPUs: server/gpus_test.go has them
		}
		require.True(t, there[line[1]], "docs/operations.md: the daemon has no metric %s", line[1])
	}
}

func concat(a, b map[string]string) map[string]string {
	all := maps.Clone(a)
	maps.Copy(all, b)
	return all
}

// alerts are the expressions of docker/alerts.yml, by name.
func alerts(t *testing.T) map[string]string {
	var file struct {
		Groups []struct {
			Name  string `yaml:"name"`
			Rules []struct {
				Alert       string            `yaml:"alert"`
				Expr        string            `yaml:"expr"`
				For         string            `yaml:"for"`
				Labels      map[string]string `yaml:"labels"`
				Annotations map[string]string `yaml:"annotations"`
			} `yaml:"rules"`
		} `yaml:"groups"`
	}
	decoder := yaml.NewDecoder(strings.NewReader(readText(t, filepath.Join(dockerDir, "alerts.yml"))))
	decoder.KnownFields(true)
	require.NoError(t, decoder.Decode(&file))
	all := map[string]string{}
	for _, rule := range file.Groups[0].Rules {
		require.NotContains(t, all, rule.Alert)
		require.Contains(t, []string{"critical", "warning"}, rule.Labels["severity"], rule.Alert)
		require.NotEmpty(t, rule.Annotations["summary"], rule.Alert)
		require.Equal(t, strings.Count(rule.Expr, "("), strings.Count(rule.Expr, ")"), rule.Alert)
		all[rule.Alert] = rule.Expr
	}
	require.NotEmpty(t, all)
	return all
}

// panels are the expressions of the dashboard, by title.
func panels(t *testing.T) map[string]string {
	text, err := os.ReadFile(filepath.Join(dockerDir, "grafana", "dashboards", "sluice.json"))
	require.NoError(t, err)
	var dashboard struct {
		Panels []struct {
			Title   string
			Targets []struct{ Expr string }
		}
	}
	require.NoError(t, json.Unmarshal(text, &dashboard))
	all := map[string]string{}
	for _, panel := range dashboard.Panels {
		for _, target := range panel.Targets {
			all[panel.Title] += " " + target.Expr
		}
	}
	require.NotEmpty(t, all)
	return all
}
