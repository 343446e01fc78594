package filter_test

import (
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"sluice/filter"
)

// A pipe in the directory must not keep the daemon waiting for its other end.
func TestPoliciesAreRegularFiles(t *testing.T) {
	for _, name := range []string{"a.cedar", filter.SchemaFile} {
		directory := t.TempDir()
		require.NoError(t, syscall.Mkfifo(filepath.Join(directory, name), 0o600))
		_, err := filter.LoadPolicies(directory)
		require.ErrorIs(t, err, filter.ErrInvalidPolicies)
		require.ErrorContains(t, err, name)
	}
}
