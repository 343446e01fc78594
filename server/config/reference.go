package config

import (
	"fmt"
	"reflect"
	"strings"
)

const (
	docWidth = 100
	document = `# Configuration

Sluice reads one YAML file, then environment variables, then flags; the later ones win. A key that
does not exist is an error with its line; errors name keys and never repeat values, which may be
secrets. A relative path in the file is relative to the directory that the file is in; one in a
variable or a flag, and the default of data, to the working directory. This page is printed by the
program itself.

## The file

Every key, with its default or (in the commented parts) an example:

%s%s%s

## Environment and flags

| variable | flag | default |
|---|---|---|
%s
--demo has neither a key nor a variable: a demo is started by hand, knowingly. A variable that begins
with SLUICE_ and means nothing is named in the log, and by 'sluice doctor'.
`
)

// Reference renders every key of the file, annotated, as YAML that loads.
func Reference() string {
	var b strings.Builder
	writeStruct(&b, "", reflect.ValueOf(Default()), false)
	return b.String()
}

// Document renders docs/configuration.md.
func Document() string {
	var rows strings.Builder
	for _, s := range Settings() {
		fmt.Fprintf(&rows, "| `%s` | `%s` | `%s` |\n", s.Environment, Flag(s.Path), s.Default)
	}
	return fmt.Sprintf(document, "```yaml\n", Reference(), "```", rows.String())
}

// Flag returns the flag of a setting: "--limits.body-bytes".
func Flag(path string) string { return "--" + strings.ReplaceAll(path, "_", "-") }

// writeStruct writes the fields of v. What has no default is an example, and commented.
func writeStruct(b *strings.Builder, indent string, v reflect.Value, example bool) {
	for i := range v.NumField() {
		field := v.Type().Field(i)
		if strings.Contains(field.Tag.Get("yaml"), "inline") {
			writeStruct(b, indent, v.Field(i), example)
		} else if name := yamlName(field); name != "-" {
			writeField(b, indent, name, field, v.Field(i), example)
		}
	}
}

func writeField(b *strings.Builder, indent, name string, field reflect.StructField, v reflect.Value, example bool) {
	mark := ""
	if !example && field.Type.Kind() != reflect.Struct && composite(field.Type) {
		mark, example = "# ", true
	}
	writeDoc(b, indent, field.Tag.Get("doc"))
	in := indent + mark
	switch t := field.Type; {
	case !composite(t):
		fmt.Fprintf(b, "%s%s: %s\n", in, name, scalar(field, v, example))
	case t.Kind() == reflect.Slice:
		fmt.Fprintf(b, "%s%s:\n%s  -\n", in, name, in)
		writeStruct(b, in+"    ", reflect.Zero(t.Elem()), example)
	case t.Kind() == reflect.Map:
		fmt.Fprintf(b, "%s%s:\n%s  %s:\n", in, name, in, field.Tag.Get("key"))
		writeStruct(b, in+"    ", reflect.Zero(t.Elem()), example)
	case t.Kind() == reflect.Pointer:
		fmt.Fprintf(b, "%s%s:\n", in, name)
		writeStruct(b, in+"  ", reflect.Zero(t.Elem()), example)
	default:
		fmt.Fprintf(b, "%s%s:\n", in, name)
		writeStruct(b, in+"  ", v, example)
	}
}

// composite reports whether a type holds keys of its own.
func composite(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.Struct:
		return true
	case reflect.Slice, reflect.Map, reflect.Pointer:
		return t.Elem().Kind() == reflect.Struct
	default:
		return false
	}
}

func scalar(field reflect.StructField, v reflect.Value, example bool) string {
	if example {
		return field.Tag.Get("example")
	}
	text := fmt.Sprint(v.Interface())
	if text == "" {
		return `""`
	}
	return text
}

func writeDoc(b *strings.Builder, indent, doc string) {
	prefix := strings.TrimSuffix(indent, "# ")
	line := prefix + "#"
	if strings.Contains(indent, "# ") {
		line = indent + "#"
	}
	length := len(line)
	b.WriteString(line)
	for _, word := range strings.Fields(doc) {
		if length+1+len(word) > docWidth {
			fmt.Fprintf(b, "\n%s", line)
			length = len(line)
		}
		b.WriteString(" " + word)
		length += 1 + len(word)
	}
	b.WriteByte('\n')
}
