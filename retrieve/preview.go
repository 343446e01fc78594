package retrieve

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"sluice/filter"
	"sluice/store"
)

// Bounds on a preview.
const (
	maxPreviewed   = 10_000 // principals
	maxEvaluations = 50e6   // principals × access classes × policies, of now and then
	maxDifferences = 100    // principals that are told of
	maxDocuments   = 20     // keys of documents gained, and of those lost, of one principal
)

// Supposition is what a preview supposes: other access rows, other policies, or
// both.
type Supposition struct {
	Changes  []AccessChange
	Policies *filter.Policies // nil: those in force
}

// AccessChange is a change of one document's access row.
type AccessChange struct {
	Key    string
	Change func(filter.Access) (filter.Access, error)
}

// Previewed is a principal under a name of its own.
type Previewed struct {
	Name string
	filter.Principal
}

// Preview says who would gain and who would lose which documents.
type Preview struct {
	Compared    int           // principals
	LeftOut     int           // principals that were too many, for their number or for what policies and access classes make of it
	Changed     int           // of the compared, those who gain or lose
	Gained      int           // documents, over all principals
	Lost        int           // likewise
	Differences []Difference  // those with the most, at most 100
	Unfit       []string      // names of principals, at most 100, that do not fit the policies, now or then: they read nothing
	Failed      map[int]error // by index, the changes that could not be made
	Epoch       uint64        // that the present reflects at least
}

// Difference is what one principal gains and loses: how many, and keys, at most
// 20 of each.
type Difference struct {
	Name         string
	Gains, Loses int
	Gained, Lost []string
}

// Preview compares what principals may read with what they could read under the
// supposition. Without principals it takes every reader that documents name,
// now or then: a user without groups and attributes, a member of one group
// alone, and, for "public", somebody of the tenant. Nothing is changed.
func (e *Engine) Preview(ctx context.Context, tenant, collection string, s Supposition, principals []Previewed) (Preview, error) {
	epoch := e.serving.Applied()
	at, err := e.serving.acquire(tenant, collection, 0)
	if err != nil {
		return Preview{}, err
	}
	defer at.release()
	now := at.view.Fork()
	then, failed, err := e.suppose(ctx, at, now, s)
	if err != nil {
		return Preview{}, err
	}
	if len(principals) == 0 {
		principals = named(tenant, now, then)
	}
	p := Preview{Epoch: epoch, Failed: failed, LeftOut: max(0, len(principals)-previewable(now, then))}
	principals = principals[:len(principals)-p.LeftOut]
	return p, e.compare(ctx, &p, at, now, then, principals)
}

// previewable is how many principals are compared at most: at least one.
func previewable(views ...*filter.View) int {
	each := 1
	for _, v := range views {
		each += v.Classes() * v.Policies().Len()
	}
	return min(maxPreviewed, max(1, maxEvaluations/each))
}

// suppose returns the view under the supposition, and the changes that fail.
func (e *Engine) suppose(ctx context.Context, at *snapshot, now *filter.View, s Supposition) (*filter.View, map[int]error, error) {
	policies := cmp.Or(s.Policies, now.Policies())
	failed, rows := map[int]error{}, map[uint32]filter.Access{}
	for i, c := range s.Changes {
		record, err := e.store.Lookup(ctx, at.ID, c.Key)
		if err == nil {
			err = suppose(record, c, policies, rows)
		} else if !errors.Is(err, store.ErrNotFound) {
			return nil, nil, fmt.Errorf("supposing change %d: %w", i+1, err)
		}
		if err != nil {
			failed[i] = err
		}
		if err := ctx.Err(); err != nil {
			return nil, nil, err
		}
	}
	changes := make([]filter.Change, 0, len(rows))
	for ordinal, access := range rows {
		changes = append(changes, filter.Change{Ordinal: ordinal, Access: access})
	}
	return now.Apply(changes).WithPolicies(policies), failed, nil
}

