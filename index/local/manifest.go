package local

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"sluice/index"
)

const (
	manifestName   = "MANIFEST"
	manifestMagic  = "SLUICMAN"
	manifestFormat = 1
	// manifestFeatures grows when segments hold something that older ones lack,
	// without a change of layout: the index is then rebuilt.
	manifestFeatures = 2
	maxManifest      = 1 << 30
	maxName          = 1 << 12 // bytes of analyzer and model
)

// manifest says what the index durably is: the state of one epoch. Its bytes
// are described in docs/formats/index.md.
type manifest struct {
	epoch    uint64
	nextID   uint64 // greater than every segment's
	dims     uint32
	analyzer string
	model    string
	segments []segmentEntry
}

type segmentEntry struct {
	id      uint64
	size    uint64
	sum     uint32          // the segment footer's checksum
	deleted *roaring.Bitmap // nil: none
}

func (m *manifest) encode() ([]byte, error) {
	b := []byte(manifestMagic)
	b = binary.LittleEndian.AppendUint32(b, manifestFormat)
	b = binary.LittleEndian.AppendUint32(b, manifestFeatures)
	b = binary.LittleEndian.AppendUint64(b, m.epoch)
	b = binary.LittleEndian.AppendUint64(b, m.nextID)
	b = binary.LittleEndian.AppendUint32(b, m.dims)
	b = appendBytes(b, []byte(m.analyzer))
	b = appendBytes(b, []byte(m.model))
	b = binary.LittleEndian.AppendUint32(b, uint32(len(m.segments)))
	for _, s := range m.segments {
		deleted, err := encodeBitmap(s.deleted)
		if err != nil {
			return nil, fmt.Errorf("encoding the deletions of segment %d: %w", s.id, err)
		}
		b = binary.LittleEndian.AppendUint64(b, s.id)
		b = binary.LittleEndian.AppendUint64(b, s.size)
		b = binary.LittleEndian.AppendUint32(b, s.sum)
		b = appendBytes(b, deleted)
	}
	return binary.LittleEndian.AppendUint32(b, crc32.Checksum(b, castagnoli)), nil
}

func appendBytes(b, field []byte) []byte {
	return append(binary.LittleEndian.AppendUint32(b, uint32(len(field))), field...)
}

func encodeBitmap(b *roaring.Bitmap) ([]byte, error) {
	if b == nil {
		return nil, nil
	}
	return b.ToBytes()
}

// decodeManifest reads a manifest. A later format is index.ErrNewerFormat,
// damage and everything else that is not ours index.ErrRebuild.
func decodeManifest(b []byte) (*manifest, error) {
	if len(b) < 16 || string(b[:8]) != manifestMagic {
		return nil, fmt.Errorf("not a manifest: %w", index.ErrRebuild)
	}
	if format := binary.LittleEndian.Uint32(b[8:]); format > manifestFormat {
		return nil, fmt.Errorf("manifest format %d, this version knows %d: %w", format, manifestFormat, index.ErrNewerFormat)
	}
	body, sum := b[:len(b)-4], binary.LittleEndian.Uint32(b[len(b)-4:])
	if crc32.Checksum(body, castagnoli) != sum {
		return nil, fmt.Errorf("manifest checksum: %w", index.ErrRebuild)
	}
	if features := binary.LittleEndian.Uint32(b[12:]); features != manifestFeatures {
		return nil, fmt.Errorf("manifest features %d, this version writes %d: %w", features, manifestFeatures, index.ErrRebuild)
	}
	d := decoder{rest: body[16:]}
	m := d.manifest()
	if d.bad || len(d.rest) > 0 {
		return nil, fmt.Errorf("damaged manifest: %w", index.ErrRebuild)
	}
	return m, nil
}

// decoder takes fields off the front. Once bad it stays so and gives zeros.
type decoder struct {
	rest []byte
	bad  bool
}

func (d *decoder) manifest() *manifest {
	m := &manifest{epoch: d.uint64(), nextID: d.uint64(), dims: d.uint32()}
	m.analyzer = string(d.bytes(maxName))
	m.model = string(d.bytes(maxName))
	for n := d.uint32(); n > 0 && !d.bad; n-- {
		s := segmentEntry{id: d.uint64(), size: d.uint64(), sum: d.uint32()}
		s.deleted = d.bitmap()
		d.bad = d.bad || s.id == 0 || s.id >= m.nextID
		m.segments = append(m.segments, s)
	}
	return m
}

func (d *decoder) take(n int) []byte {
	if d.bad || n > len(d.rest) {
		d.bad = true
		return make([]byte, min(n, 8))
	}
	taken := d.rest[:n]
	d.rest = d.rest[n:]
	return taken
}

func (d *decoder) uint32() uint32 { return binary.LittleEndian.Uint32(d.take(4)) }
func (d *decoder) uint64() uint64 { return binary.LittleEndian.Uint64(d.take(8)) }

func (d *decoder) bytes(limit int) []byte {
	n := int(d.uint32())
	if d.bad || n > limit {
		d.bad = true
		return nil
	}
	return d.take(n)
}

func (d *decoder) bitmap() *roaring.Bitmap {
	b := d.bytes(maxManifest)
	if d.bad || len(b) == 0 {
		return nil
	}
	bitmap := roaring.New()
	if err := bitmap.UnmarshalBinary(b); err != nil || bitmap.Validate() != nil {
		d.bad = true
		return nil
	}
	return bitmap
}

func writeManifest(files vfs.FS, dir string, m *manifest) error {
	encoded, err := m.encode()
	if err != nil {
		return err
	}
	if len(encoded) > maxManifest {
		return fmt.Errorf("the manifest of %s would have %d bytes, more than %d", dir, len(encoded), maxManifest)
	}
	return writeFile(files, dir, manifestName, func(w io.Writer) error {
		_, err := w.Write(encoded)
		return err
	})
}

// readManifest returns nil if the directory holds nothing of an index.
func readManifest(files vfs.FS, dir string) (*manifest, error) {
	path := files.PathJoin(dir, manifestName)
	f, err := files.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, missingManifest(files, dir)
	}
	if err != nil {
		return nil, fmt.Errorf("opening %s: %w", path, err)
	}
	defer f.Close() //nolint:errcheck // only read
	b, err := io.ReadAll(io.LimitReader(f, maxManifest+1))
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", path, err)
	}
	m, err := decodeManifest(b)
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", path, err)
	}
	return m, nil
}

// missingManifest tells a new directory from one that has lost its manifest.
func missingManifest(files vfs.FS, dir string) error {
	names, err := files.List(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("listing %s: %w", dir, err)
	}
	for _, name := range names {
		if name != manifestName+temporary {
			return fmt.Errorf("%s has files but no manifest: %w", dir, index.ErrRebuild)
		}
	}
	return nil
}
