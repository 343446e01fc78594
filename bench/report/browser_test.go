package report

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"sluice/bench/figures"
	"sluice/server/console/browsertest"
)

// In a real browser the page asks for nothing, breaks no rule of axe in light or
// dark, on a wide screen or a narrow one, and its lines are drawn.
func TestInABrowser(t *testing.T) {
	path := filepath.Join(t.TempDir(), "report.html")
	f, err := os.Create(path)
	require.NoError(t, err)
	require.NoError(t, Write(f, []figures.File{serveRun(t)}))
	require.NoError(t, f.Close())

	t.Chdir(t.TempDir()) // the browser leaves its cache of fonts there
	tab := browsertest.Open(t)
	tab.Visit("file://" + path)
	require.Equal(t, []string{"file://" + path}, tab.Requests())
	require.True(t, browsertest.Evaluate[bool](tab, `[...document.querySelectorAll("polyline")].every(l => l.getTotalLength() > 10)`))
	for _, width := range []int64{1200, 360} {
		for _, dark := range []bool{false, true} {
			tab.Show(width, 900, dark)
			require.Empty(t, tab.Axe(), "%d pixels, dark: %v", width, dark)
		}
		require.True(t, browsertest.Evaluate[bool](tab, `document.documentElement.scrollWidth <= innerWidth`), "%d pixels", width)
	}
	require.Empty(t, tab.Faults())
}
