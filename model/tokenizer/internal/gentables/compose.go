package main

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
)

// composition is [first, second, composite].
type composition [3]rune

// compositions are the pairs that NFC composes, sorted. Those of a composite of
// more than two characters compose the last with the composite of the others.
func compositions(decompositions, unstable []mapping) ([]composition, error) {
	primary := map[string]rune{} // by decomposition
	for _, d := range decompositions {
		if _, excluded := slices.BinarySearchFunc(unstable, d.from, compareMapping); !excluded {
			primary[d.to] = d.from
		}
	}
	var out []composition
	for parts, composite := range primary {
		all := []rune(parts)
		last := len(all) - 1
		first := all[0]
		if last > 1 {
			first = primary[string(all[:last])]
		}
		if first == 0 || last < 1 {
			return nil, fmt.Errorf("%U has the decomposition %+q, but no pair", composite, parts)
		}
		out = append(out, composition{first, all[last], composite})
	}
	slices.SortFunc(out, func(a, b composition) int { return cmp.Or(cmp.Compare(a[0], b[0]), cmp.Compare(a[1], b[1])) })
	return out, nil
}

func compareMapping(m mapping, r rune) int { return cmp.Compare(m.from, r) }

func writeCompositions(out *bytes.Buffer, decompositions, unstable []mapping) error {
	all, err := compositions(decompositions, unstable)
	if err != nil {
		return err
	}
	out.WriteString("\n// compositions are sorted by the pair; those of Hangul are computed.\nvar compositions = []composition{")
	for i, c := range all {
		writeItem(out, i, 4, "{%#x, %#x, %#x}, ", c[0], c[1], c[2])
	}
	out.WriteString("\n}\n")
	changed := newSet()
	for _, m := range unstable {
		changed[m.from] = true
	}
	writeSet(out, "unstable are the code points that NFC changes.", "unstable", changed)
	return nil
}
