//go:build !linux

package simd

func hasAMX() bool { return false }
