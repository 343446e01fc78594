package bench

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"unsafe"

	"golang.org/x/sync/errgroup"

	"sluice/gpu"
	"sluice/gpu/cpu"
	"sluice/kernels/ref"
	"sluice/model"
	"sluice/model/tokenizer"
)

const (
	sentencesVersion = 1   // of how corpora are cut; part of the cache's key
	topics           = 256 // classes that correlated filters are made of
	batchTokens      = 8192
)

// VectorOptions says which vectors LoadVectors makes.
type VectorOptions struct {
	Model   string // folder of the embedding model
	Corpora string // folder with .md, .txt and .tar.xz files
	Cache   string // folder that keeps the sentences' vectors
	Rows    int
	Queries int       // sentences held out (default 1,000)
	Log     io.Writer // progress; nil: none
}

// Vectors are unit vectors to search among, and queries that are not in them.
// The same options give the same ones.
type Vectors struct {
	Dims      int
	Rows      []float32 // row-major: real sentences first, noisy copies of them after
	Queries   []float32 // row-major: held-out sentences
	Sentences int       // rows that are real sentences
	topic     []uint16  // by row
}

// LoadVectors embeds the distinct sentences of the corpora with the engine's
// fastest precision, or takes their vectors from the cache, holds out queries,
// and fills up with copies at cosines of .8 to .9 until there are o.Rows rows.
func LoadVectors(ctx context.Context, o VectorOptions) (*Vectors, error) {
	if o.Queries == 0 {
		o.Queries = 1000
	}
	if o.Log == nil {
		o.Log = io.Discard
	}
	base, dims, err := o.cached(ctx)
	if err != nil {
		return nil, fmt.Errorf("making vectors of the sentences in %s: %w", o.Corpora, err)
	}
	if len(base) < (o.Queries+topics)*dims {
		return nil, fmt.Errorf("%s has %d distinct sentences, too few: %d are needed", o.Corpora, len(base)/dims, o.Queries+topics)
	}
	shuffle(base, dims)
	v := &Vectors{Dims: dims, Queries: base[:o.Queries*dims]}
	v.fill(base[o.Queries*dims:], o.Rows)
	return v, nil
}

// Row returns the i-th vector.
func (v *Vectors) Row(i int) []float32 { return v.Rows[i*v.Dims : (i+1)*v.Dims] }

func (v *Vectors) query(i int) []float32 { return v.Queries[i*v.Dims : (i+1)*v.Dims] }

func (v *Vectors) count() int { return len(v.topic) }

// digest names the rows.
func (v *Vectors) digest() string {
	sum := sha256.Sum256(bytesOf(v.Rows))
	return fmt.Sprintf("%x", sum[:8])
}

// Allowed returns the rows that a filter admits, ascending: share of all, at
// least ten. Random ones are drawn row by row; correlated ones topic by topic,
// so that a query's neighbours are nearly all admitted or nearly all not.
func (v *Vectors) Allowed(share float64, correlated bool, seed uint64) []uint32 {
	count := len(v.topic)
	want := min(max(int(math.Round(share*float64(count))), 10), count)
	rng := rand.New(rand.NewPCG(seed, 3))
	order := rng.Perm(count)
	if correlated {
		place := rng.Perm(topics)
		slices.SortStableFunc(order, func(a, b int) int { return place[v.topic[a]] - place[v.topic[b]] })
	}
	rows := make([]uint32, want)
	for i := range rows {
		rows[i] = uint32(order[i])
	}
	slices.Sort(rows)
	return rows
}

// cached returns the sentences' vectors, row-major.
func (o VectorOptions) cached(ctx context.Context) (vectors []float32, dims int, err error) {
	m, err := model.Load(o.Model)
	if err != nil {
		return nil, 0, err
	}
	key, err := corpusKey(o.Corpora, m.Digest)
	if err != nil {
		return nil, 0, err
	}
	path := filepath.Join(o.Cache, "sentences-"+key+".f32")
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		vectors, err = o.embed(ctx, m)
		if err != nil {
			return nil, 0, err
		}
		return vectors, m.Dimensions(), save(path, bytesOf(vectors))
	}
	return floatsOf(data), m.Dimensions(), err
}

// corpusKey names the files' paths and sizes, and the model.
func corpusKey(dir, digest string) (string, error) {
	hash := sha256.New()
	fmt.Fprintln(hash, sentencesVersion, digest, cpu.Int8)
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !(isText(path) || isArchive(path)) {
			return err
		}
		info, err := entry.Info()
		if err == nil {
			fmt.Fprintln(hash, path[len(dir):], info.Size())
		}
		return err
	})
	return fmt.Sprintf("%x", hash.Sum(nil)[:8]), err
}

func save(path string, data []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(path+".part", data, 0o644); err != nil {
		return err
	}
	return os.Rename(path+".part", path)
}

