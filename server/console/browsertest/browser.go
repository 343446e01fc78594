// Package browsertest gives tests of pages a real browser: the headless Chromium
// that `make browser` installs in the cache, and axe beside it.
package browsertest

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/chromedp/chromedp"
)

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
				"XDG_CACHE_HOME="+dir, // of the fonts
				"LD_LIBRARY_PATH="+filepath.Join(chromium, "al2023", "lib"),
			)
		}),
	)...)
}
