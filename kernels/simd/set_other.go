//go:build !amd64

package simd

func accelerated() []*Set { return nil }
