// Package store is the contract for the truth: documents, versions, access,
// policies and the change feed. Everything else (bitmaps, vectors, postings)
// is a cache of it. store/pebble is its home for one process, store/postgres for many.
package store

import (
	"context"
	"errors"
	"iter"
	"time"

	"sluice/chunk"
	"sluice/filter"
)

// Errors callers branch on.
var (
	ErrNotFound       = errors.New("not found")
	ErrLocked         = errors.New("the data directory is in use by another process")
	ErrNewerFormat    = errors.New("the store was written by a newer version of Sluice; start that version, or a newer one")
	ErrFeedTrimmed    = errors.New("the change feed no longer reaches back that far; rebuild from the documents")
	ErrVectorsNeeded  = errors.New("the content is new; its vectors are needed")
	ErrTooManyRows    = errors.New("the collection has used all of its row numbers; reindex it")
	ErrInvalid        = errors.New("invalid")
	ErrSettingsDiffer = errors.New("the collection exists with other settings")
	ErrClosed         = errors.New("the store is closed")
	ErrReadOnly       = errors.New("the store is open for reading only")
	ErrCorrupt        = errors.New("stored data is damaged; run `sluice check` on the data directory and restore it from a backup")
	ErrUnavailable    = errors.New("the database of the store cannot be reached, or cannot serve now")
	ErrFailed         = errors.New("the store has stopped after a failed write to disk; make room or repair the disk and restart: nothing acknowledged is lost")
)

// Bounds on what a home of the store must take.
const (
	MaxKeyBytes     = 4 << 10 // a document key, a tenant, a collection name
	MaxVersionBytes = 1 << 30 // text, headings, vectors and token codes of one version together
)

// Collection is one named set of documents of a tenant.
type Collection struct {
	ID       uint32 // unique in the store, never used again
	Tenant   string
	Name     string
	Settings Settings
	Created  time.Time
	// Generations are those of a collection that was reindexed, the serving one
	// first; Live gives them for any.
	Generations []Generation
}

// Record is a document without its content: what listing, filters and the recheck need.
type Record struct {
	Collection uint32 // the number of the generation it is of
	Key        string
	Ordinal    uint32 // unique in the collection; kept over versions and generations, never used again after a delete
	Version    uint32 // grows when content, format or title changes
	Title      string
	Format     string
	Chunker    string   // e.g. "markdown/1"
	Model      string   // digest of what made the vectors (model, precision, …)
	Identity   [32]byte // hash over parser, title and content
	FirstRow   uint32   // its chunks are rows FirstRow … FirstRow+Rows-1; row numbers are never used again
	Rows       uint32
	Coded      bool   // every row has token codes
	Class      uint64 // Access.Class of when the rows were written; 0: the store does not keep it
	Access     filter.Access
	Epoch      uint64 // of the last change
	Updated    time.Time
}

// SameVersion reports whether two records are of one version of one document.
func (r Record) SameVersion(of Record) bool {
	return r.Identity == of.Identity && r.Version == of.Version && r.Ordinal == of.Ordinal
}

// Content is a document version with its text. Vectors is row-major
// len(Chunks) × Dimensions, in chunk order.
type Content struct {
	Record
	Text       string // normalised
	Chunks     []chunk.Chunk
	Dimensions int
	Vectors    []float32
}

// Version is what a write brings: a document ready to be committed. The store
// gives it its ordinal, version number, rows and epoch. Version.Validate states
// what is refused.
type Version struct {
	Key        string
	Title      string
	Format     string
	Chunker    string
	Model      string
	Identity   [32]byte
	Text       string
	Chunks     []chunk.Chunk
	Dimensions int
	Vectors    []float32
	Codes      [][]byte // token codes, one value per chunk; nil: none. The store does not read them
	Parsed     []byte   // what other chunkers can work on; nil: nothing is kept. The store does not read it
	Generation uint32   // that the above is for; 0: the first one, while there is no other
	Builds     []Build  // for every other generation of the collection
	Access     filter.Access
	Keeps      filter.AccessFields // of Access: on a document that is there, these stay as they are
}

// Receipt says what a write did. The write is durable when it is returned.
type Receipt struct {
	Record
	Created    bool // the key was new
	Unchanged  bool // nothing was written
	AccessOnly bool // the content was there already; its access changed
}

// ChangeKind says what a Change is about.
type ChangeKind uint8

// The kinds of change. A reader of the feed applies the present state of what
// changed, so replaying a change twice is harmless.
const (
	DocumentChanged ChangeKind = iota + 1 // created, replaced, access changed or deleted
	CollectionCreated
	PoliciesChanged
	GenerationsChanged
)

// Change is one entry of the feed.
type Change struct {
	Epoch      uint64
	Kind       ChangeKind
	Collection uint32
	Ordinal    uint32
	Elsewhere  bool // it was made through another daemon
}

// PolicySource is the Cedar text in force: file name to content.
type PolicySource struct {
	Schema   string
	Policies map[string]string
}

