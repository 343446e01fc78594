package eval

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sluice/needs"
)

const groundedDir = "testdata/grounded-access"

func load(t *testing.T, dir string) *Dataset {
	t.Helper()
	d, err := Load(dir)
	require.NoError(t, err)
	return d
}

// answerable counts the cases that have evidence.
func answerable(cases []Case) int {
	n := 0
	for _, c := range cases {
		if len(c.Evidence) > 0 {
			n++
		}
	}
	return n
}

func TestGroundedAccess(t *testing.T) {
	d := load(t, groundedDir)
	require.Equal(t, 36, len(d.Documents))
	require.Equal(t, 5, len(d.Principals))
	require.Equal(t, 128, len(d.Cases))
	require.Equal(t, []string{"external", "northstar"}, slices.Sorted(slices.Values(d.Tenants())))
	test, err := d.Select("test")
	require.NoError(t, err)
	require.Equal(t, 94, len(test))
	require.Equal(t, 70, answerable(test))
	require.Equal(t, 26, len(d.Visible["alice-engineer"]))
	require.Equal(t, map[string]uint32{"hr-volunteer-policy": 1, "sales-product-overview": 1}, d.Visible["dave-contractor"])
}

func TestGroundedAccessVersions(t *testing.T) {
	d := load(t, groundedDir)
	var versions []uint32
	for _, doc := range d.Documents {
		if doc.Key == "sales-pricing-guide" {
			versions = append(versions, doc.Version)
		}
	}
	require.Equal(t, []uint32{1, 2}, versions)
	require.Equal(t, []string{"sales", "support"}, d.current("northstar")["sales-pricing-guide"].Attributes["departments"])
	require.Equal(t, uint32(2), d.Visible["bob-support"]["sales-pricing-guide"])
}

func TestGroundedAccessNullIsAbsent(t *testing.T) {
	d := load(t, groundedDir)
	dave, ok := d.principal("dave-contractor")
	require.True(t, ok)
	require.Equal(t, map[string]any{"clearance": "public", "projects": []string{}}, dave.Attributes)
	require.Empty(t, dave.region())
	alice, _ := d.principal("alice-engineer")
	require.Equal(t, "EU", alice.region())
}

func TestGroundedAccessQuotesOccurOnce(t *testing.T) {
	requireLocated(t, load(t, groundedDir))
}

// requireLocated checks every quote against the text of its version.
func requireLocated(t *testing.T, d *Dataset) {
	t.Helper()
	for _, c := range d.Cases {
		p, _ := d.principal(c.Principal)
		current := d.current(p.Tenant)
		for _, e := range c.Evidence {
			text := current[e.Documents[0]].Text
			start, end, err := locate(text, e.Quote, d.Matching)
			require.NoError(t, err, c.ID)
			require.Equal(t, foldText(e.Quote, nil).text[:1], foldText(text[start:end], nil).text[:1], c.ID)
		}
	}
}

func TestMultiCorpus(t *testing.T) {
	d := load(t, needs.Data(t, "rag-multi-corpus"))
	require.Equal(t, 236, len(d.Documents))
	require.Equal(t, 5, len(d.Tenants()))
	require.Equal(t, 71, len(d.Visible["zxbank-reader"]))
	require.Equal(t, 275, len(d.Cases))
	test, err := d.Select("test")
	require.NoError(t, err)
	require.Equal(t, 143, len(test))
	requireLocated(t, d)
}

func TestKEPs(t *testing.T) {
	d := load(t, needs.Data(t, "kubernetes-keps"))
	require.Equal(t, 667, len(d.Documents))
	require.Contains(t, d.Notes, "snapshot keps-2026-07-25")
	require.Equal(t, 667, len(d.Visible[kepAllSIGs]))
	require.Equal(t, 4, len(d.Principals))
	test, err := d.Select("test")
	require.NoError(t, err)
	require.Equal(t, 476, answerable(test))
	for _, c := range test {
		require.NotEmpty(t, c.Exclude, c.ID)
		require.Empty(t, c.Unauthorized, c.ID)
	}
	members, err := d.Select("members")
	require.NoError(t, err)
	require.Equal(t, 3*476, len(members))
	require.True(t, slices.ContainsFunc(members, func(c Case) bool { return len(c.Unauthorized) > 0 }))
}

func TestDigestFollowsTheContent(t *testing.T) {
	d := load(t, groundedDir)
	first, err := d.Digest()
	require.NoError(t, err)
	again, err := load(t, groundedDir).Digest()
	require.NoError(t, err)
	require.Equal(t, first, again)
	d.Documents[0].Text += "."
	changed, err := d.Digest()
	require.NoError(t, err)
	require.NotEqual(t, first, changed)
}

func TestLoadRefuses(t *testing.T) {
	_, err := Load(t.TempDir())
	require.ErrorContains(t, err, "holds no known data set")
	_, err = load(t, groundedDir).Select("train")
	require.ErrorContains(t, err, `no split "train"`)
}

func TestLoadRefusesAFileOutside(t *testing.T) {
	_, err := groundedLabel{File: "../principals.yaml"}.document(groundedDir, "x")
	require.ErrorContains(t, err, "not inside")
}

func TestReadYAMLRefusesUnknownKeys(t *testing.T) {
	path := filepath.Join(t.TempDir(), "labels.yaml")
	require.NoError(t, os.WriteFile(path, []byte("tenant: a\nsecret: true\n"), 0o600))
	require.ErrorContains(t, readYAML(path, new(groundedLabel)), "secret")
}

func TestValidateFindsContradictions(t *testing.T) {
	for name, damage := range map[string]func(*Dataset){
		"is not unique":                func(d *Dataset) { d.Cases[1].ID = d.Cases[0].ID },
		"unknown principal":            func(d *Dataset) { d.Cases[0].Principal = "nobody" },
		"is not visible":               func(d *Dataset) { d.Cases[0].Evidence[0].Version = 7 },
		"both unauthorized":            func(d *Dataset) { d.Cases[0].Unauthorized = []string{"hr-travel-policy"} },
		"no visibility label":          func(d *Dataset) { delete(d.Visible, "bob-support") },
		"not its current version":      func(d *Dataset) { d.Visible["bob-support"]["sales-pricing-guide"] = 1 },
		"has no cases":                 func(d *Dataset) { d.Cases = nil },
		"s not its current version in": func(d *Dataset) { d.Visible["dave-contractor"]["it-faq"] = 1 },
	} {
		d := load(t, groundedDir)
		damage(d)
		require.ErrorContains(t, d.validate(), name)
	}
}

func TestApplies(t *testing.T) {
	from := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	until := from.AddDate(1, 0, 0)
	doc := Document{Regions: []string{"EU"}, ValidFrom: &from, ValidUntil: &until}
	require.True(t, doc.applies("EU", from))
	require.False(t, doc.applies("US", from))
	require.False(t, doc.applies("", from))
	require.False(t, doc.applies("EU", from.Add(-1)))
	require.False(t, doc.applies("EU", until))
	require.True(t, Document{}.applies("", from))
}
