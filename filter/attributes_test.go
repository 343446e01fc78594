package filter_test

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"sluice/filter"
)

func TestParseAttributes(t *testing.T) {
	const document = `{"s": "x", "b": true, "i": 3, "f": 3.0, "n": null, "neg": -7, "big": 9007199254740992, "l": ["b", "a", "b"], "e": []}`
	want := filter.Attributes{
		"s": "x", "b": true, "i": int64(3), "f": int64(3), "neg": int64(-7), "big": int64(1 << 53),
		"l": []string{"a", "b"}, "e": []string{},
	}
	var floats, yamls map[string]any
	require.NoError(t, json.Unmarshal([]byte(document), &floats))
	require.NoError(t, yaml.Unmarshal([]byte(document), &yamls))
	numbers := map[string]any{}
	decoder := json.NewDecoder(strings.NewReader(document))
	decoder.UseNumber()
	require.NoError(t, decoder.Decode(&numbers))
	for name, decoded := range map[string]map[string]any{"json": floats, "json.Number": numbers, "yaml": yamls} {
		got, err := filter.ParseAttributes(decoded)
		require.NoError(t, err, name)
		require.Equal(t, want, got, name)
	}
}

func TestParseAttributesRefuses(t *testing.T) {
	refused := map[string]struct {
		value any
		says  string
	}{
		"fraction":    {1.5, "not an integer"},
		"huge":        {1e300, "not an integer"},
		"inexact":     {float64(1<<53 + 2), "not an integer"},
		"infinite":    {math.Inf(1), "not an integer"},
		"nan":         {math.NaN(), "not an integer"},
		"unsigned":    {uint64(math.MaxUint64), "not an integer"},
		"number":      {json.Number("1e999"), "not a number in range"},
		"numberpart":  {json.Number("0.5"), "not an integer"},
		"object":      {map[string]any{"a": 1}, "nested object"},
		"yamlobject":  {map[any]any{1: 1}, "nested object"},
		"mixed":       {[]any{"a", 1.0}, "item 1 is a number"},
		"nullinlist":  {[]any{nil}, "item 0 is null"},
		"listinlist":  {[]any{[]any{}}, "item 0 is a nested list"},
		"date":        {time.Time{}, "time.Time"},
		"utf8":        {"a\xff", "not UTF-8"},
		"utf8list":    {[]any{"a\xff"}, "not UTF-8"},
		"long":        {strings.Repeat("x", 1025), "1025 bytes long"},
		"longlist":    {make([]string, 257), "a list of 257"},
		"longinlist":  {[]string{strings.Repeat("x", 1025)}, "1025 bytes long"},
		"tenant":      {"other", "reserved"},
		"":            {"x", "empty name"},
		"bad\xff":     {"x", "not UTF-8"},
		"float32kind": {float32(1), "float32"},
	}
	for key, test := range refused {
		_, err := filter.ParseAttributes(map[string]any{"fine": "x", key: test.value})
		require.ErrorContains(t, err, test.says, "%q", key)
		if key != "" {
			require.ErrorContains(t, err, fmt.Sprintf("%q", key))
		}
	}
}

func TestParseAttributesBounds(t *testing.T) {
	many, heavy := map[string]any{}, map[string]any{}
	for i := range 65 {
		many[fmt.Sprint(i)] = true
		heavy[fmt.Sprint(i/2)] = strings.Repeat("x", 1024)
	}
	_, err := filter.ParseAttributes(many)
	require.ErrorContains(t, err, "65 attributes")
	_, err = filter.ParseAttributes(heavy)
	require.ErrorContains(t, err, "attributes take")
	_, err = filter.ParseAttributes(map[string]any{strings.Repeat("k", 129): true})
	require.ErrorContains(t, err, "129 bytes long")
	_, err = filter.ParseAttributes(map[string]any{strings.Repeat("k", 128): strings.Repeat("v", 1024)})
	require.NoError(t, err)
}

func TestAttributesEqual(t *testing.T) {
	require.True(t, filter.Attributes(nil).Equal(filter.Attributes{"a": nil}))
	require.True(t, filter.Attributes{"a": []string{"x", "y"}}.Equal(filter.Attributes{"a": []string{"y", "x", "x"}}))
}

// TestCanonicalInjective has attributes that a careless encoding merges.
func TestCanonicalInjective(t *testing.T) {
	distinct := []filter.Attributes{
		{},
		{"a": "b"}, {"a": []string{"b"}}, {"a": []string{}}, {"a": ""}, {"a": []string{""}},
		{"a": "true"}, {"a": true}, {"a": false}, {"a": int64(1)}, {"a": "1"}, {"a": int64(-1)}, {"a": int64(0)},
		{"a": []string{"b", "c"}}, {"a": []string{"b,c"}}, {"a": "b,c"}, {"a": "b\x00c"}, {"a": []string{"b\x00c"}},
		{"a": "b", "c": "d"}, {"a": "b\x00c\x00d"}, {"ab": ""}, {"": "ab"}, {"a": "sb"}, {"as": "b"},
		{"A": "b"}, {"a": "B"}, {"a": "b "}, {"a": "é"}, {"a": "e\u0301"}, {"a": 1.5}, {"a": "1.5"},
	}
	seen := map[string]filter.Attributes{}
	for _, a := range distinct {
		key := string(a.AppendCanonical(nil))
		require.NotContains(t, seen, key, "%v and %v", seen[key], a)
		seen[key] = a
	}
}

// FuzzParseAttributes: whatever is decoded is refused or becomes attributes
// that parse to themselves.
func FuzzParseAttributes(f *testing.F) {
	for _, seed := range []string{`{}`, `{"a":[1]}`, `{"a":1e400}`, `{"a":["y","x"],"b":null}`, `{"a":{"b":{}}}`, `{"tenant":"x"}`, `{"\ud800":1}`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		var decoded map[string]any
		if json.Unmarshal(text, &decoded) != nil {
			return
		}
		parsed, err := filter.ParseAttributes(decoded)
		if err != nil {
			return
		}
		again, err := filter.ParseAttributes(parsed)
		require.NoError(t, err)
		require.True(t, parsed.Equal(again))
		for key, value := range parsed {
			switch value.(type) {
			case string, bool, int64, []string:
			default:
				t.Fatalf("%q became %T", key, value)
			}
		}
	})
}
