package main

import (
	"bytes"
	"cmp"
	"io"
	"maps"
	"slices"
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
		_, err = io.WriteString(out, withChoices(text.String(), cmp.Or(k.Selected(), k.Model.Node)))
		return err
	}
}

// withChoices rewrites the usage of a command, and of those below it.
func withChoices(help string, of *kong.Node) string {
	var all []string // flags that exclude each other, as kong writes them
	for _, command := range append(of.Leaves(true), of) {
		all = append(all, choices(command)...)
	}
	slices.SortFunc(all, func(a, b string) int { return cmp.Compare(len(b), len(a)) }) // one may be the beginning of another
	for _, flags := range all {
		help = strings.ReplaceAll(help, " "+flags, " ("+strings.ReplaceAll(flags, " --", " | --")+")")
	}
	return help
}

// choices are the flags of a command of which one is wanted, by what they choose.
func choices(command *kong.Node) []string {
	of := map[string]string{}
	for _, group := range command.AllFlags(true) {
		for _, flag := range group {
			if flag.Required && len(flag.Xor) > 0 {
				of[flag.Xor[0]] = strings.TrimSpace(of[flag.Xor[0]] + " " + flag.Summary())
			}
		}
	}
	return slices.Collect(maps.Values(of))
}
