package filter_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"sluice/filter"
)

// TestDigestInjective has principals that a joined or normalised key merges.
func TestDigestInjective(t *testing.T) {
	distinct := []filter.Principal{
		{},
		{Tenant: "t"}, {Subject: "t"}, {Groups: []string{"t"}}, {Groups: []string{""}},
		{Tenant: "t", Subject: "u"}, {Tenant: "tu"}, {Tenant: "u", Subject: "t"}, {Tenant: "t\x00u"}, {Tenant: "T", Subject: "u"},
		{Tenant: "t", Groups: []string{"u"}},
		{Groups: []string{"a", "b"}}, {Groups: []string{"a,b"}}, {Groups: []string{"ab"}}, {Groups: []string{"a\x00b"}},
		{Groups: []string{"a", "b", ""}}, {Groups: []string{"a"}, Subject: "b"},
		{Attributes: filter.Attributes{"a": "b"}}, {Attributes: filter.Attributes{"a": []string{"b"}}},
		{Subject: "José"}, {Subject: "Jose\u0301"}, {Subject: `u"`}, {Subject: `u\"`},
	}
	seen := map[[32]byte]filter.Principal{}
	for _, p := range distinct {
		require.NotContains(t, seen, p.Digest(), "%+v and %+v", seen[p.Digest()], p)
		seen[p.Digest()] = p
	}
}

func TestDigestIgnoresOrderOfGroups(t *testing.T) {
	one := filter.Principal{Tenant: "t", Subject: "u", Groups: []string{"b", "a", "b"}}
	two := filter.Principal{Tenant: "t", Subject: "u", Groups: []string{"a", "b"}}
	require.Equal(t, one.Digest(), two.Digest())
	require.Equal(t, []string{"b", "a", "b"}, one.Groups, "the caller's slice was changed")
}
