package local

import (
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"

	"sluice/index"
	"sluice/index/conformance"
	"sluice/index/text"
)

func english(t testing.TB) text.Analyzer { return analyzerNamed(t, text.Default) }

func analyzerNamed(t testing.TB, name string) text.Analyzer {
	t.Helper()
	a, err := text.New(name)
	require.NoError(t, err)
	return a
}

// TestConformance runs the suite with bounds that leave everything fresh, and
// with such that seal and merge all the time (in memory, where syncing is free).
func TestConformance(t *testing.T) {
	for name, options := range map[string]Options{
		"fresh":  {},
		"sealed": {FreshRows: 3, FS: vfs.NewMem()},
		"coded":  {FreshRows: 3, FS: vfs.NewMem(), codedRows: 1, listedRows: 4},
	} {
		t.Run(name, func(t *testing.T) {
			conformance.Run(t, func(t *testing.T, place string, dims int) index.Index {
				options := options
				options.Dimensions, options.Analyzer = dims, english(t)
				ix, err := Open(place, options)
				require.NoError(t, err)
				return ix
			})
		})
	}
}
