//go:build !amd64

package simd

func acceleratedPostings() []Postings { return nil }
