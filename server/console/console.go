// Package console holds the web console: static files that speak to the daemon's
// own API with the visitor's own identity.
package console

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"path"
)

// Policy is the Content-Security-Policy of the console's files: what they load
// comes from the daemon, nothing is inline, no text becomes markup or script,
// nobody frames them.
const Policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"

// Page is the name of the file to begin with.
const Page = "index.html"

//go:embed web
var web embed.FS

var types = map[string]string{
	".html": "text/html; charset=utf-8",
	".css":  "text/css; charset=utf-8",
	".js":   "text/javascript; charset=utf-8",
	".svg":  "image/svg+xml",
}

// File is one file of the console.
type File struct {
	Type string // its Content-Type
	Tag  string // its ETag
	Body []byte
}

// Open returns the file of that name, if there is one.
func Open(name string) (File, bool) {
	body, err := web.ReadFile("web/" + name)
	if err != nil {
		return File{}, false
	}
	sum := sha256.Sum256(body)
	return File{Type: types[path.Ext(name)], Tag: `"` + hex.EncodeToString(sum[:12]) + `"`, Body: body}, true
}
