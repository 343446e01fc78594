package bench

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"sluice/client"
)

// What is refused for now is written again, after the time that is asked for, while
// it gets less; what is refused for good, and a daemon that takes nothing, end it.
func TestFillingWaits(t *testing.T) {
	busy := &client.Problem{Status: 503, Title: "busy"}
	asking := &client.Problem{Status: 503, RetryAfter: 3 * time.Second}
	late := &client.Problem{Status: 504, RetryAfter: time.Hour}
	wrong := &client.Problem{Status: 400}
	type turn struct {
		left int
		err  error
	}
	for name, c := range map[string]struct {
		turns []turn // of five passages; the last is repeated
		calls int
		took  time.Duration
		err   error
	}{
		"at once":       {[]turn{{0, nil}}, 1, 0, nil},
		"later":         {[]turn{{5, busy}, {5, asking}, {2, late}, {1, client.ErrIncomplete}, {0, nil}}, 5, 15 * time.Second, nil},
		"never":         {[]turn{{2, busy}}, 7, 35 * time.Second, busy},
		"a wrong one":   {[]turn{{4, wrong}}, 1, 0, wrong},
		"wrong at last": {[]turn{{4, busy}, {3, wrong}}, 2, time.Second, wrong},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began, calls := time.Now(), 0
				err := fill(t.Context(), []int{0, 1, 2, 3, 4}, func(numbers []int) ([]int, error) {
					at := c.turns[min(calls, len(c.turns)-1)]
					calls++
					return numbers[:at.left], at.err
				})
				require.Equal(t, c.err, err)
				require.Equal(t, c.calls, calls)
				require.Equal(t, c.took, time.Since(began))
			})
		})
	}
}

// What is left of a request that was refused in parts, or as a whole, or that ended
// early, is written by the next; nothing is written twice.
func TestFillingGoesOn(t *testing.T) {
	var requests [][]string
	daemon := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var keys []string
		for lines := json.NewDecoder(r.Body); ; {
			var d client.Document
			if lines.Decode(&d) != nil {
				break
			}
			keys = append(keys, d.Key)
		}
		requests = append(requests, keys)
		refused := func(key string) string { return fmt.Sprintf(`{"key":%q,"error":{"title":"x","status":504}}`, key) }
		created := func(key string) string { return fmt.Sprintf(`{"key":%q,"status":"created"}`, key) }
		switch len(requests) {
		case 1: // and none for the last
			fmt.Fprintln(w, strings.Join([]string{created(keys[0]), refused(keys[1]), created(keys[2])}, "\n"))
		case 2:
			w.Header().Set("Retry-After", "7")
			w.WriteHeader(http.StatusServiceUnavailable)
		default:
			for _, key := range keys {
				fmt.Fprintln(w, created(key))
			}
		}
	}))
	defer daemon.Close()
	api, err := client.New(daemon.URL)
	require.NoError(t, err)
	b := &hybridBench{writer: api, passages: make([]passage, 32)}
	var n ingested
	left, err := b.write(t.Context(), b.share(0), &n)
	require.ErrorIs(t, err, client.ErrIncomplete)
	require.Equal(t, []int{8, 24}, left)
	left, err = b.write(t.Context(), left, &n)
	require.True(t, passing(err))
	require.Equal(t, 7*time.Second, patience(err, 0))
	left, err = b.write(t.Context(), left, &n)
	require.NoError(t, err)
	require.Empty(t, left)
	require.Equal(t, [][]string{{"0", "8", "16", "24"}, {"8", "24"}, {"8", "24"}}, requests)
	require.Equal(t, []string{"0", "16", "8", "24"}, n.keys)
	require.False(t, passing(errors.New("connection refused")))
}
