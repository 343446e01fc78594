package milvus

import (
	"context"
	"crypto/sha256"
	"fmt"
	"os"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"sluice/index"
	"sluice/index/conformance"
	"sluice/index/milvus/milvustest"
	"sluice/index/text"
)

// server is where the tests' server is, or why there is none.
var server struct {
	address string
	missing error
}

func TestMain(m *testing.M) {
	os.Exit(milvustest.Main(m, func(address string, err error) { server.address, server.missing = address, err }))
}

// connected connects once for all tests.
var connected = sync.OnceValues(func() (*Cluster, error) { return Connect(context.Background(), server.address) })

func cluster(t testing.TB) *Cluster {
	t.Helper()
	milvustest.Need(t, server.missing)
	c, err := connected()
	require.NoError(t, err)
	return c
}

func english(t testing.TB) text.Analyzer {
	t.Helper()
	a, err := text.New(text.Default)
	require.NoError(t, err)
	return a
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
		for _, c := range clusters {
			require.NoError(t, (&collection{c, o.Name, o.Dimensions}).drop(context.Background()))
		}
	})
	return ix
}

func TestConformance(t *testing.T) {
	clusters := []*Cluster{cluster(t)}
	conformance.Run(t, func(t *testing.T, place string, dims int) index.Index {
		return opened(t, clusters, optionsAt(t, place, dims))
	})
}
