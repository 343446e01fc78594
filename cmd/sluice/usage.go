package main

import (
	"bytes"
	"io"
	"strings"

	"github.com/alecthomas/kong"
)

// choosing has a printer of help write flags of which one is wanted as
// (--a | --b), where kong writes them as if all were.
func choosing(print kong.HelpPrinter) kong.HelpPrinter {
	return func(options kong.HelpOptions, k *kong.Context) error {
		out, text := k.Stdout, &bytes.Buffer{}
		k.Stdout = text
		err := print(options, k)
		k.Stdout = out
		if err != nil {
			return err
		}
		_, err = io.WriteString(out, withChoices(text.String(), k.Selected()))
		return err
	}
}

func withChoices(help string, selected *kong.Node) string {
	if selected == nil {
		return help
	}
	choices := map[string][]string{}
	for _, group := range selected.AllFlags(true) {
		for _, flag := range group {
			if flag.Required && len(flag.Xor) > 0 {
				choices[flag.Xor[0]] = append(choices[flag.Xor[0]], flag.Summary())
			}
		}
	}
	for _, flags := range choices {
		help = strings.Replace(help, strings.Join(flags, " "), "("+strings.Join(flags, " | ")+")", 1)
	}
	return help
}
