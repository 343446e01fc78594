package config

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

// shape says what of a file does not fit the keys that there are: the line, the
// key, what is expected and an example. The decoder speaks of Go's types.
func shape(document *yaml.Node) error {
	if document.Kind != yaml.DocumentNode {
		return nil // empty
	}
	return structShape(document.Content[0], reflect.ValueOf(Default()), "")
}

// entry is a key that a struct has, and its value by default.
type entry struct {
	reflect.StructField
	value reflect.Value
}

// keys of a struct by their names, with those of structs inlined in it.
func keys(v reflect.Value) (names []string, of map[string]entry) {
	of = map[string]entry{}
	for i := range v.NumField() {
		field := v.Type().Field(i)
		if strings.Contains(field.Tag.Get("yaml"), "inline") {
			more, inlined := keys(v.Field(i))
			names = append(names, more...)
			maps.Copy(of, inlined)
		} else if name := yamlName(field); name != "-" {
			names, of[name] = append(names, name), entry{field, v.Field(i)}
		}
	}
	return names, of
}

func structShape(node *yaml.Node, v reflect.Value, path string) (err error) {
	names, of := keys(v)
	if node.Kind != yaml.MappingNode {
		return misfit(node, path, "keys of its own: "+strings.Join(names, ", "), "")
	}
	for i := 0; i+1 < len(node.Content); i += 2 {
		name, value := node.Content[i], node.Content[i+1]
		field, known := of[name.Value]
		switch {
		case name.Tag == "!!merge":
		case !known:
			err = errors.Join(err, fmt.Errorf("line %d: there is no key %s; %s has %s", name.Line, below(path, name.Value), cmp.Or(path, "the file"), strings.Join(names, ", ")))
		default:
			err = errors.Join(err, fieldShape(value, field, below(path, name.Value)))
		}
	}
	return err
}

func below(path, name string) string { return strings.TrimPrefix(path+"."+name, ".") }

// fieldShape is that of a key's value, whatever its type.
func fieldShape(node *yaml.Node, e entry, path string) error {
	return valueShape(node, e.value, path, cmp.Or(e.Tag.Get("example"), e.text()))
}

// text is the default as it is written in a file, "" for none.
func (e entry) text() string {
	if composite(e.Type) || e.value.IsZero() {
		return ""
	}
	return fmt.Sprint(e.value.Interface())
}

func valueShape(node *yaml.Node, v reflect.Value, path, example string) (err error) {
	if node.Kind == yaml.AliasNode {
		node = node.Alias
	}
	if node.Tag == "!!null" {
		return nil
	}
	switch t := v.Type(); t.Kind() {
	case reflect.Pointer:
		return valueShape(node, reflect.Zero(t.Elem()), path, example)
	case reflect.Struct:
		return structShape(node, v, path)
	case reflect.Interface:
		return nil
	case reflect.Slice:
		if node.Kind != yaml.SequenceNode {
			return misfit(node, path, "a list", cmp.Or(example, "[…]"))
		}
		for i, item := range node.Content {
			err = errors.Join(err, valueShape(item, reflect.Zero(t.Elem()), fmt.Sprintf("%s[%d]", path, i), ""))
		}
		return err
	case reflect.Map:
		if node.Kind != yaml.MappingNode {
			return misfit(node, path, "names, each with what it stands for", cmp.Or(example, "{name: …}"))
		}
		for i := 0; i+1 < len(node.Content); i += 2 {
			err = errors.Join(err, valueShape(node.Content[i+1], reflect.Zero(t.Elem()), below(path, node.Content[i].Value), ""))
		}
		return err
	default:
		return scalarShape(node, t, path, example)
	}
}

func scalarShape(node *yaml.Node, t reflect.Type, path, example string) error {
	if node.Kind == yaml.ScalarNode && node.Decode(reflect.New(t).Interface()) == nil {
		return nil
	}
	want, usual := expected(t)
	return misfit(node, path, want, cmp.Or(example, usual))
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
	}
	return "a text", "name"
}

// misfit names a value that is not what is expected.
func misfit(node *yaml.Node, path, want, example string) error {
	got := map[yaml.Kind]string{yaml.MappingNode: "keys", yaml.SequenceNode: "a list"}[node.Kind]
	if node.Kind == yaml.ScalarNode {
		got = fmt.Sprintf("%q", node.Value)
	}
	if example != "" {
		example = ", for example " + path[strings.LastIndexByte(path, '.')+1:] + ": " + example
	}
	return fmt.Errorf("line %d: %s: %s is given, and expected is %s%s", node.Line, cmp.Or(path, "the file"), got, want, example)
}
