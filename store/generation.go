package store

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"sluice/chunk"
)

// ErrGenerations says that a version was not prepared for the generations that
// the collection has by now: read the collection and prepare it again.
var ErrGenerations = errors.New("the collection's generations have changed")

// Role is what a generation is for.
type Role uint8

// The roles. A serving and a previous generation hold the same documents, so
// that they can change places; a building one holds some of them.
const (
	Serving  Role = iota + 1 // what searches see
	Building                 // what is to be served
	Previous                 // what was served before, kept up to date for a rollback
)

func (r Role) String() string {
	switch r {
	case Serving:
		return "serving"
	case Building:
		return "building"
	case Previous:
		return "previous"
	}
	return fmt.Sprintf("role %d", uint8(r))
}

// Generation is one complete build of a collection by one chunker and model.
// Documents have the same ordinals, versions and access in all generations of
// their collection; chunks, rows and vectors are each generation's own.
type Generation struct {
	ID      uint32 // what reads take; unique among collections and generations, never used again
	Role    Role
	Chunker string // the only one whose versions it takes; "": the first generation's, one for each format
	Model   string // digest of what makes the vectors, the only one; "": the first generation's
	Job     []byte // of its making; the store does not read it
	Created time.Time
}

// Live is the collection's generations, the serving one first. A collection
// that was never reindexed has one, under its own number.
func (c Collection) Live() []Generation {
	if len(c.Generations) == 0 {
		return []Generation{{ID: c.ID, Role: Serving, Chunker: c.Settings.Chunker, Created: c.Created}}
	}
	return c.Generations
}

// Serving is the generation that searches see.
func (c Collection) Serving() Generation { return c.Live()[0] }

// Generation returns that with a role.
func (c Collection) Generation(role Role) (Generation, bool) {
	live := c.Live()
	i := slices.IndexFunc(live, func(g Generation) bool { return g.Role == role })
	if i < 0 {
		return Generation{}, false
	}
	return live[i], true
}

// At is the collection with the number of one of its generations, as reads take it.
func (c Collection) At(g Generation) Collection {
	c.ID = g.ID
	return c
}

// Build is the part of a version that is a generation's own.
type Build struct {
	Generation uint32
	Chunker    string
	Model      string
	Chunks     []chunk.Chunk
	Dimensions int
	Vectors    []float32
	Codes      [][]byte
}

// checkTakes reports, as ErrInvalid, a build by another chunker or model than the
// generation's.
func (g Generation) checkTakes(b Build) error {
	if g.Chunker != "" && g.Chunker != b.Chunker || g.Model != "" && g.Model != b.Model {
		return fmt.Errorf("%w: generation %d takes chunks of %s and vectors of %s, not of %s and %s", ErrInvalid, g.ID, g.Chunker, g.Model, b.Chunker, b.Model)
	}
	return nil
}

// CheckFor reports a version that was prepared for other generations of a
// collection than live (ErrGenerations), or that the serving one does not take.
func (v *Version) CheckFor(collection uint32, live []Generation) error {
	if v.Generation != live[0].ID && (v.Generation != 0 || len(live) > 1 || live[0].ID != collection) {
		return ErrGenerations
	}
	return live[0].checkTakes(v.Build())
}

// BuildFor returns which of the version's builds is for a generation beside the
// serving one; ErrGenerations if none is.
func (v *Version) BuildFor(g Generation) (int, error) {
	i := slices.IndexFunc(v.Builds, func(b Build) bool { return b.Generation == g.ID })
	if i < 0 {
		return 0, ErrGenerations
	}
	return i, g.checkTakes(v.Builds[i])
}

// CheckBuilding reports a build that is for no building generation of live
// (ErrGenerations), or that this one does not take.
func (b Build) CheckBuilding(live []Generation) error {
	i := slices.IndexFunc(live, func(g Generation) bool { return g.ID == b.Generation && g.Role == Building })
	if i < 0 {
		return ErrGenerations
	}
	return live[i].checkTakes(b)
}

// CheckGenerations reports, as ErrInvalid, generations that cannot follow those
// there were: new ones (ID 0) are building, no other thing than role and job
// changes, and each role is taken once, that of serving always.
func CheckGenerations(were, next []Generation) error {
	var roles [Previous + 1]int
	for _, g := range next {
		if g.Role < Serving || g.Role > Previous {
			return fmt.Errorf("%w: generation %d has no role", ErrInvalid, g.ID)
		}
		roles[g.Role]++
		if err := checkSuccessor(were, g); err != nil {
			return err
		}
	}
	if roles[Serving] != 1 || roles[Building] > 1 || roles[Previous] > 1 {
		return fmt.Errorf("%w: %d generations serving, %d building, %d previous", ErrInvalid, roles[Serving], roles[Building], roles[Previous])
	}
	return nil
}

func checkSuccessor(were []Generation, g Generation) error {
	i := slices.IndexFunc(were, func(w Generation) bool { return w.ID == g.ID })
	switch {
	case g.ID == 0 && (g.Role != Building || g.Chunker == ""):
		return fmt.Errorf("%w: a new generation is building, by a chunker", ErrInvalid)
	case g.ID == 0:
		return nil
	case i < 0:
		return fmt.Errorf("%w: the collection has no generation %d", ErrInvalid, g.ID)
	case were[i].Chunker != g.Chunker || were[i].Model != g.Model || !were[i].Created.Equal(g.Created):
		return fmt.Errorf("%w: generation %d is by another chunker or model", ErrInvalid, g.ID)
	}
	return nil
}

// EmbeddingKey is a hash over all that decides what an embedding is.
type EmbeddingKey [32]byte

// Embedding is an entry of the embedding cache; the store does not read its value.
type Embedding struct {
	Key   EmbeddingKey
	Value []byte
}

// CacheSize is how much an embedding cache holds.
type CacheSize struct {
	Entries int64
	Bytes   int64 // of keys and values
}
