package local

import (
	"fmt"

	"sluice/index"
	"sluice/index/local/ivf"
)

// openManifest reads the manifest, or writes that of an empty index where
// there is none, or where a rebuild was cut short.
func openManifest(dir string, options Options) (*manifest, error) {
	m, err := readManifest(options.FS, dir)
	if err != nil {
		return nil, fmt.Errorf("opening index: %w", err)
	}
	if m == nil {
		return createManifest(dir, options, 1)
	}
	if differs := options.mismatch(m); differs != "" {
		return nil, fmt.Errorf("index %s was made with %s: %w", dir, differs, index.ErrRebuild)
	}
	if m.epoch == 0 && len(m.segments) > 0 {
		return createManifest(dir, options, m.nextID)
	}
	return m, nil
}

func createManifest(dir string, options Options, nextID uint64) (*manifest, error) {
	m := &manifest{
		nextID:   nextID,
		dims:     uint32(options.Dimensions),
		analyzer: options.Analyzer.Identity(),
		model:    options.Model,
	}
	if err := options.FS.MkdirAll(dir, 0o750); err != nil {
		return nil, fmt.Errorf("creating index %s: %w", dir, err)
	}
	if err := syncDir(options.FS, options.FS.PathDir(dir)); err != nil {
		return nil, fmt.Errorf("creating index %s: %w", dir, err)
	}
	if err := writeManifest(options.FS, dir, m); err != nil {
		return nil, fmt.Errorf("creating index %s: %w", dir, err)
	}
	return m, nil
}

// openParts opens the segments of the manifest and removes every other.
func openParts(dir string, options Options, space *ivf.Space, m *manifest) ([]part, error) {
	var parts []part
	keep := map[string]bool{}
	for _, entry := range m.segments {
		p, err := openPart(dir, options, space, entry)
		if err != nil {
			releaseAll(parts)
			return nil, err
		}
		parts = append(parts, p)
		keep[segmentName(entry.id)], keep[codesName(entry.id)] = true, true
	}
	if err := removeOthers(options.FS, dir, keep); err != nil {
		releaseAll(parts)
		return nil, err
	}
	return parts, nil
}

// openPart opens one segment and checks it against its manifest entry.
func openPart(dir string, options Options, space *ivf.Space, entry segmentEntry) (part, error) {
	seg, err := openSegmentFile(dir, options, entry.id)
	if err != nil {
		return part{}, err
	}
	if err := openCodes(dir, options, space, seg); err != nil {
		seg.release()
		return part{}, err
	}
	seg.hold(options)
	p := part{seg: seg}
	if entry.deleted != nil {
		p = p.without(entry.deleted.ToArray())
	}
	switch {
	case uint64(len(seg.data)) != entry.size || seg.sum != entry.sum || seg.dims != options.Dimensions:
		err = fmt.Errorf("segment %s/%s is not the one of the manifest: %w", dir, segmentName(entry.id), index.ErrRebuild)
	case entry.deleted != nil && (p.deleted == nil || !p.deleted.Equals(entry.deleted)):
		err = fmt.Errorf("deletions of %s/%s name documents it lacks: %w", dir, segmentName(entry.id), index.ErrRebuild)
	}
	if err != nil {
		seg.release()
		return part{}, err
	}
	return p, nil
}
