package filter_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"sluice/filter"
)

// admits asks View and Admits, which must agree.
func admits(t *testing.T, policies *filter.Policies, p filter.Principal, a filter.Access) bool {
	t.Helper()
	set, err := filter.NewView(p.Tenant, policies).Apply([]filter.Change{{Ordinal: 9, Access: a}}).Resolve(p)
	if err != nil {
		require.True(t, set.IsEmpty(), "an error came with documents")
	}
	ok, err := policies.Admits(p, a)
	if err != nil {
		require.False(t, ok, "an error came with a yes")
	}
	require.Equal(t, ok, set.Contains(9), "View and Admits differ")
	return ok
}

func readersOf(readers ...filter.Reader) filter.Access {
	return filter.Access{Readers: filter.Readers{List: readers}}
}

func TestEmptyReadersAdmitNobody(t *testing.T) {
	p := filter.Principal{Tenant: "t", Subject: "u", Groups: []string{"", "g"}}
	require.False(t, admits(t, starter(t), p, readersOf()))
	require.False(t, admits(t, starter(t), p, filter.Access{}))
	require.True(t, admits(t, starter(t), p, filter.Access{Readers: filter.Readers{Undeclared: true}}))
}

func TestContradictoryReadersAreDeclared(t *testing.T) {
	both := filter.Access{Readers: filter.Readers{Undeclared: true, List: []filter.Reader{filter.User("u")}}}
	require.True(t, admits(t, starter(t), filter.Principal{Tenant: "t", Subject: "u"}, both))
	require.False(t, admits(t, starter(t), filter.Principal{Tenant: "t", Subject: "other"}, both))
}

func TestUnknownPrincipalReadsNothing(t *testing.T) {
	for _, p := range []filter.Principal{{}, {Tenant: "t"}, {Subject: "u"}, {Tenant: "t", Groups: []string{"g"}}} {
		require.False(t, admits(t, starter(t), p, readersOf(filter.Public, filter.Group("g"), filter.User(""))), "%+v", p)
		require.False(t, admits(t, starter(t), p, filter.Access{Readers: filter.Readers{Undeclared: true}}), "%+v", p)
	}
}

// TestNamesNeverMatchOthers: names that quoting, joining, prefixes, case
// folding or Unicode normalisation would merge stay apart, as subject, as
// group, as attribute and as one kind against the other.
func TestNamesNeverMatchOthers(t *testing.T) {
	names := []string{
		"a", "A", "a ", " a", "ab", "a,b", "a\x00", "a\x00b", `a"`, `"a"`, `a\"`, `a' or '1'='1`, "a\n", "*", "%", ".*",
		"é", "e\u0301", "\u200ba", "ａ", "ß", "ss", "SS", "public", "user:a", "group:a", "", "\ufeffa",
		`a") || true || (principal == User::"`, "a/../b", "a%2fb",
	}
	policies := mustParse(t, modelSchema, `
		permit (principal, action, resource) unless { resource has team };
		permit (principal, action, resource) when { resource has team && principal has team && principal.team == resource.team };
		permit (principal, action, resource) when { resource has team && principal.groups.contains(resource.team) };`)
	for i, mine := range names {
		for j, theirs := range names {
			bySubject := filter.Principal{Tenant: "t", Subject: mine}
			byGroup := filter.Principal{Tenant: "t", Subject: "someone", Groups: []string{mine}}
			byTeam := filter.Principal{Tenant: "t", Subject: "someone", Attributes: filter.Attributes{"team": mine}}
			team := filter.Access{Readers: filter.Readers{Undeclared: true}, Attributes: filter.Attributes{"team": theirs}}
			about := fmt.Sprintf("%q and %q", mine, theirs)
			require.Equal(t, i == j && mine != "", admits(t, policies, bySubject, readersOf(filter.User(theirs))), about)
			require.Equal(t, i == j, admits(t, policies, byGroup, readersOf(filter.Group(theirs))), about)
			require.Equal(t, i == j, admits(t, policies, byTeam, team), about)
			require.Equal(t, i == j, admits(t, policies, byGroup, team), about)
			require.False(t, admits(t, policies, bySubject, readersOf(filter.Group(theirs))), about)
			require.Equal(t, theirs == "someone", admits(t, policies, byGroup, readersOf(filter.User(theirs))), about)
		}
	}
}

func TestTenantsAreApart(t *testing.T) {
	policies := mustParse(t, modelSchema, allowAll)
	access := readersOf(filter.Public, filter.User("u"))
	view := filter.NewView("acme", policies).Apply([]filter.Change{{Ordinal: 1, Access: access}})
	for _, tenant := range []string{"", "acm", "acme ", "ACME", "acme\x00", "other"} {
		set, err := view.Resolve(filter.Principal{Tenant: tenant, Subject: "u"})
		require.NoError(t, err)
		require.True(t, set.IsEmpty(), "%q", tenant)
	}
	set, err := view.Resolve(filter.Principal{Tenant: "acme", Subject: "u"})
	require.NoError(t, err)
	require.Equal(t, 1, set.Len())
}

