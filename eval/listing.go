package eval

import (
	"context"
	"fmt"
	"maps"
	"slices"
)

const (
	pageSize   = 1000
	maxListing = 10_000 // pages, of a listing that never ends
)

// edition is one version of one document.
type edition struct {
	key     string
	version uint32
}

// checkListings compares what every principal may list with the labels.
func (r *runner) checkListings(ctx context.Context) error {
	for _, p := range r.dataset.Principals {
		session, err := r.session(ctx, p.Name)
		if err != nil {
			return err
		}
		listed, err := r.list(ctx, session)
		if err != nil {
			return fmt.Errorf("listing as %s: %w", p.Name, err)
		}
		r.report.Findings = append(r.report.Findings, compareListing(p.Name, listed, r.dataset.Visible[p.Name])...)
		r.progress("listings", 1)
	}
	return nil
}

func (r *runner) list(ctx context.Context, session Session) ([]edition, error) {
	var listed []edition
	cursor := ""
	for range maxListing {
		page, err := session.List(ctx, r.dataset.Name, cursor, pageSize)
		if err != nil {
			return nil, err
		}
		for _, doc := range page.Documents {
			listed = append(listed, edition{doc.Key, doc.Version})
		}
		if page.Next == "" {
			return listed, nil
		}
		cursor = page.Next
	}
	return nil, fmt.Errorf("no end after %d pages", maxListing)
}

// compareListing finds a leak in every edition beyond the labels, and a
// disagreement in every labelled one that is not listed. A document listed only
// in another version than the labelled is a disagreement, not a leak.
func compareListing(principal string, listed []edition, visible map[string]uint32) []Finding {
	var findings []Finding
	found := map[string]bool{}
	for _, e := range listed {
		if visible[e.key] == e.version {
			found[e.key] = true
		}
	}
	for _, e := range listed {
		version, labelled := visible[e.key]
		if !labelled || version != e.version && found[e.key] {
			findings = append(findings, Finding{Leak, principal, "", "", e.key, e.version, "listed, though the labels do not make it visible"})
		}
	}
	for _, key := range slices.Sorted(maps.Keys(visible)) {
		if !found[key] {
			findings = append(findings, Finding{Disagreement, principal, "", "", key, visible[key], "visible by the labels, but not listed"})
		}
	}
	return findings
}
