package config

import (
	"cmp"
	"fmt"
	"reflect"
	"regexp"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

// misfit names a value that is not what is expected by its line, its key and what
// kind it is. It never repeats the value: a secret may have been put there.
func misfit(node *yaml.Node, path, want, example string) error {
	if example != "" {
		example = path[strings.LastIndexByte(path, '.')+1:] + ": " + example
	}
	return fmt.Errorf("line %d: %s: %w", node.Line, cmp.Or(path, "the file"), unexpected(node, want, example))
}

func unexpected(node *yaml.Node, want, example string) error {
	if example != "" {
		example = ", for example " + example
	}
	return fmt.Errorf("%s is given, and expected is %s%s", kind(node), want, example)
}

// kind says in words what a value is.
func kind(node *yaml.Node) string {
	if node.Kind == yaml.MappingNode {
		return "keys"
	}
	kinds := map[string]string{
		"!!seq": "a list", "!!int": "a number", "!!float": "a number", "!!bool": "true or false", "!!timestamp": "a date", "!!null": "nothing",
	}
	return cmp.Or(kinds[node.ShortTag()], "a text")
}

// expected says in words what is read into a type, with an example.
func expected(t reflect.Type) (want, example string) {
	switch t {
	case reflect.TypeFor[time.Duration]():
		return "a time with its unit (ms, s, m, h)", "30s"
	case reflect.TypeFor[Size]():
		return "a size: bytes, or a whole number with KiB, MiB or GiB", "16MiB"
	}
	switch t.Kind() {
	case reflect.Bool:
		return "true or false", "true"
	case reflect.Int, reflect.Int64:
		return "a whole number", "4"
	case reflect.Float64:
		return "a number", "0.5"
	case reflect.Interface:
		return "a text, true or false, a whole number or a list of texts", "name"
	}
	return "a text", "name"
}

var likeKey = regexp.MustCompile(`^(<<|[A-Za-z_-]{1,40})$`)

// said is a key as errors name it: what does not look like one may be a secret that
// slipped out of its place.
func said(key *yaml.Node) string {
	if likeKey.MatchString(key.Value) {
		return key.Value
	}
	return "(not shown)"
}
