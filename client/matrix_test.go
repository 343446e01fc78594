package client

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
)

// Whatever comes: an error, or rows of one length that say the same when they
// are sent again.
func FuzzMatrix(f *testing.F) {
	for _, text := range []string{`[[1,2],[3,4]]`, `["AACAPwAAAEA=",[1e-9,-0]]`, `[]`, `null`, `[[1],[]]`, `[[null]]`, `{}`} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		var m Matrix
		if json.Unmarshal(text, &m) != nil {
			return
		}
		require.Equal(t, len(m.Values), m.Rows()*m.Columns)
		m.Base64 = true // which keeps what is not a number
		again, err := json.Marshal(m)
		require.NoError(t, err)
		var back Matrix
		require.NoError(t, json.Unmarshal(again, &back))
		require.Equal(t, m.Rows(), back.Rows())
		third, err := json.Marshal(back)
		require.NoError(t, err)
		require.Equal(t, string(again), string(third))
	})
}
