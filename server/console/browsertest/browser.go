// Package browsertest gives tests of pages a real browser: the headless Chromium
// that `make browser` installs in the cache, and axe beside it.
package browsertest

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/chromedp/chromedp"
)

// installed is the folder of Chromium and axe. Without it the test is skipped,
// which is an error with SLUICE_REQUIRE_ALL=1.
func installed(t testing.TB) string {
	t.Helper()
	dir, err := folder()
	if err == nil {
		_, err = os.Stat(filepath.Join(dir, "installed"))
	}
	if err != nil && os.Getenv("SLUICE_REQUIRE_ALL") == "1" {
		t.Fatalf("SLUICE_REQUIRE_ALL=1, but there is no browser: make browser (%v)", err)
	}
	if err != nil {
		t.Skipf("SKIPPED: there is no browser: make browser (%v)", err)
	}
	return dir
}

func folder() (string, error) {
	if dir := os.Getenv("SLUICE_CACHE"); dir != "" {
		return filepath.Join(dir, "browser"), nil
	}
	home, err := os.UserHomeDir()
	return filepath.Join(home, ".cache", "sluice", "browser"), err
}

// allocator starts the Chromium of a folder. It runs without its own sandbox,
// which root has no use of: what tests show it is theirs. It resolves no name
// and so reaches the loopback interface only.
func allocator(ctx context.Context, dir string) (context.Context, context.CancelFunc) {
	chromium := filepath.Join(dir, "chromium")
	return chromedp.NewExecAllocator(ctx, append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(filepath.Join(chromium, "chromium")),
		chromedp.NoSandbox,
		chromedp.Flag("no-zygote", true),
		chromedp.Flag("disable-gpu", true),
		chromedp.Flag("host-resolver-rules", "MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"),
		chromedp.ModifyCmdFunc(func(c *exec.Cmd) {
			c.Env = append(os.Environ(),
				"FONTCONFIG_FILE="+filepath.Join(dir, "fonts.conf"),
				"LD_LIBRARY_PATH="+filepath.Join(chromium, "al2023", "lib"),
			)
		}),
	)...)
}
