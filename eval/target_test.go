package eval

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"

	"sluice/client"
)

func TestOverHTTP(t *testing.T) {
	var asked *http.Request
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = r
		_ = json.NewEncoder(w).Encode(client.Listing{Documents: []client.DocumentInfo{{Key: "a", Version: 1}}})
	}))
	defer server.Close()
	stopped := 0
	connect := Over(func(context.Context, *Dataset) (Target, error) {
		return Target{
			URL:   server.URL,
			Token: func(_ context.Context, p Principal) (string, error) { return "token-of-" + p.Name, nil },
			Stop:  func() error { stopped++; return nil },
		}, nil
	})
	backend, err := connect(context.Background(), &Dataset{})
	require.NoError(t, err)
	session, err := backend.As(context.Background(), Principal{Name: "alice"})
	require.NoError(t, err)
	listing, err := session.List(context.Background(), "c", "", 10)
	require.NoError(t, err)
	require.Equal(t, "a", listing.Documents[0].Key)
	require.Equal(t, "Bearer token-of-alice", asked.Header.Get("Authorization"))
	require.NoError(t, backend.Close())
	require.Equal(t, 1, stopped)
}

func TestOverHTTPFails(t *testing.T) {
	broken := errors.New("broken")
	_, err := Over(func(context.Context, *Dataset) (Target, error) { return Target{}, broken })(context.Background(), nil)
	require.ErrorIs(t, err, broken)
	backend := &httpBackend{target: Target{
		Token: func(context.Context, Principal) (string, error) { return "", broken },
		Stop:  func() error { return broken },
	}}
	_, err = backend.As(context.Background(), Principal{})
	require.ErrorIs(t, err, broken)
	require.ErrorIs(t, backend.Close(), broken)
}
