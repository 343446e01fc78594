package identity

import (
	"encoding/json"
	"fmt"
	"slices"
)

// attribute converts a YAML or JSON value to what filter.Attributes holds; nil
// for null. Anything else than a string, boolean, integer or list of strings
// is an error: dropping it would let a policy that forbids by it admit.
func attribute(value any) (any, error) {
	switch v := value.(type) {
	case nil, string, bool:
		return v, nil
	case int:
		return int64(v), nil
	case json.Number:
		return v.Int64()
	case []any:
		return stringSet(v)
	default:
		return nil, fmt.Errorf("a %T is not a string, boolean, integer or list of strings", value)
	}
}

func stringSet(list []any) ([]string, error) {
	set, err := stringList(list)
	slices.Sort(set)
	return slices.Compact(set), err
}

func stringList(list []any) ([]string, error) {
	all := make([]string, 0, len(list))
	for _, item := range list {
		s, ok := item.(string)
		if !ok {
			return nil, fmt.Errorf("a %T in a list of strings", item)
		}
		all = append(all, s)
	}
	return all, nil
}
