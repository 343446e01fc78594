package main

import (
	"net"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"sluice/client"
)

// What cannot be meant is refused, with what to do.
func TestRefusalsSayWhatToDo(t *testing.T) {
	t.Parallel()
	r := sluice(t, "search", "question", "-c", "docs", "-k", "0")
	require.Equal(t, 1, r.code)
	require.Contains(t, r.err, "-k 0: give a number of passages from 1 to 100")

	const secret = "hunter2"
	r = sluice(t, "search", "question", "-c", "docs", "--server", "http://u:"+secret+"@127.0.0.1:1")
	require.Contains(t, r.err, "is a daemon serving there? --server names another")
	require.NotContains(t, r.err, secret)
	r = sluice(t, "search", "question", "-c", "docs", "--api-key", "key: "+secret+"\nhash: x")
	require.Contains(t, r.err, "give only the word that is the key")
	require.NotContains(t, r.err, secret)

	c := ingestCommand{Collection: "docs"}
	plain, own := client.Collection{}, client.Collection{OwnVectors: &client.OwnVectors{Dimensions: 4}}
	require.NoError(t, c.checkVectors(client.OwnVectors{}, own))
	require.NoError(t, c.checkVectors(client.OwnVectors{Dimensions: 4}, own))
	require.ErrorContains(t, c.checkVectors(client.OwnVectors{Dimensions: 8}, own), "--dimensions 4 --multi-dimensions 0")
	require.ErrorContains(t, c.checkVectors(client.OwnVectors{Dimensions: 8}, plain), "leave the options out")

	taken, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer taken.Close()
	_, err = net.Listen("tcp", taken.Addr().String())
	require.Contains(t, busy(err, "listen"), "--listen")
	require.Empty(t, busy(net.ErrClosed, "listen"))
}

// Why there are passages only is said, whatever else was left out.
func TestPassagesAloneAreExplained(t *testing.T) {
	said := func(degraded ...string) string {
		var out strings.Builder
		printAnswer(&out, client.Answer{Outcome: "evidence", Degraded: degraded})
		return out.String()
	}
	const alone = "the daemon has no chat model"
	require.Contains(t, said(), alone)
	require.Contains(t, said("context_cut"), alone)
	require.NotContains(t, said("answer_unavailable"), alone)
}
