package chunk

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"sluice/document"
)

// recorded keeps the sections that it is asked for.
type recorded struct {
	Planner
	sections []Section
}

func (r *recorded) Plan(ctx context.Context, s Section) ([][]string, error) {
	r.sections = append(r.sections, s)
	return r.Planner.Plan(ctx, s)
}

// TestSections: at most 60 elements, cut before headings, under their ancestors.
func TestSections(t *testing.T) {
	var source strings.Builder
	source.WriteString("# Top\n\n")
	for i := range 30 {
		fmt.Fprintf(&source, "## Part %d\n\n", i)
		for range 4 {
			source.WriteString("Some words here.\n\n")
		}
	}
	source.WriteString(strings.Repeat("more\n\n", 200))
	doc, err := document.Parse("markdown", []byte(source.String()))
	require.NoError(t, err)
	r := &recorded{Planner: Rules{}}
	chunks, err := Planned(t.Context(), doc, r)
	require.NoError(t, err)
	require.NoError(t, checkAny(doc, chunks))
	require.Equal(t, chunks, plan{}.Chunk(doc))
	seen := map[string]bool{}
	for i, s := range r.sections {
		require.LessOrEqual(t, len(s.Elements), maxElements)
		for _, e := range s.Elements {
			require.False(t, seen[e.ID], e.ID)
			seen[e.ID] = true
		}
		if i > 0 && i < 3 {
			require.Equal(t, document.Heading, s.Elements[0].Kind)
			require.Equal(t, "h1", s.Ancestors[0].ID)
		}
		groups, err := Rules{}.Plan(t.Context(), s)
		require.NoError(t, err)
		missing, err := s.Check(groups)
		require.NoError(t, err)
		require.Empty(t, missing)
	}
	require.Len(t, seen, 1+30*5+200)
}

// fixedPlan answers with the same groups always.
type fixedPlan [][]string

func (p fixedPlan) Plan(context.Context, Section) ([][]string, error) { return p, nil }

func TestPlansAreChecked(t *testing.T) {
	doc, err := document.Parse("markdown", []byte("# A\n\none\n\ntwo\n\nthree\n"))
	require.NoError(t, err)
	for _, wrong := range []fixedPlan{{{"p1", "p9"}}, {{"p1"}, {"p1", "p2"}}} {
		_, err := Planned(t.Context(), doc, wrong)
		require.ErrorIs(t, err, ErrPlan)
	}
	chunks, err := Planned(t.Context(), doc, fixedPlan{{"h1", "p3", "p1"}, {"h1"}})
	require.NoError(t, err)
	require.NoError(t, checkAny(doc, chunks))
	require.Len(t, chunks, 3) // p1 and p3 are no neighbours, p2 was forgotten
}
