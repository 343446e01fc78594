package local

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"

	"golang.org/x/time/rate"

	"sluice/index"
)

// commit makes a state durable: it seals the fresh parts into one segment,
// switches the manifest at the present epoch and publishes the result. On an
// error the present state stays and nothing is lost; files stay too, since it
// is not known which manifest a crash would leave. The caller holds the lock.
func (ix *Index) commit(ctx context.Context, parts []part) error {
	sealed, fresh := split(parts)
	if countLive(fresh) > 0 {
		seg, err := ix.writeSegment(ctx, ix.takeID(), fresh, 0, nil) // lists take long, and the lock is held
		if err != nil {
			return err
		}
		defer seg.release()
		sealed = append(sealed, part{seg: seg})
	}
	if err := writeManifest(ix.options.FS, ix.dir, ix.manifest(sealed)); err != nil {
		return err
	}
	ix.publish(ix.current.epoch, sealed)
	ix.durable.Store(ix.current.epoch)
	ix.dirty = false
	ix.tidy(sealed)
	ix.wakeMerger()
	return nil
}

func split(parts []part) (sealed, fresh []part) {
	for _, p := range parts {
		if p.seg.id == 0 {
			fresh = append(fresh, p)
		} else {
			sealed = append(sealed, p)
		}
	}
	return sealed, fresh
}

func countLive(parts []part) (rows int) {
	for _, p := range parts {
		rows += p.liveRows()
	}
	return rows
}

func releaseAll(parts []part) {
	for _, p := range parts {
		p.seg.release()
	}
}

func (ix *Index) takeID() uint64 {
	ix.nextID++
	return ix.nextID - 1
}

// writeSegment merges parts into the file of a new segment and opens it.
func (ix *Index) writeSegment(ctx context.Context, id uint64, parts []part, lists int, limit *rate.Limiter) (*segment, error) {
	err := writeFile(ix.options.FS, ix.dir, segmentName(id), func(w io.Writer) error {
		return mergeParts(ctx, paced(ctx, w, limit), ix.options.Dimensions, parts)
	})
	if err != nil {
		return nil, err
	}
	seg, err := openSegmentFile(ix.dir, ix.options, id)
	if err != nil {
		return nil, err
	}
	if err := ix.writeCodes(ctx, seg, lists, limit); err != nil {
		seg.release()
		return nil, err
	}
	seg.hold(ix.options)
	return seg, nil
}

func openSegmentFile(dir string, options Options, id uint64) (*segment, error) {
	path := options.FS.PathJoin(dir, segmentName(id))
	data, unmap, err := readFile(options.FS, path, options.Log)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("segment %s is missing: %w", path, index.ErrRebuild)
	}
	if err != nil {
		return nil, fmt.Errorf("opening segment %s: %w", path, err)
	}
	seg, err := openSegment(data)
	if err != nil {
		if unmap != nil {
			unmap()
		}
		return nil, fmt.Errorf("opening %s: %w", path, err)
	}
	seg.id, seg.unmap = id, unmap
	return seg, nil
}

func (ix *Index) manifest(sealed []part) *manifest {
	m := &manifest{
		epoch:    ix.current.epoch,
		nextID:   ix.nextID,
		dims:     uint32(ix.options.Dimensions),
		analyzer: ix.options.Analyzer.Identity(),
		model:    ix.options.Model,
	}
	for _, p := range sealed {
		m.segments = append(m.segments, segmentEntry{p.seg.id, uint64(len(p.seg.data)), p.seg.sum, p.deleted})
	}
	return m
}

// tidy removes the files that the manifest just made durable does not name:
// what it replaced and what failed attempts have left. What can't be removed
// now is tried again after the next commit.
func (ix *Index) tidy(sealed []part) {
	keep := map[string]bool{}
	pending := ix.pending.Load()
	for _, name := range []string{segmentName(pending), codesName(pending)} {
		keep[name], keep[name+temporary] = true, true
	}
	for _, p := range sealed {
		keep[segmentName(p.seg.id)], keep[codesName(p.seg.id)] = true, true
	}
	if err := removeOthers(ix.options.FS, ix.dir, keep); err != nil {
		ix.options.Log.Warn("removing index files that are no longer used", "dir", ix.dir, "error", err)
	}
}