// TestTenantIsTheIdentitys: an attribute cannot pretend another tenant,
// subject or group to the policies.
func TestTenantIsTheIdentitys(t *testing.T) {
	policies := mustParse(t, modelSchema, `permit (principal, action, resource) when {
		principal.tenant == "root" || resource.tenant == "root" || principal.subject == "root" || principal.groups.contains("root") };`)
	forged := filter.Attributes{"tenant": "root", "subject": "root", "groups": []string{"root"}}
	p := filter.Principal{Tenant: "t", Subject: "u", Attributes: forged}
	require.False(t, admits(t, policies, p, filter.Access{Readers: filter.Readers{Undeclared: true}, Attributes: forged}))
}

// TestFailedForbidDenies: Cedar skips a policy that fails; a forbid that fails
// might have forbidden, so it denies. A permit that fails merely does not permit.
func TestFailedForbidDenies(t *testing.T) {
	const overflow = `when { resource has level && resource.level + 9223372036854775807 < 0 };`
	p := filter.Principal{Tenant: "t", Subject: "u"}
	document := func(level int64) filter.Access {
		return filter.Access{Readers: filter.Readers{Undeclared: true}, Attributes: filter.Attributes{"level": level}}
	}
	forbid := mustParse(t, modelSchema, allowAll+"\nforbid (principal, action, resource) "+overflow)
	require.True(t, admits(t, forbid, p, document(0)))
	count, _ := forbid.Faults()
	require.Zero(t, count)
	require.False(t, admits(t, forbid, p, document(1)))
	count, last := forbid.Faults()
	require.NotZero(t, count)
	require.ErrorContains(t, last, "test.cedar:2:1: forbid failed: ")

	permit := mustParse(t, modelSchema, allowAll+"\npermit (principal, action, resource) "+overflow)
	require.True(t, admits(t, permit, p, document(1)))
	alone := mustParse(t, modelSchema, "permit (principal, action, resource) "+overflow)
	require.False(t, admits(t, alone, p, document(1)))
	count, _ = alone.Faults()
	require.Zero(t, count, "a permit that fails is Cedar's ordinary no")
}

// TestUnfitAttributesDeny: a value of another type than declared cannot slip
// past a forbid that compares it.
func TestUnfitAttributesDeny(t *testing.T) {
	policies := mustParse(t, modelSchema, allowAll+`
		forbid (principal, action, resource) when { resource has team && resource.team == "secret" };`)
	p := filter.Principal{Tenant: "t", Subject: "u"}
	document := func(team any) filter.Access {
		return filter.Access{Readers: filter.Readers{Undeclared: true}, Attributes: filter.Attributes{"team": team}}
	}
	require.True(t, admits(t, policies, p, document("open")))
	require.True(t, admits(t, policies, p, document(nil)))
	require.False(t, admits(t, policies, p, document("secret")))
	require.False(t, admits(t, policies, p, document([]string{"secret"})))
	require.False(t, admits(t, policies, p, document(int64(1))))
	require.False(t, admits(t, policies, p, document(1.5)), "not a value of attributes at all")

	undemanding := mustParse(t, "entity User; entity Document; action read appliesTo { principal: User, resource: Document };", allowAll)
	require.True(t, admits(t, undemanding, p, document("open")))
	require.False(t, admits(t, undemanding, p, document(1.5)))
}

func TestUnfitPrincipalReadsNothing(t *testing.T) {
	policies := mustParse(t, modelSchema, allowAll)
	view := filter.NewView("t", policies).Apply([]filter.Change{{Access: readersOf(filter.Public)}})
	for _, level := range []any{"high", 1.5, []string{}} {
		p := filter.Principal{Tenant: "t", Subject: "u", Attributes: filter.Attributes{"level": level}}
		set, err := view.Resolve(p)
		require.ErrorIs(t, err, filter.ErrPrincipal)
		require.True(t, set.IsEmpty())
		ok, err := policies.Admits(p, readersOf(filter.Public))
		require.ErrorIs(t, err, filter.ErrPrincipal)
		require.False(t, ok)
	}
}

// TestActionHierarchy: a forbid on an ancestor of read holds for read.
func TestActionHierarchy(t *testing.T) {
	policies := mustParse(t, modelSchema, allowAll+`forbid (principal, action in Action::"any", resource);`)
	require.False(t, admits(t, policies, filter.Principal{Tenant: "t", Subject: "u"}, readersOf(filter.Public)))
}

// TestCachesKeepPrincipalsApart: principals that differ only in groups or
// attributes never share a cached answer.
func TestCachesKeepPrincipalsApart(t *testing.T) {
	policies := mustParse(t, modelSchema, `permit (principal in Group::"g", action, resource);`)
	view := filter.NewView("t", policies).Apply([]filter.Change{{Access: readersOf(filter.Public)}})
	for range 2 {
		in, err := view.Resolve(filter.Principal{Tenant: "t", Subject: "u", Groups: []string{"g"}})
		require.NoError(t, err)
		out, err := view.Resolve(filter.Principal{Tenant: "t", Subject: "u", Groups: []string{"g,"}})
		require.NoError(t, err)
		require.Equal(t, 1, in.Len())
		require.Zero(t, out.Len())
	}
}
