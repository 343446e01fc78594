package milvus

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

func TestBreaker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var b breaker
		broken := errors.New("broken")
		fail := func() {
			t.Helper()
			require.NoError(t, b.enter())
			b.leave(broken)
		}
		for range failuresToOpen - 1 {
			fail()
		}
		require.NoError(t, b.enter(), "not yet")
		b.leave(nil)
		for range failuresToOpen {
			require.NoError(t, b.failing())
			fail()
		}
		require.ErrorIs(t, b.failing(), broken)
		require.ErrorIs(t, b.enter(), errOpen)
		time.Sleep(openFor)
		require.NoError(t, b.enter(), "one may try")
		require.ErrorIs(t, b.enter(), errOpen, "and no other")
		b.abandon()
		fail()
		require.ErrorIs(t, b.enter(), errOpen)
		time.Sleep(openFor)
		require.NoError(t, b.enter())
		b.leave(nil)
		require.NoError(t, b.failing())
		require.NoError(t, b.enter())
	})
}

func TestVersions(t *testing.T) {
	for told, want := range map[string]version{"v2.3.5-lite": {2, 3}, "2.5.4": {2, 5}, "v2.6": {2, 6}} {
		v, err := parseVersion(told)
		require.NoError(t, err)
		require.Equal(t, want, v)
	}
	for _, told := range []string{"", "v2", "unknown", "2.x.1"} {
		_, err := parseVersion(told)
		require.Error(t, err, told)
	}
	require.True(t, version{2, 2}.before(2, 3))
	require.False(t, version{2, 3}.before(2, 3))
	require.False(t, version{3, 0}.before(2, 3))
}
