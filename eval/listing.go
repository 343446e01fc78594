package eval

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"sluice/client"
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
		r.report.Findings = append(r.report.Findings, compareListing(p.Name, editions(listed), r.dataset.Visible[p.Name])...)
		r.report.Findings = append(r.report.Findings, mixed(p.Name, listed)...)
		r.progress("listings", 1)
	}
	return nil
}

func (r *runner) list(ctx context.Context, session Session) ([]client.DocumentInfo, error) {
	var listed []client.DocumentInfo
	cursor := ""
	for range maxListing {
		page, err := session.List(ctx, r.dataset.Name, cursor, pageSize)
		if err != nil {
			return nil, err
		}
		listed = append(listed, page.Documents...)
		if page.Next == "" {
			return listed, nil
		}
		cursor = page.Next
	}
	return nil, fmt.Errorf("no end after %d pages", maxListing)
}

func editions(listed []client.DocumentInfo) []edition {
	all := make([]edition, len(listed))
	for i, doc := range listed {
		all[i] = edition{doc.Key, doc.Version}
	}
	return all
}

// mixed finds documents that are cut otherwise than the first of their format:
// figures of a mixture are of no chunker. Formats may have chunkers of their own.
func mixed(principal string, listed []client.DocumentInfo) []Finding {
	var findings []Finding
	first := map[string]client.DocumentInfo{}
	for _, doc := range listed {
		other, known := first[doc.Format]
		if !known {
			first[doc.Format] = doc
		} else if doc.Chunker != other.Chunker {
			findings = append(findings, Finding{Mixed, principal, "", "", doc.Key, doc.Version, fmt.Sprintf("cut by %s, and %s by %s: reindex the collection", doc.Chunker, other.Key, other.Chunker)})
		}
	}
	return findings
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