// suppose puts the changed row of a document into rows, from the one that is
// there already or else from the store's.
func suppose(record store.Record, c AccessChange, policies *filter.Policies, rows map[uint32]filter.Access) error {
	row, changed := rows[record.Ordinal]
	if !changed {
		row = record.Access
	}
	row, err := c.Change(row)
	if err != nil {
		return err
	}
	if err := policies.CheckDocument(row.Attributes); err != nil {
		return fmt.Errorf("%w: the policies could never permit this document: %w", store.ErrInvalid, err)
	}
	rows[record.Ordinal] = row
	return nil
}

// nobody is a subject that no identity can have.
const nobody = "\x00"

// named makes principals of the readers that the views name.
func named(tenant string, views ...*filter.View) []Previewed {
	readers := map[filter.Reader]bool{filter.Public: true}
	for _, view := range views {
		for reader := range view.Readers {
			readers[reader] = true
		}
	}
	all := make([]Previewed, 0, len(readers))
	for reader := range readers {
		p := filter.Principal{Tenant: tenant, Subject: nobody}
		switch kind, name, _ := strings.Cut(string(reader), ":"); kind {
		case "user":
			p.Subject = name
		case "group":
			p.Groups = []string{name}
		}
		all = append(all, Previewed{string(reader), p})
	}
	slices.SortFunc(all, func(a, b Previewed) int { return cmp.Compare(a.Name, b.Name) })
	return all
}

// moved is a difference before its documents have names.
type moved struct {
	name         string
	gained, lost filter.Set
}

func (m moved) size() int { return m.gained.Len() + m.lost.Len() }

func (e *Engine) compare(ctx context.Context, p *Preview, at *snapshot, now, then *filter.View, principals []Previewed) error {
	var most []moved
	for _, who := range principals {
		before, unfit := now.ResolveContext(ctx, who.Principal)
		after, unfitThen := then.ResolveContext(ctx, who.Principal)
		if err := ctx.Err(); err != nil {
			return err
		}
		if (unfit != nil || unfitThen != nil) && len(p.Unfit) < maxDifferences {
			p.Unfit = append(p.Unfit, who.Name)
		}
		m := moved{who.Name, after.AndNot(before), before.AndNot(after)}
		p.count(m)
		if m.size() > 0 {
			most = upTo(maxDifferences, append(most, m), 2*maxDifferences)
		}
	}
	for _, m := range upTo(maxDifferences, most, 0) {
		d, err := e.difference(ctx, at, m)
		if err != nil {
			return err
		}
		p.Differences = append(p.Differences, d)
	}
	return nil
}

func (p *Preview) count(m moved) {
	p.Compared++
	p.Gained += m.gained.Len()
	p.Lost += m.lost.Len()
	if m.size() > 0 {
		p.Changed++
	}
}

// upTo keeps the n largest, if there are more than slack.
func upTo(n int, all []moved, slack int) []moved {
	if len(all) <= slack {
		return all
	}
	slices.SortStableFunc(all, func(a, b moved) int { return cmp.Compare(b.size(), a.size()) })
	return all[:min(n, len(all))]
}

func (e *Engine) difference(ctx context.Context, at *snapshot, m moved) (Difference, error) {
	d := Difference{Name: m.name, Gains: m.gained.Len(), Loses: m.lost.Len()}
	var err, errLost error
	d.Gained, err = e.keys(ctx, at, m.gained)
	d.Lost, errLost = e.keys(ctx, at, m.lost)
	return d, errors.Join(err, errLost)
}

// keys returns those of the first documents of the set.
func (e *Engine) keys(ctx context.Context, at *snapshot, set filter.Set) ([]string, error) {
	var ordinals []uint32
	for ordinal := range set.Each {
		if ordinals = append(ordinals, ordinal); len(ordinals) == maxDocuments {
			break
		}
	}
	records, err := e.store.Records(ctx, at.ID, ordinals)
	if err != nil {
		return nil, err
	}
	keys := []string{}
	for _, ordinal := range ordinals {
		if record, exists := records[ordinal]; exists {
			keys = append(keys, record.Key)
		}
	}
	return keys, nil
}
