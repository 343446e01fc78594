package filter

import (
	"crypto/sha256"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/cedar-policy/cedar-go"
)

// classKey is the digest of an access class: of the canonical attributes that
// all its documents share.
type classKey [32]byte

func classKeyOf(a Attributes) classKey { return sha256.Sum256(a.AppendCanonical(nil)) }

// class is an access class: what policies see of its documents.
type class struct {
	id       uint32       // in the lineage's ledger; never given twice there
	document cedar.Entity // every document of the class, as policies see it
	broken   error        // the attributes cannot be shown to policies: nobody is permitted
}

// classDocuments are the documents of a class in one View.
type classDocuments struct {
	*class
	documents *roaring.Bitmap
}
