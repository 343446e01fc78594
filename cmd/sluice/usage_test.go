package main

import (
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"sluice/client"
	"sluice/kernels/simd"
)

// Of flags that exclude each other one is wanted, and the usage says so.
func TestUsageShowsChoices(t *testing.T) {
	t.Parallel()
	const serve = "Usage: sluice bench serve (--self | --server=STRING | --null) [flags]\n"
	require.Contains(t, sluice(t, "bench", "serve", "--help").out, serve)
	require.Contains(t, sluice(t, "bench", "serve").err, serve)
	require.Contains(t, sluice(t, "eval", "run", "--help").out, "Usage: sluice eval run (--self | --server=STRING) <dataset> [flags]\n")
	require.Contains(t, sluice(t, "bench", "--help").out, "  bench serve (--self | --server=STRING | --null) [flags]\n")
	require.Contains(t, sluice(t, "eval", "--help").out, "  eval run (--self | --server=STRING) <dataset> [flags]\n")
	require.Contains(t, sluice(t, "--help").out, "  bench serve (--self | --server=STRING | --null) [flags]\n")
	require.Contains(t, sluice(t, "ingest", "--help").out, "Usage: sluice ingest --collection=STRING <folder> [flags]\n")
	require.Contains(t, sluice(t, "--help").out, "Usage: sluice <command> [flags]\n")
}

func TestVersion(t *testing.T) {
	t.Parallel()
	require.Equal(t, "sluice   unknown\ngo       "+runtime.Version()+" "+runtime.GOOS+"/"+runtime.GOARCH+"\nkernels  "+simd.Best().Level+"\n", sluice(t, "version").out)
	require.Contains(t, sluice(t, "version", "--json").out, `"kernels": "`+simd.Best().Level+`"`)
	require.Equal(t, "sluice unknown\n", sluice(t, "--version").out)
}

// Whose settings a doctor without any looks at is said.
func TestDoctorSaysWhatItLooksAt(t *testing.T) {
	t.Parallel()
	require.Contains(t, sluice(t, "doctor").out, "no --config: these are the demo's settings")
}

// What is cut is named, and a failure is in plain words.
func TestOutcomes(t *testing.T) {
	o := &outcome{count: map[string]int{}}
	for _, key := range []string{"a", "b"} {
		o.add(client.WriteResult{Key: key, Status: "created", Chunks: 5, Truncated: 2})
	}
	o.add(client.WriteResult{Key: "c", Status: "created", Chunks: 5})
	require.Equal(t, []string{"a", "b"}, o.long)
	require.Equal(t, 4, o.cut)
	require.Equal(t, "a, b", some(o.long))
	require.Equal(t, "1, 2, 3, 4, 5, 6, 7, 8, 9, 10 and 1 more", some([]string{"1", "2", "3", "4", "5", "6", "7", "8", "9", "10", "11"}))
	require.Equal(t, "it is broken", wrong(&client.Problem{Title: "Bad Request", Detail: "it is broken"}))
	require.Equal(t, "it is not valid UTF-8", wrong(&client.Problem{Title: "it is not valid UTF-8"}))
}
