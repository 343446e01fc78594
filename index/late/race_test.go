//go:build race

package late

func init() { raceEnabled = true }
