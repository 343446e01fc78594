package document

import "strconv"

// versions of the parsers that have come to read the same file otherwise than
// they did; all others are at 1.
var versions = map[string]int{"docling": 2, "docx": 2, "pdf": 2, "pptx": 2, "xlsx": 2}

// Parser names what reads a format, with its version if that is not 1. A file
// that is stored as another version of it was read is not the same document: sent
// again, it is read again.
func Parser(format string) string {
	if v, changed := versions[format]; changed {
		return format + "/" + strconv.Itoa(v)
	}
	return format
}
