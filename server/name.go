package server

import (
	"regexp"

	"sluice/ingest"
)

var collectionName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`)

func checkCollection(name string) error {
	if !collectionName.MatchString(name) {
		return badRequest("a collection's name is 1 to 64 letters, digits, '.', '_' and '-', and starts with a letter or digit")
	}
	return nil
}

// checkKey holds for keys in bodies and in paths alike, so that every document
// that can be written can be addressed.
func checkKey(key string) error {
	switch {
	case key == "":
		return badRequest("key: a document needs one")
	case len(key) > ingest.MaxKeyBytes:
		return badRequest("key: longer than %d bytes", ingest.MaxKeyBytes)
	case !plain(key):
		return badRequest("key: not UTF-8 without control characters")
	case key == "." || key == "..":
		return badRequest("key: %q cannot stand in a path", key)
	default:
		return nil
	}
}
