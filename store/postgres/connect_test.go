package postgres

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// What is wrong with a URL is said without any of it that may be a secret, wherever
// its writer put that.
func TestMalformedURLsAreNotShown(t *testing.T) {
	const secret = "hunter2Zx9"
	for url, says := range map[string]string{
		"postgres://" + secret + "@host/db?sslmode=bogus":                 "sslmode",
		"postgres://u:p@host/db?sslmode=bogus#" + secret:                  "sslmode",
		"postgres://u:p@host/db?a=b;password=" + secret:                   "user:password@host",
		"postgres:// host=h password=" + secret:                           "user:password@host",
		"postgres://u:p%zz" + secret + "@host/db":                         "user:password@host",
		"postgres://u:" + secret + "@host:x/db":                           "port",
		"postgres://u:a@b/" + secret + "@host/db":                         "%40",
		"postgres://u:" + secret + "/a@host/db":                           "%40",
		"postgres://u:" + secret + "@host/db?pool_max_conns=many":         "pool_max_conns",
		"postgres://u:p@host/db?sslpassword=" + secret + "&sslmode=bogus": "sslmode",
	} {
		_, err := configuration(url)
		require.ErrorContains(t, err, says, url)
		require.NotContains(t, err.Error(), secret, url)
	}
	for _, url := range []string{"postgres://u:a%40b%2Fc@host/db?application_name=a@b", "postgresql:///db?host=/tmp", "postgres://u@[::1]:5432"} {
		_, err := configuration(url)
		require.NoError(t, err, url)
	}
}
