package postgres

import (
	"flag"
	"testing"

	"sluice/store"
	"sluice/store/conformance"
	"sluice/store/postgres/postgrestest"
)

func TestMain(m *testing.M) {
	// Each check of the model makes tables and opens connections; -rapid.checks asks for more.
	_ = flag.Set("rapid.checks", "20")
	postgrestest.Main(m)
}

func TestConformance(t *testing.T) {
	conformance.Run(t, func() conformance.Open {
		url := postgrestest.URL(t)
		return func() (store.Store, error) { return Open(t.Context(), url, Options{}) }
	})
}
