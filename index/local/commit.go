package local

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"

	"sluice/index"
)

// commit makes a state durable: it seals the fresh parts into one segment,
// switches the manifest at the present epoch and publishes the result. On an
// error the present state stays and nothing is lost. The caller holds the lock.
func (ix *Index) commit(ctx context.Context, parts []part) error {
	sealed, fresh := split(parts)
	if countLive(fresh) > 0 {
		seg, err := ix.writeSegment(ctx, ix.takeID(), fresh)
		if err != nil {
			ix.discard(sealed, ix.current.parts)
			return err
		}
		defer seg.release()
		sealed = append(sealed, part{seg: seg})
	}
	if err := writeManifest(ix.options.FS, ix.dir, ix.manifest(sealed)); err != nil {
		ix.discard(sealed, ix.current.parts)
		return err
	}
	ix.discard(ix.current.parts, sealed)
	ix.publish(ix.current.epoch, sealed)
	ix.durable.Store(ix.current.epoch)
	ix.dirty = false
	ix.removeGarbage()
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
func (ix *Index) writeSegment(ctx context.Context, id uint64, parts []part) (*segment, error) {
	err := writeFile(ix.options.FS, ix.dir, segmentName(id), func(w io.Writer) error {
		return mergeParts(ctx, w, ix.options.Dimensions, parts)
	})
	if err != nil {
		return nil, err
	}
	return openSegmentFile(ix.dir, ix.options, id)
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

// discard notes the files of parts that are not among the kept. They are
// removed only after a later manifest is known to be durable: after an error
// it is not known which one a crash would leave.
func (ix *Index) discard(parts, kept []part) {
	for _, p := range parts {
		same := func(k part) bool { return k.seg == p.seg }
		if p.seg.id != 0 && !slices.ContainsFunc(kept, same) {
			ix.garbage = append(ix.garbage, segmentName(p.seg.id))
		}
	}
}

// removeGarbage tries again later what it can't remove now.
func (ix *Index) removeGarbage() {
	ix.garbage = slices.DeleteFunc(ix.garbage, func(name string) bool {
		err := ix.options.FS.Remove(ix.options.FS.PathJoin(ix.dir, name))
		if err == nil || errors.Is(err, fs.ErrNotExist) {
			return true
		}
		ix.options.Log.Warn("removing an index segment that is no longer used", "dir", ix.dir, "segment", name, "error", err)
		return false
	})
}
