package milvus

import (
	"context"
	"crypto/sha256"
	"fmt"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"sluice/index"
	"sluice/index/conformance"
	"sluice/index/milvus/milvustest"
	"sluice/index/text"
)

func TestMain(m *testing.M) { os.Exit(milvustest.Main(m)) }

func cluster(t testing.TB) *Cluster {
	t.Helper()
	c, err := Connect(t.Context(), milvustest.Address(t))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, c.Close()) })
	return c
}

func english(t testing.TB) text.Analyzer {
	t.Helper()
	a, err := text.New(text.Default)
	require.NoError(t, err)
	return a
}

// clusters are one server under several names.
func clusters(t testing.TB, n int) (all []*Cluster) {
	c := cluster(t)
	for i := range n {
		all = append(all, &Cluster{address: fmt.Sprintf("%s/%d", c.address, i), version: c.version, perCall: c.perCall, searching: c.searching, deleting: c.deleting})
	}
	return all
}

// optionsAt names the collections after the place, which no other test uses.
func optionsAt(t testing.TB, place string, dims int) Options {
	return Options{
		Name: fmt.Sprintf("test_%x", sha256.Sum256([]byte(place)))[:21], Dir: place, Dimensions: dims, Analyzer: english(t), Model: "m",
	}
}

func opened(t testing.TB, clusters []*Cluster, o Options) *Index {
	t.Helper()
	ix, err := Open(t.Context(), clusters, o)
	require.NoError(t, err)
	t.Cleanup(func() {
		require.NoError(t, ix.Close())
		require.NoError(t, Remove(context.Background(), clusters, o))
	})
	return ix
}

// TestConformance runs the suite on one cluster, and a part of it on three.
func TestConformance(t *testing.T) {
	clusters := []*Cluster{cluster(t)}
	conformance.Run(t, func(t *testing.T, place string, dims int) index.Index {
		return opened(t, clusters, optionsAt(t, place, dims))
	})
}
