//go:build !linux

package simd

import "testing"

// fenced is memory without fences where there is no way to make them.
func fenced[T any](_ testing.TB, n int) []T { return make([]T, n) }
