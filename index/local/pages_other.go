//go:build !linux

package local

func preferLargePages([]byte) {}
