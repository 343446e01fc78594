package eval

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"sluice/index/text"
)

func TestValidity(t *testing.T) {
	v, err := Validate(groundedDir, Bounds{Low: 0.5, Share: 0.2})
	require.NoError(t, err)
	require.Equal(t, []int{36, 5, 128, 93, 96}, []int{v.Documents, v.Principals, v.Cases, v.Answerable, v.Items})
	require.InDelta(t, 0.413, v.Overlap.Mean, 0.001)
	require.InDelta(t, 67.0/93, v.LowOverlap.Mean, 1e-12)
	require.Equal(t, 96.0, v.Figures()["items"])
	require.Contains(t, v.Markdown(), "96 items")

	v, err = Validate(groundedDir, Bounds{Low: 0.5, Share: 0.73})
	require.ErrorIs(t, err, ErrOverlap)
	require.Positive(t, v.Items, "what was measured is there")
	_, err = Validate(t.TempDir(), Bounds{})
	require.ErrorContains(t, err, "no known data set")
}

func TestAQuoteThatReadersDoNotSee(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "grounded-access")
	require.NoError(t, os.CopyFS(dir, os.DirFS(groundedDir)))
	file := filepath.Join(dir, "corpus/northstar/hr-travel-policy.md")
	source, err := os.ReadFile(file)
	require.NoError(t, err)
	for name, changed := range map[string]string{"does not occur": "# Travel\n\nNothing.\n", "more than once": string(source) + "\n" + string(source)} {
		require.NoError(t, os.WriteFile(file, []byte(changed), 0o600))
		_, err = Validate(dir, Bounds{})
		require.ErrorIs(t, err, errNoPlace, name)
		require.ErrorContains(t, err, name)
	}
}

func TestOverlap(t *testing.T) {
	english, err := text.New("english")
	require.NoError(t, err)
	for _, c := range []struct {
		query, evidence string
		want            float64
	}{
		{"Who approves travel?", "Travelling is approved by a manager.", 1}, // stems; "who" says nothing
		{"travel travel policy", "policy", 0.5},                             // every term counts once
		{"the of", "the of", 0},
		{"x", "", 0},
	} {
		require.InDelta(t, c.want, overlap(english, c.query, c.evidence), 1e-12, c.query)
	}
}

func TestContradictingCases(t *testing.T) {
	for want, damage := range map[string]func(*Dataset){
		"evidence and must not appear": func(d *Dataset) { d.Cases[0].OutOfScope = d.Cases[0].Evidence[0].Documents },
		"ask the same and have other evidence": func(d *Dataset) {
			again := d.Cases[0]
			again.ID, again.Evidence = "again", nil
			d.Cases = append(d.Cases, again)
		},
	} {
		d := load(t, groundedDir)
		damage(d)
		require.ErrorContains(t, d.validate(), want)
	}
	d := load(t, groundedDir)
	again := d.Cases[0]
	again.ID, again.Region = "again", new(string)
	again.Evidence = nil
	d.Cases = append(d.Cases, again)
	require.NoError(t, d.validate(), "another scope is another question")
}

// A key that two tenants have is one document in each.
func TestProbesOfAKeyThatTwoTenantsHave(t *testing.T) {
	d := &Dataset{
		Documents: []Document{
			{Tenant: "a", Key: "k", Version: 1, Title: "ours"}, {Tenant: "b", Key: "k", Version: 1, Title: "theirs", Text: "line\na longer line"},
		},
		Visible: map[string]map[string]uint32{"p": {"k": 1}},
	}
	p := Principal{Name: "p", Tenant: "a"}
	var queries []string
	for _, one := range d.probesOf(p, []string{"dense"}) {
		require.Equal(t, "b", one.tenant)
		queries = append(queries, one.query)
	}
	require.Equal(t, []string{"", "a longer line", "theirs"}, queries)
	require.Equal(t, d.Documents[:1], d.without(p).Documents)
	require.LessOrEqual(t, len(d.wordsOf(Document{Title: strings.Repeat("é", maxProbe)})[0]), maxProbe)
}