// Store is the contract. Every method is safe for concurrent use. Each write
// is one atomic, durable step that grows the epoch by one; Trim is none.
//
// A write whose context ends while it waits may still happen. Reads may see a
// write shortly before it is durable; Epoch, Changes and WaitChange never do,
// and a write that changes nothing returns only when what it saw is durable.
// Access rows come back in the form that NormalAccess gives them.
//
// Writes take the number of a collection and apply to all of its generations.
// Reads of documents take that of a generation; a collection's own is that of
// its first one.
type Store interface {
	// CreateCollection creates it, or returns the one that exists (created false).
	// Other settings than those it was created with: ErrSettingsDiffer.
	// Settings.Validate states what is refused.
	CreateCollection(ctx context.Context, tenant, name string, settings Settings) (c Collection, created bool, err error)
	Collection(ctx context.Context, tenant, name string) (Collection, error)
	Collections(ctx context.Context) ([]Collection, error)
	// SetGenerations replaces the collection's generations: change is given the
	// live ones and returns what CheckGenerations lets follow; it must not block,
	// and is called again if they change meanwhile. A new one gets its number and
	// time; one that is left out is removed with all that it holds. The change is
	// one of the kind GenerationsChanged. ErrNotFound: no such collection.
	SetGenerations(ctx context.Context, collection uint32, change func([]Generation) ([]Generation, error)) (Collection, error)
	// SetQueries replaces the collection's query set, which the store does not
	// read; it grows no epoch. Queries returns it, nil if none was ever set.
	SetQueries(ctx context.Context, collection uint32, queries []byte) error
	Queries(ctx context.Context, collection uint32) ([]byte, error)

	// Commit creates or replaces a document. The version grows only with the
	// identity; the same identity by another chunker or model gets new rows under
	// the same version. The same identity, chunker and model with other access
	// changes the access only; with the same access nothing is written and the
	// receipt says so. What stays by Keeps is decided with the commit: no other
	// write comes between. Such a version may lack its Vectors and Codes; one with new
	// content may not lack Vectors: ErrVectorsNeeded. ErrNotFound: no such collection.
	//
	// The version goes into all generations in the same step; its Generation must
	// be the serving one, and new content needs Builds for the others:
	// ErrGenerations. A chunker or model that is not its generation's is ErrInvalid.
	Commit(ctx context.Context, collection uint32, v Version) (Receipt, error)
	// Build adds a document to the building generation, as it is in the serving
	// one but for chunks and vectors. Nothing is done (built false) where the
	// serving one's record has another identity or version than of, or is gone.
	// ErrGenerations: b's generation is not building (any more).
	Build(ctx context.Context, collection uint32, of Record, b Build) (built bool, err error)
	// SetAccess replaces the access row; it does not grow the version.
	// change is given the present row and returns the new one; it must not block,
	// and is called again if the document changes meanwhile.
	SetAccess(ctx context.Context, collection uint32, key string, change func(filter.Access) (filter.Access, error)) (Receipt, error)
	// Delete removes the document with its content. ErrNotFound if there is none.
	// The receipt's record is the removed one, with the epoch of its removal.
	Delete(ctx context.Context, collection uint32, key string) (Receipt, error)

	Lookup(ctx context.Context, collection uint32, key string) (Record, error)
	// Records returns the present records of the ordinals; those that do not
	// exist (any more) are absent from the map.
	Records(ctx context.Context, collection uint32, ordinals []uint32) (map[uint32]Record, error)
	// Content returns record, text and chunks of one version, consistently.
	// Vectors are loaded only if withVectors.
	Content(ctx context.Context, collection uint32, ordinal uint32, withVectors bool) (Content, error)
	// Parsed returns what the document's version brought as that, nil if nothing.
	Parsed(ctx context.Context, collection uint32, ordinal uint32) ([]byte, error)
	// Codes hands the token codes of each of the rows to visit, in their order, with
	// its place in rows. Those without any, or that do not exist (any more), are
	// left out. The codes are the visitor's until it returns.
	Codes(ctx context.Context, collection uint32, rows []uint32, visit func(at int, codes []byte)) error
	// Scan yields the records in ascending order of ordinal, from the one given on.
	// It reads in pages and holds nothing between them: a document that changes
	// during a scan comes in its old or new state.
	Scan(ctx context.Context, collection uint32, from uint32) iter.Seq2[Record, error]

	// Embeddings hands the cached values of the keys to visit, in their order, with
	// the place of each in keys; those that are not there are left out. The value
	// is the visitor's until it returns.
	Embeddings(ctx context.Context, keys []EmbeddingKey, visit func(at int, value []byte)) error
	// KeepEmbeddings adds to the cache, durably. It grows no epoch.
	KeepEmbeddings(ctx context.Context, entries []Embedding) error
	CacheSize(ctx context.Context) (CacheSize, error)
	// PruneEmbeddings removes what was kept before a time, and says how much that was.
	PruneEmbeddings(ctx context.Context, before time.Time) (CacheSize, error)

	// SetPolicies puts the Cedar text in force, if it differs from the present one.
	SetPolicies(ctx context.Context, p PolicySource) (epoch uint64, changed bool, err error)
	Policies(ctx context.Context) (PolicySource, error)

	Epoch(ctx context.Context) (uint64, error)
	// Changes returns up to limit (> 0) changes with an epoch greater than after,
	// in order and without gaps. ErrFeedTrimmed if some of them are forgotten.
	Changes(ctx context.Context, after uint64, limit int) ([]Change, error)
	// WaitChange blocks until the epoch is greater than after.
	WaitChange(ctx context.Context, after uint64) error
	// Trim forgets changes with an epoch ≤ upTo.
	Trim(ctx context.Context, upTo uint64) error

	// Close waits for the calls under way; later ones give ErrClosed.
	Close() error
}

// Fault is one thing wrong with stored data.
type Fault struct {
	Where string // e.g. "collection 1 document 7 content"
	What  string
}

// Checker is a store that can verify itself.
type Checker interface {
	// Check reads everything, verifies every checksum and cross reference, and
	// reports each fault. It writes nothing. Its error says that it could not go on.
	Check(ctx context.Context, report func(Fault)) error
}
