package filter

import "github.com/RoaringBitmap/roaring/v2"

// row is what a View remembers of a document to be able to take it out again.
type row struct {
	class         classKey
	readers       []uint32 // ids of its postings
	applicability Applicability
}

// posting is the documents that name a reader. Its id stands for the name in
// rows of the same View, where one costs four bytes.
type posting struct {
	id        uint32
	documents *roaring.Bitmap
}
