package main

import "fmt"

// counted is a number of things, as commands print it: "1 fault", "2 faults".
func counted(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}
