package main

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"math"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"sluice/client"
	"sluice/eval/scripted"
)

// tinyEntailment is tinyClassifier as a model of entailment that is sure of one
// of its labels, whatever it reads.
func tinyEntailment(t *testing.T, sure string) string {
	t.Helper()
	dir, labels := tinyClassifier(t), []string{"contradiction", "neutral", "ENTAILMENT"}
	config, err := os.ReadFile(filepath.Join(dir, "config.json"))
	require.NoError(t, err)
	bias := make([]byte, 0, 12)
	for i, label := range labels {
		config = []byte(strings.ReplaceAll(string(config), "LABEL_"+string(rune('0'+i)), label))
		value := float32(0)
		if label == sure {
			value = 50
		}
		bias = binary.LittleEndian.AppendUint32(bias, math.Float32bits(value))
	}
	require.NoError(t, os.WriteFile(filepath.Join(dir, "config.json"), config, 0o644))
	setTensor(t, filepath.Join(dir, "model.safetensors"), "classifier.bias", bias)
	return dir
}

// setTensor writes the bytes of one tensor of a safetensors file.
func setTensor(t *testing.T, file, name string, value []byte) {
	t.Helper()
	data, err := os.ReadFile(file)
	require.NoError(t, err)
	header := int(binary.LittleEndian.Uint64(data))
	var tensors map[string]struct {
		Offsets []int `json:"data_offsets"`
	}
	require.NoError(t, json.Unmarshal(data[8:8+header], &tensors))
	at := tensors[name].Offsets
	require.Len(t, at, 2)
	require.Equal(t, len(value), at[1]-at[0])
	copy(data[8+header+at[0]:], value)
	require.NoError(t, os.Remove(file)) // a copy keeps the mode of a file that is read alone
	require.NoError(t, os.WriteFile(file, data, 0o644))
}

// goldPlan makes a collection of one document.
func goldPlan(t *testing.T, api *client.Client) {
	t.Helper()
	_, err := api.CreateCollection(context.Background(), "plans", client.CollectionSettings{})
	require.NoError(t, err)
	_, err = api.Write(context.Background(), "plans", client.Document{Key: "gold.md", Title: "The Gold plan", Format: "markdown",
		Text: "# The Gold plan\n\nThe Gold plan costs 2,100 EUR per month. It can be cancelled at the end of a month."})
	require.NoError(t, err)
}

// A loaded cross-encoder with a label of entailment judges the sentences of
// answers, whatever the other checks say of them.
func TestEntailmentModel(t *testing.T) {
	t.Parallel()
	model := httptest.NewServer(scripted.Model{})
	defer model.Close()
	h := newHome(t, onePerson, settings{"answer": settings{"base_url": model.URL, "model": "scripted"}})
	for _, c := range []struct {
		classifier, outcome string
		dropped             map[string]int
	}{
		{"", "answered", map[string]int{}},
		{tinyEntailment(t, "ENTAILMENT"), "answered", map[string]int{}},
		{tinyEntailment(t, "contradiction"), "no_answer", map[string]int{"entailment": 1}},
		{tinyClassifier(t), "answered", map[string]int{}}, // its labels are of something else
	} {
		d := h.serve("--classifier", c.classifier)
		if c.classifier == "" {
			goldPlan(t, d.as("ann"))
		}
		got, err := d.as("ann").Answer(t.Context(), "plans", client.AnswerRequest{Question: "What does the Gold plan cost per month?"})
		require.NoError(t, err)
		require.Equal(t, c.outcome, got.Outcome, c.classifier)
		require.Equal(t, c.dropped, got.Dropped, c.classifier)
		require.Empty(t, got.Degraded)
		d.stop()
	}
}
