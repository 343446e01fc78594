package config

import (
	"bytes"
	"encoding"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

const maxFile = 1 << 20

// Load reads the file ("" for none), then the environment, then the overrides
// (setting path, for example "limits.body_bytes", to value), and validates the
// outcome. demo is the --demo flag. Relative paths in the file are relative to the
// file's directory, all others to the working directory.
func Load(file string, overrides map[string]string, demo bool) (Config, error) {
	c := Default()
	if file != "" {
		if err := c.readFile(file); err != nil {
			return Config{}, err
		}
	}
	if err := c.readEnvironment(os.LookupEnv); err != nil {
		return Config{}, err
	}
	for path, value := range overrides {
		if err := c.set(path, value); err != nil {
			return Config{}, err
		}
	}
	c.Demo.Enabled = demo
	c.EnsureDefaults()
	return c, c.Validate()
}

func (c *Config) readFile(file string) error {
	f, err := os.Open(file)
	if err != nil {
		return fmt.Errorf("opening the configuration: %w", err)
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return fmt.Errorf("reading %s: %w", file, err)
	}
	if len(text) > maxFile {
		return fmt.Errorf("%s is longer than %d bytes: that is no configuration", file, maxFile)
	}
	document, err := c.parse(text)
	if err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	for _, path := range c.paths(document) {
		*path = beside(file, *path)
	}
	for _, model := range []*string{&c.Model, &c.Reranker, &c.Classifier} {
		path := beside(file, *model)
		if info, err := os.Stat(path); strings.HasPrefix(*model, ".") || err == nil && info.IsDir() {
			*model = path // else it is a name
		}
	}
	return nil
}

// beside is a path in a file, which is relative to where the file is.
func beside(file, path string) string {
	if path == "" || filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(filepath.Dir(file), path)
}

// paths are the settings that are paths where the file gives them: a default is the
// working directory's.
func (c *Config) paths(document *yaml.Node) []*string {
	paths := []*string{&c.Policies, &c.TLS.Cert, &c.TLS.Key}
	var given struct{ Data *string }
	if err := document.Decode(&given); err == nil && given.Data != nil {
		paths = append(paths, &c.Data)
	}
	if c.Audit.Directory != "off" {
		paths = append(paths, &c.Audit.Directory)
	}
	if c.Planner != nil {
		paths = append(paths, &c.Planner.KeyFile)
	}
	if jwt := c.Auth.JWT; jwt != nil {
		paths = append(paths, &jwt.JWKSFile)
		for i := range jwt.Keys {
			paths = append(paths, &jwt.Keys[i].File)
		}
	}
	return paths
}

func (c *Config) parse(text []byte) (*yaml.Node, error) {
	document := new(yaml.Node)
	if err := yaml.Unmarshal(text, document); err != nil {
		return nil, err
	}
	if err := shape(document); err != nil {
		return nil, err
	}
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	decoder.KnownFields(true)
	if err := decoder.Decode(c); err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	if err := decoder.Decode(new(yaml.Node)); !errors.Is(err, io.EOF) {
		return nil, errors.New("one YAML document is expected, and there is more")
	}
	return document, nil
}

func (c *Config) readEnvironment(lookup func(string) (string, bool)) error {
	for _, s := range settings(c) {
		value, ok := lookup(s.env())
		if !ok {
			continue
		}
		if err := s.assign(value); err != nil {
			return fmt.Errorf("%s: %w", s.env(), err)
		}
	}
	return nil
}

func (c *Config) set(path, value string) error {
	for _, s := range settings(c) {
		if s.path == path {
			if err := s.assign(value); err != nil {
				return fmt.Errorf("%s: %w", path, err)
			}
			return nil
		}
	}
	return fmt.Errorf("there is no setting %q", path)
}

// setting is a scalar that a variable or a flag can set.
type setting struct {
	path  string // "limits.body_bytes"
	doc   string
	value reflect.Value
}

// Setting describes one scalar setting for a command line: flags are made of these.
type Setting struct {
	Path        string // "limits.body_bytes"
	Environment string // "SLUICE_LIMITS_BODY_BYTES"
	Default     string
	Doc         string
}

// Settings lists the scalars that variables and overrides can set, in the order of the file.
func Settings() []Setting {
	c := Default()
	var all []Setting
	for _, s := range settings(&c) {
		all = append(all, Setting{s.path, s.env(), fmt.Sprint(s.value.Interface()), s.doc})
	}
	return all
}

func settings(c *Config) []setting {
	return appendSettings(nil, "", reflect.ValueOf(c).Elem())
}

func appendSettings(all []setting, prefix string, v reflect.Value) []setting {
	for i := range v.NumField() {
		field := v.Type().Field(i)
		name := yamlName(field)
		switch field.Type.Kind() {
		case reflect.Struct:
			all = appendSettings(all, prefix+name+".", v.Field(i))
		case reflect.String, reflect.Int, reflect.Int64, reflect.Float64:
			all = append(all, setting{prefix + name, field.Tag.Get("doc"), v.Field(i)})
		}
	}
	return all
}

func yamlName(field reflect.StructField) string {
	name, _, _ := strings.Cut(field.Tag.Get("yaml"), ",")
	return name
}

func (s setting) env() string {
	return "SLUICE_" + strings.ToUpper(strings.ReplaceAll(s.path, ".", "_"))
}

func (s setting) assign(text string) error {
	switch target := s.value.Addr().Interface().(type) {
	case *string:
		*target = text
		return nil
	case encoding.TextUnmarshaler:
		return target.UnmarshalText([]byte(text))
	case *time.Duration:
		d, err := time.ParseDuration(text)
		if err != nil {
			return s.misfit(text)
		}
		*target = d
		return nil
	default:
		if yaml.Unmarshal([]byte(text), target) != nil {
			return s.misfit(text)
		}
		return nil
	}
}

// misfit names a text that is not what is expected.
func (s setting) misfit(text string) error {
	want, example := expected(s.value.Type())
	return fmt.Errorf("%q is given, and expected is %s, for example %s", text, want, example)
}
