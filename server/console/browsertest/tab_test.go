package browsertest_test

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"sluice/server/console/browsertest"
)

// A page with one fault of each kind that the package is to find.
const page = `<!DOCTYPE html><html lang="en"><title>t</title><main><h1>A page</h1><img src="/picture"></main>
<script src="/script"></script><script>document.title = "inline"</script></html>`

func TestATabTellsWhatIsWrong(t *testing.T) {
	tab := browsertest.Open(t)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Security-Policy", "default-src 'self'")
		switch r.URL.Path {
		case "/":
			w.Header().Set("Content-Type", "text/html")
			_, _ = w.Write([]byte(page))
		case "/script":
			w.Header().Set("Content-Type", "text/javascript")
			_, _ = w.Write([]byte(`setTimeout(() => { document.title = "later"; throw new Error("thrown") })`))
		default:
			http.NotFound(w, r)
		}
	}))
	t.Cleanup(server.Close)
	tab.Visit(server.URL)
	tab.Await(`document.title === "later"`)
	require.Equal(t, "A page", browsertest.Evaluate[string](tab, `document.querySelector("h1").innerText`))

	require.NotZero(t, browsertest.Evaluate[int](tab, `document.querySelector("h1").offsetWidth`))
	violations := tab.Axe()
	require.Len(t, violations, 1, "%v", violations)
	require.Equal(t, "image-alt", violations[0].Rule)
	require.Contains(t, tab.Requests(), server.URL+"/picture")
	faults := tab.Faults()
	require.Len(t, faults, 3)
	for _, sign := range []string{"Content Security Policy", "404", "thrown"} {
		require.True(t, slices.ContainsFunc(faults, func(f string) bool { return strings.Contains(f, sign) }), "%s is not in %v", sign, faults)
	}
}
