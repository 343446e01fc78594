package document

import (
	"strings"

	"go.yaml.in/yaml/v3"
)

// frontMatter returns the length of the YAML front matter at the start of text
// and the title that it gives. It is front matter if the first line is "---", a
// later line within maxFrontMatter bytes is "---" or "...", and what is between
// them is a YAML mapping.
func frontMatter(text string) (length int, title string) {
	if !strings.HasPrefix(text, "---\n") {
		return 0, ""
	}
	for at := 4; at < len(text) && at < maxFrontMatter; {
		end := lineEnd(text, at)
		if line := strings.TrimRight(text[at:end], " \t\n"); line == "---" || line == "..." {
			return mapping(text[4:at], end)
		}
		at = end
	}
	return 0, ""
}

func mapping(source string, end int) (length int, title string) {
	var fields map[string]any
	if err := yaml.Unmarshal([]byte(source), &fields); err != nil || len(fields) == 0 {
		return 0, "" // a thematic break and ordinary Markdown
	}
	title, _ = fields["title"].(string)
	return end, oneLine(title)
}