func (o VectorOptions) embed(ctx context.Context, m *model.Model) ([]float32, error) {
	texts, err := readSentences(o.Corpora)
	if err != nil {
		return nil, err
	}
	fmt.Fprintf(o.Log, "embedding %d distinct sentences\n", len(texts))
	ids, err := encodeAll(m, texts)
	if err != nil {
		return nil, err
	}
	device, err := cpu.NewPrecision(m, 0, cpu.Int8)
	if err != nil {
		return nil, err
	}
	vectors, err := embedAll(ctx, device, ids)
	return vectors, errors.Join(err, device.Close())
}

func encodeAll(m *model.Model, texts []string) ([][]int32, error) {
	t, err := tokenizer.Load(m.Tokenizer)
	if err != nil {
		return nil, err
	}
	ids := make([][]int32, len(texts))
	for i, text := range texts {
		var e tokenizer.Encoding
		if err := t.Encode(&e, text, tokenizer.Options{MaxLength: goldenTokens}); err != nil {
			return nil, err
		}
		ids[i] = e.IDs
	}
	return ids, nil
}

// embedAll runs batches of about batchTokens tokens, in the order given.
func embedAll(ctx context.Context, device *cpu.Device, ids [][]int32) ([]float32, error) {
	dims := device.Dimensions()
	vectors := make([]float32, len(ids)*dims)
	var batch gpu.Batch
	batch.Reset()
	from := 0
	for i, sequence := range ids {
		batch.Append(sequence, make([]int32, len(sequence)))
		if batch.Tokens() < batchTokens && i < len(ids)-1 {
			continue
		}
		if err := device.Run(ctx, &batch, gpu.Output{Pooled: vectors[from*dims : (i+1)*dims]}); err != nil {
			return nil, err
		}
		from = i + 1
		batch.Reset()
	}
	return vectors, nil
}

func shuffle(vectors []float32, dims int) {
	swap := make([]float32, dims)
	rand.New(rand.NewPCG(1, 1)).Shuffle(len(vectors)/dims, func(i, j int) {
		a, b := vectors[i*dims:(i+1)*dims], vectors[j*dims:(j+1)*dims]
		copy(swap, a)
		copy(a, b)
		copy(b, swap)
	})
}

// fill makes the rows and gives each its topic: the nearest of the first rows.
func (v *Vectors) fill(base []float32, count int) {
	v.Sentences = min(count, len(base)/v.Dims)
	v.topic = make([]uint16, count)
	v.Rows = base[:v.Sentences*v.Dims]
	if count > v.Sentences {
		v.Rows = make([]float32, count*v.Dims)
		copy(v.Rows, base)
	}
	v.eachRow(0, v.Sentences, func(i int) { v.topic[i] = v.nearestTopic(v.Row(i)) })
	v.eachRow(v.Sentences, count, func(i int) {
		rng := rand.New(rand.NewPCG(2, uint64(i)))
		from := rng.IntN(v.Sentences)
		v.topic[i] = v.topic[from]
		noisyCopy(v.Row(i), v.Row(from), 0.8+0.1*rng.Float64(), rng)
	})
}

// eachRow calls do for the rows [lo, hi) on all cores.
func (v *Vectors) eachRow(lo, hi int, do func(i int)) {
	var group errgroup.Group
	workers := runtime.GOMAXPROCS(0)
	for w := range workers {
		group.Go(func() error {
			for i := lo + w; i < hi; i += workers {
				do(i)
			}
			return nil
		})
	}
	group.Wait() //nolint:errcheck // nothing fails
}

func (v *Vectors) nearestTopic(x []float32) (nearest uint16) {
	best := float32(math.Inf(-1))
	for t := range min(topics, v.Sentences) {
		if dot := ref.Dot(x, v.Row(t)); dot > best {
			best, nearest = dot, uint16(t)
		}
	}
	return nearest
}

// noisyCopy sets dst to a unit vector with that cosine to the unit vector x.
func noisyCopy(dst, x []float32, cosine float64, rng *rand.Rand) {
	for i := range dst {
		dst[i] = float32(rng.NormFloat64())
	}
	along := ref.Dot(dst, x)
	for i := range dst {
		dst[i] -= along * x[i]
	}
	ref.Normalize(dst)
	sine := float32(math.Sqrt(1 - cosine*cosine))
	for i := range dst {
		dst[i] = float32(cosine)*x[i] + sine*dst[i]
	}
	ref.Normalize(dst)
}

// The cache holds little-endian float32, as every supported platform does.

func bytesOf(v []float32) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(v))), 4*len(v))
}

func floatsOf(b []byte) []float32 {
	v := make([]float32, len(b)/4)
	for i := range v {
		v[i] = math.Float32frombits(binary.LittleEndian.Uint32(b[4*i:]))
	}
	return v
}
