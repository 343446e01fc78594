//go:build race

package gpu

func init() { raceEnabled = true }
