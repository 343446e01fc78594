package server

import (
	"fmt"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"sluice/client"
	"sluice/ingest"
	"sluice/store"
)

// Whatever key and collection are escaped into a path come out of it again.
func TestPathRoundTrip(t *testing.T) {
	r := newRouter(routes())
	rapid.Check(t, func(t *rapid.T) {
		key := rapid.StringN(1, 100, ingest.MaxKeyBytes).Filter(func(s string) bool { return checkKey(s) == nil }).Draw(t, "key")
		target := "/v1/collections/c/documents/" + url.PathEscape(key) + "/access?x=/../"
		_, one, vars, err := r.find("PATCH", []byte(target))
		require.NoError(t, err)
		require.Equal(t, "/v1/collections/{collection}/documents/{key}/access", one.pattern)
		require.Equal(t, variables{"collection": "c", "key": key}, vars)
	})
}

// Any target either fails, or is the one spelling of its route: literals as
// they stand, variables plain text that is no step up.
func FuzzRouter(f *testing.F) {
	for _, seed := range []string{
		"/v1/collections/c/documents/a%2Fb", "/v1/collections/../x", "/v1//x", "/v1/collections/c%2f..%2f/documents",
		"/healthz?x", "/%68ealthz", "*", "http://h/healthz", "/v1/collections/c/documents/%00", "",
	} {
		f.Add("GET", []byte(seed))
	}
	r := newRouter(routes())
	f.Fuzz(func(t *testing.T, method string, target []byte) {
		pattern, one, vars, err := r.find(method, target)
		if err != nil {
			require.Nil(t, one)
			require.GreaterOrEqual(t, failureOf(err).status, 400)
			require.Less(t, failureOf(err).status, 500)
			return
		}
		require.NotNil(t, pattern)
		path, _, _ := strings.Cut(string(target), "?")
		parts, want := strings.Split(path, "/"), strings.Split(one.pattern, "/")
		require.Len(t, parts, len(want))
		for i := range parts {
			name := strings.Trim(want[i], "{}")
			if name == want[i] {
				require.Equal(t, want[i], parts[i])
				continue
			}
			decoded, err := url.PathUnescape(parts[i])
			require.NoError(t, err)
			require.Equal(t, decoded, vars[name])
			require.True(t, plain(decoded) && decoded != "." && decoded != "..")
		}
	})
}

func FuzzDecode(f *testing.F) {
	for _, seed := range []string{`{}`, `{"key":"k","text":"x"}`, `{"key":1}`, `{"key":"k","key":"l"}`, `{"attributes":{"a":[1,{"b":null}]}}`, "\xff", `[`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		_, err := patchOrDocument(data)
		if err != nil {
			require.Equal(t, 400, failureOf(err).status)
			require.LessOrEqual(t, len(failureOf(err).detail), 4*maxDetail)
		}
	})
}

// patchOrDocument reads the data in every way that a body of its shape is read.
func patchOrDocument(data []byte) (ingest.Document, error) {
	var p client.AccessPatch
	if decode(data, &p) == nil {
		if _, err := patchOf(p); err != nil {
			return ingest.Document{}, err
		}
	}
	var d written
	if err := decode(data, &d); err != nil {
		return ingest.Document{}, err
	}
	return documentOf(d)
}

// What a caller reads begins with what is wrong, not with how errors are sorted here.
func TestInvalidIsSaidByTheStatus(t *testing.T) {
	f := failureOf(fmt.Errorf("%w: unknown strategy", store.ErrInvalid))
	require.Equal(t, 400, f.status)
	require.Equal(t, "unknown strategy", f.detail)
}
