package filter

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"unicode/utf8"
)

// Bounds on the attributes of one document or principal.
const (
	maxAttributes      = 64
	maxAttributeKey    = 128       // bytes
	maxAttributeText   = 1024      // bytes of one string
	maxAttributeList   = 256       // strings of one list
	maxAttributesBytes = 32 * 1024 // of the canonical encoding
)

// tenantAttribute is what policies see of the tenant. It comes from the
// identity and the collection, so nobody may bring an attribute of that name.
const tenantAttribute = "tenant"

// Attributes are what policies see of a principal or a document. Values are
// string, bool, int64 or []string (a set: sorted, without duplicates).
// A null is the absence of its key.
type Attributes map[string]any

// ParseAttributes turns decoded JSON or YAML into Attributes. Integral numbers
// become int64; a null is left out; nested objects, mixed lists, fractions and
// whatever is out of bounds are refused with the key's name.
func ParseAttributes(decoded map[string]any) (Attributes, error) {
	if len(decoded) > maxAttributes {
		return nil, fmt.Errorf("%d attributes: at most %d are allowed", len(decoded), maxAttributes)
	}
	attributes := make(Attributes, len(decoded))
	for _, key := range slices.Sorted(maps.Keys(decoded)) {
		if err := checkAttributeKey(key); err != nil {
			return nil, err
		}
		value, err := parseAttribute(decoded[key])
		if err != nil {
			return nil, fmt.Errorf("attribute %q: %w", key, err)
		}
		if value != nil {
			attributes[key] = value
		}
	}
	if size := len(attributes.AppendCanonical(nil)); size > maxAttributesBytes {
		return nil, fmt.Errorf("attributes take %d bytes: at most %d are allowed", size, maxAttributesBytes)
	}
	return attributes, nil
}

func checkAttributeKey(key string) error {
	switch {
	case key == "":
		return fmt.Errorf("an attribute has an empty name")
	case len(key) > maxAttributeKey:
		return fmt.Errorf("attribute %q…: the name is %d bytes long: at most %d are allowed", key[:32], len(key), maxAttributeKey)
	case !utf8.ValidString(key):
		return fmt.Errorf("attribute %q: the name is not UTF-8", key)
	case key == tenantAttribute:
		return fmt.Errorf("attribute %q is reserved: it always is the tenant of the identity", key)
	}
	return nil
}

// parseAttribute returns nil for a null.
func parseAttribute(value any) (any, error) {
	switch v := value.(type) {
	case nil, bool, int64:
		return v, nil
	case string:
		return v, checkAttributeText(v)
	case int:
		return int64(v), nil
	case uint64:
		return integral(v <= math.MaxInt64, int64(v), v)
	case float64:
		return integral(v == math.Trunc(v) && math.Abs(v) <= 1<<53, int64(v), v)
	case json.Number:
		return parseNumber(v)
	case []string:
		return parseList(v, func(item string) (string, bool) { return item, true })
	case []any:
		return parseList(v, func(item any) (string, bool) { text, ok := item.(string); return text, ok })
	}
	return nil, fmt.Errorf("%s is not allowed: use a string, a boolean, an integer or a list of strings", kindOf(value))
}

func integral(ok bool, number int64, given any) (any, error) {
	if !ok {
		return nil, fmt.Errorf("%v is not an integer that is held exactly: use an integer or a string", given)
	}
	return number, nil
}

// parseNumber takes 3 and 3.0 alike, as a decoder without json.Number would.
func parseNumber(number json.Number) (any, error) {
	if integer, err := number.Int64(); err == nil {
		return integer, nil
	}
	float, err := number.Float64()
	if err != nil {
		return nil, fmt.Errorf("%.40q is not a number in range", number.String())
	}
	return parseAttribute(float)
}

func parseList[T any](items []T, text func(T) (string, bool)) (any, error) {
	if len(items) > maxAttributeList {
		return nil, fmt.Errorf("a list of %d: at most %d are allowed", len(items), maxAttributeList)
	}
	set := make([]string, 0, len(items))
	for i, item := range items {
		value, ok := text(item)
		if !ok {
			return nil, fmt.Errorf("item %d is %s: a list may hold only strings", i, kindOf(item))
		}
		if err := checkAttributeText(value); err != nil {
			return nil, fmt.Errorf("item %d: %w", i, err)
		}
		set = append(set, value)
	}
	slices.Sort(set)
	return slices.Compact(set), nil
}

func checkAttributeText(text string) error {
	if len(text) > maxAttributeText {
		return fmt.Errorf("%d bytes long: at most %d are allowed", len(text), maxAttributeText)
	}
	if !utf8.ValidString(text) {
		return fmt.Errorf("%q is not UTF-8", text)
	}
	return nil
}

func kindOf(value any) string {
	switch value.(type) {
	case nil:
		return "null"
	case string:
		return "a string"
	case bool:
		return "a boolean"
	case map[string]any, map[any]any:
		return "a nested object"
	case []any, []string:
		return "a nested list"
	case int, int64, uint64, float64, json.Number:
		return "a number"
	}
	return fmt.Sprintf("a value of type %T", value)
}

// Equal reports whether both say the same. A null equals an absent key, and
// lists are sets.
func (a Attributes) Equal(b Attributes) bool {
	return bytes.Equal(a.AppendCanonical(nil), b.AppendCanonical(nil))
}

// AppendCanonical appends an injective encoding: number of keys, then in order
// of keys: key, kind, value; every text with its length first.
func (a Attributes) AppendCanonical(dst []byte) []byte {
	var room [16]string // enough for most
	keys := room[:0]
	for key, value := range a {
		if value != nil {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	dst = binary.AppendUvarint(dst, uint64(len(keys)))
	for _, key := range keys {
		dst = appendValue(appendText(dst, key), a[key])
	}
	return dst
}

func appendValue(dst []byte, value any) []byte {
	switch v := value.(type) {
	case string:
		return appendText(append(dst, 's'), v)
	case bool:
		if v {
			return append(dst, 't')
		}
		return append(dst, 'f')
	case int64:
		return binary.AppendVarint(append(dst, 'i'), v)
	case []string:
		return appendTexts(append(dst, 'l'), v)
	}
	// Not a value that ParseAttributes makes: told apart from all that are, and refused by the policies.
	return appendText(append(dst, '?'), fmt.Sprintf("%#v", value))
}
