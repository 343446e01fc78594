package config

import (
	"slices"
	"strings"
)

// beside settings, variables that the program reads, or that Kubernetes sets for a
// service called sluice.
var (
	otherVariables = []string{"SLUICE_SERVER", "SLUICE_TOKEN", "SLUICE_API_KEY", "SLUICE_CACHE", "SLUICE_REQUIRE_ALL", "SLUICE_PORT"}
	otherPrefixes  = []string{"SLUICE_PORT_", "SLUICE_SERVICE_"}
)

// StrayVariables returns the names, of variables as os.Environ has them, that begin as
// settings' do and mean nothing: a misspelled SLUICE_POLICIES leaves everybody
// more than was intended.
func (c Config) StrayVariables(environment []string) (stray []string) {
	known := slices.Clone(otherVariables)
	for _, s := range Settings() {
		known = append(known, s.Environment)
	}
	if c.Answer != nil {
		known = append(known, c.Answer.KeyEnv)
	}
	for _, variable := range environment {
		name, _, _ := strings.Cut(variable, "=")
		foreign := slices.ContainsFunc(otherPrefixes, func(prefix string) bool { return strings.HasPrefix(name, prefix) })
		if strings.HasPrefix(name, "SLUICE_") && !foreign && !slices.Contains(known, name) {
			stray = append(stray, name)
		}
	}
	return stray
}
