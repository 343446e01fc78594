package main

import (
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"sluice/needs"
)

// tourOf runs the demo until it has shown everything, and interrupts it.
func tourOf(t *testing.T, data string) string {
	t.Helper()
	needs.Model(t)
	p := launch(t, "demo", "--corpus", groundedAccess, "--data", data, "--listen", "127.0.0.1:0")
	url := p.await(&p.out, `Serving on (\S+); Ctrl-C stops`)
	p.await(&p.out, `search 'a question' --collection mine --as you --server `+regexp.QuoteMeta(url)+`\n`)

	folder := lay(t, t.TempDir(), map[string]string{"own.md": "# Quay\n\nThe quay is closed on Sundays."})
	r := sluice(t, "ingest", folder, "--collection", "mine", "--as", "you", "--server", url)
	require.Zero(t, r.code, "%s", r)
	r = sluice(t, "search", "When is the quay closed?", "--collection", "mine", "--as", "you", "--server", url)
	require.Zero(t, r.code, "%s", r)
	require.Contains(t, r.out, "The quay is closed on Sundays.")
	r = sluice(t, "answer", "When is the quay closed?", "--collection", "mine", "--as", "you", "--server", url)
	require.Zero(t, r.code, "%s", r)
	require.Regexp(t, `S1\. .*\(own\.md, version 1\)\n    The quay is closed on Sundays\.`, r.out, "the evidence, without a model")

	p.signal(syscall.SIGINT)
	require.Zero(t, p.wait(), "%s", p.err.text())
	require.Contains(t, p.err.text(), "demo mode", "the warning")
	return p.out.text()
}

func TestDemo(t *testing.T) {
	t.Parallel()
	data := filepath.Join(t.TempDir(), "data")
	first := tourOf(t, data)
	require.Regexp(t, `Tenant northstar: \d+ created\n`, first)
	answers := regexp.MustCompile(`(?sm)^\S+ may read \d+ documents and gets\n(.*?)\n\n`).FindAllStringSubmatch(first, -1)
	require.Len(t, answers, 2, "%s", first)
	require.NotEqual(t, answers[0][1], answers[1][1], "they get different answers")
	require.Contains(t, answers[0][1], "sales-pricing-guide")
	require.NotContains(t, answers[1][1], "sales-pricing-guide")

	again := tourOf(t, data)
	require.Regexp(t, `Tenant northstar: \d+ unchanged\n`, again)
	require.NotContains(t, again, "created")
	require.Equal(t, answers[0][1], regexp.MustCompile(`(?s)gets\n(.*?)\n\n`).FindStringSubmatch(again)[1])
	require.False(t, strings.Contains(again, "failed"))
}
