package config

import (
	"cmp"
	"errors"
	"fmt"
	"iter"
	"maps"
	"reflect"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

const mergeTag = "!!merge" // of the key <<

// shape says what of a file does not fit the keys that there are: the line, the
// key, what is expected and an example. The decoder speaks of Go's types, and
// repeats values, which may be secrets.
func shape(document *yaml.Node) error {
	return errors.Join(repeated(document.Content[0], ""), structShape(document.Content[0], reflect.ValueOf(Default()), ""))
}

// repeated names the keys that are given twice side by side.
func repeated(node *yaml.Node, path string) (err error) {
	if node.Kind != yaml.MappingNode {
		for i, item := range node.Content {
			err = errors.Join(err, repeated(item, fmt.Sprintf("%s[%d]", path, i)))
		}
		return err
	}
	lines := map[string]int{}
	for name, value := range pairs(node) {
		at := below(path, said(name))
		if first, twice := lines[name.Value]; twice {
			err = errors.Join(err, fmt.Errorf("line %d: %s is given already on line %d: leave one of the two", name.Line, at, first))
		} else {
			lines[name.Value] = name.Line
		}
		err = errors.Join(err, repeated(value, at))
	}
	return err
}

// pairs are the keys of a mapping and their values.
func pairs(mapping *yaml.Node) iter.Seq2[*yaml.Node, *yaml.Node] {
	return func(yield func(key, value *yaml.Node) bool) {
		for pair := range slices.Chunk(mapping.Content, 2) {
			if !yield(pair[0], pair[1]) {
				return
			}
		}
	}
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
	for name, value := range pairs(node) {
		field, known := of[name.Value]
		switch {
		case name.Tag == mergeTag:
			err = errors.Join(err, mergeShape(value, v, path))
		case !known:
			err = errors.Join(err, fmt.Errorf("line %d: there is no key %s; %s has %s", name.Line, below(path, said(name)), cmp.Or(path, "the file"), strings.Join(names, ", ")))
		default:
			err = errors.Join(err, fieldShape(value, field, below(path, name.Value)))
		}
	}
	return err
}

// mergeShape is that of what keys are merged with: mappings of the same type, which
// must not hold themselves.
func mergeShape(node *yaml.Node, v reflect.Value, path string) (err error) {
	if node.Decode(new(any)) != nil {
		return misfit(node, below(path, "<<"), "keys that do not hold themselves", "")
	}
	if node.Kind != yaml.SequenceNode {
		return valueShape(node, v, path, "")
	}
	for _, item := range node.Content {
		err = errors.Join(err, valueShape(item, v, path, ""))
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

func valueShape(node *yaml.Node, v reflect.Value, path, example string) error {
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
	case reflect.Slice:
		return listShape(node, reflect.Zero(t.Elem()), path, cmp.Or(example, "[…]"))
	case reflect.Map:
		return mapShape(node, v, path, cmp.Or(example, "{name: …}"))
	default:
		return scalarShape(node, t, path, example)
	}
}

func listShape(node *yaml.Node, item reflect.Value, path, example string) (err error) {
	if node.Kind != yaml.SequenceNode {
		return misfit(node, path, "a list", example)
	}
	for i, each := range node.Content {
		err = errors.Join(err, valueShape(each, item, fmt.Sprintf("%s[%d]", path, i), ""))
	}
	return err
}

func mapShape(node *yaml.Node, v reflect.Value, path, example string) (err error) {
	if node.Kind != yaml.MappingNode {
		return misfit(node, path, "names, each with what it stands for", example)
	}
	for name, value := range pairs(node) {
		switch {
		case name.Tag == mergeTag:
			err = errors.Join(err, mergeShape(value, v, path))
		case name.Decode(new(string)) != nil:
			err = errors.Join(err, misfit(name, path, "a name", example))
		default:
			err = errors.Join(err, valueShape(value, reflect.Zero(v.Type().Elem()), below(path, name.Value), ""))
		}
	}
	return err
}

// scalarShape is that of a value without keys of ours: a scalar, or any at all where
// policies see it.
func scalarShape(node *yaml.Node, t reflect.Type, path, example string) error {
	whole := node.Kind == yaml.ScalarNode || t.Kind() == reflect.Interface
	if whole && node.Decode(reflect.New(t).Interface()) == nil {
		return nil
	}
	want, usual := expected(t)
	return misfit(node, path, want, cmp.Or(example, usual))
}
