package pebble

import (
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"sluice/store"
	"sluice/store/conformance"
)

func TestConformance(t *testing.T) {
	conformance.Run(t, func() conformance.Open {
		fs := vfs.NewMem()
		return func() (store.Store, error) { return Open("data", Options{FS: fs}) }
	})
}
