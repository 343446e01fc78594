package main

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestCounted(t *testing.T) {
	require.Equal(t, []string{"0 faults", "1 fault", "2 faults"}, []string{counted(0, "fault"), counted(1, "fault"), counted(2, "fault")})
}
