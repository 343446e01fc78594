package safetensors

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// fileBytes builds a file from a JSON header and data.
func fileBytes(header string, data []byte) []byte {
	file := binary.LittleEndian.AppendUint64(nil, uint64(len(header)))
	return append(append(file, header...), data...)
}

func write(t *testing.T, dir, name string, content []byte) {
	t.Helper()
	require.NoError(t, os.WriteFile(filepath.Join(dir, name), content, 0o644))
}

func openBytes(t *testing.T, content []byte) (*Archive, error) {
	t.Helper()
	dir := t.TempDir()
	write(t, dir, singleName, content)
	a, err := Open(dir)
	if err == nil {
		t.Cleanup(func() { require.NoError(t, a.Close()) })
	}
	return a, err
}

func TestWidening(t *testing.T) {
	data := binary.LittleEndian.AppendUint32(nil, math.Float32bits(-1.5))
	for _, h := range []uint16{0x3c00, 0xc000, 0x7bff, 0x0001, 0x8000, 0x7c00, 0x03ff} {
		data = binary.LittleEndian.AppendUint16(data, h)
	}
	for _, b := range []uint16{0x3f80, 0xff7f} {
		data = binary.LittleEndian.AppendUint16(data, b)
	}
	a, err := openBytes(t, fileBytes(`{"__metadata__":{"format":"pt"},
		"f32":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},
		"f16":{"dtype":"F16","shape":[7],"data_offsets":[4,18]},
		"bf16":{"dtype":"BF16","shape":[1,2],"data_offsets":[18,22]}}`, data))
	require.NoError(t, err)
	require.Equal(t, []string{"bf16", "f16", "f32"}, a.Names())
	for name, want := range map[string][]float32{
		"f32": {-1.5},
		"f16": {1, -2, 65504, 0x1p-24, float32(math.Copysign(0, -1)), float32(math.Inf(1)), 1023 * 0x1p-24},
	} {
		got, err := a.Float32(name, len(want))
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
	got, err := a.Float32("bf16", 1, 2)
	require.NoError(t, err)
	require.Equal(t, []float32{1, -math.MaxFloat32 + 0x1p120 - 0x1p104}, got)
}

// Every half is checked against the definition: (-1)^s · 2^(e-15) · (1 + f/1024).
func TestHalfToFloatIsExact(t *testing.T) {
	for h := range 1 << 16 {
		e, f := h>>10&0x1f, float64(h&0x3ff)
		want := math.Ldexp(1+f/1024, e-15)
		switch {
		case e == 0:
			want = math.Ldexp(f/1024, -14)
		case e == 31 && f == 0:
			want = math.Inf(1)
		case e == 31:
			require.True(t, math.IsNaN(float64(halfToFloat(uint16(h)))))
			continue
		}
		require.Equal(t, math.Copysign(want, 1-2*float64(h>>15)), float64(halfToFloat(uint16(h))), "%#04x", h)
	}
}

// A tensor of more than one chunk, of a size that no chunk divides.
func TestLargeTensor(t *testing.T) {
	const n = 3*chunk/4 + 5
	data := make([]byte, 4*n)
	for i := range n {
		binary.LittleEndian.PutUint32(data[4*i:], math.Float32bits(float32(i)))
	}
	a, err := openBytes(t, fileBytes(fmt.Sprintf(`{"x":{"dtype":"F32","shape":[%d],"data_offsets":[0,%d]}}`, n, 4*n), data))
	require.NoError(t, err)
	got, err := a.Float32("x", n)
	require.NoError(t, err)
	for i, v := range got {
		require.Equal(t, float32(i), v)
	}
}

func TestBadFiles(t *testing.T) {
	tensor := func(dtype string, shape, offsets string) string {
		return fmt.Sprintf(`{"dtype":%q,"shape":%s,"data_offsets":%s}`, dtype, shape, offsets)
	}
	cases := map[string]struct {
		content []byte
		want    string
	}{
		"empty file":       {nil, "header length"},
		"header too long":  {[]byte("\xff\xff\xff\xff\xff\xff\xff\xff{}"), "header of 18446744073709551615 bytes"},
		"header cut":       {fileBytes(`{"a":1}`, nil)[:12], "header of 7 bytes in a file of 12"},
		"not JSON":         {fileBytes(`nonsense`, nil), "header"},
		"truncated data":   {fileBytes(`{"a":`+tensor("F32", "[2]", "[0,8]")+`}`, make([]byte, 7)), `tensor "a" ends at byte 8 of 7: the file is truncated`},
		"data left over":   {fileBytes(`{"a":`+tensor("F32", "[2]", "[0,8]")+`}`, make([]byte, 9)), "1 bytes after the last tensor"},
		"overlap":          {fileBytes(`{"a":`+tensor("F32", "[2]", "[0,8]")+`,"b":`+tensor("F32", "[1]", "[4,8]")+`}`, make([]byte, 8)), `tensor "b" starts at byte 4, want 8`},
		"gap":              {fileBytes(`{"a":`+tensor("F32", "[1]", "[4,8]")+`}`, make([]byte, 8)), `tensor "a" starts at byte 4, want 0`},
		"size of shape":    {fileBytes(`{"a":`+tensor("F32", "[3]", "[0,8]")+`}`, make([]byte, 8)), `tensor "a": offsets [0, 8) do not hold the 12 bytes`},
		"backwards":        {fileBytes(`{"a":`+tensor("F32", "[0]", "[8,0]")+`}`, make([]byte, 8)), `offsets [8, 0)`},
		"negative shape":   {fileBytes(`{"a":`+tensor("F32", "[-1]", "[0,8]")+`}`, make([]byte, 8)), "impossible shape [-1]"},
		"shape overflow":   {fileBytes(`{"a":`+tensor("F32", "[4294967296,4294967296]", "[0,0]")+`}`, nil), "impossible shape"},
		"unknown dtype":    {fileBytes(`{"a":`+tensor("Q4", "[1]", "[0,1]")+`}`, make([]byte, 1)), `unknown dtype "Q4"`},
		"offsets too many": {fileBytes(`{"a":{"dtype":"U8","shape":[1],"data_offsets":"0,1"}}`, make([]byte, 1)), `tensor "a"`},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := openBytes(t, c.content)
			require.ErrorIs(t, err, ErrFormat)
			require.ErrorContains(t, err, c.want)
			require.ErrorContains(t, err, singleName)
		})
	}
}

func TestFloat32Refuses(t *testing.T) {
	a, err := openBytes(t, fileBytes(`{"ids":{"dtype":"I64","shape":[1],"data_offsets":[0,8]},
		"w":{"dtype":"F32","shape":[2,1],"data_offsets":[8,16]}}`, make([]byte, 16)))
	require.NoError(t, err)
	for want, read := range map[string]func() ([]float32, error){
		`no tensor "v"`: func() ([]float32, error) { return a.Float32("v", 1) },
		singleName + `: invalid safetensors file: tensor "w" has shape [2 1], want [1 2]`: func() ([]float32, error) { return a.Float32("w", 1, 2) },
		`tensor "ids" is I64, want F32, F16 or BF16`:                                      func() ([]float32, error) { return a.Float32("ids", 1) },
	} {
		_, err := read()
		require.ErrorIs(t, err, ErrFormat)
		require.ErrorContains(t, err, want)
	}
}

func TestShards(t *testing.T) {
	shard := func(name string, value float32) []byte {
		return fileBytes(`{"`+name+`":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}`,
			binary.LittleEndian.AppendUint32(nil, math.Float32bits(value)))
	}
	files := map[string][]byte{"s1.safetensors": shard("a", 1), "s2.safetensors": shard("b", 2)}
	for name, c := range map[string]struct {
		index map[string]string
		want  string
	}{
		"good":           {map[string]string{"a": "s1.safetensors", "b": "s2.safetensors"}, ""},
		"swapped":        {map[string]string{"a": "s2.safetensors", "b": "s1.safetensors"}, `tensor "a" is not in shard s2.safetensors`},
		"tensor missing": {map[string]string{"a": "s1.safetensors", "c": "s1.safetensors"}, `tensor "c" is not in shard`},
		"shard missing":  {map[string]string{"a": "s3.safetensors"}, "s3.safetensors"},
		"shard outside":  {map[string]string{"a": "../s1.safetensors"}, "not a file name"},
		"shard nameless": {map[string]string{"a": ".."}, "not a file name"},
		"twice":          {map[string]string{"a": "s1.safetensors", "x": "s4.safetensors"}, `tensor "a" is also in`},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			for file, content := range files {
				write(t, dir, file, content)
			}
			write(t, dir, "s4.safetensors", shard("a", 4))
			index, err := json.Marshal(map[string]any{"weight_map": c.index})
			require.NoError(t, err)
			write(t, dir, indexName, index)
			a, err := Open(dir)
			if c.want != "" {
				require.ErrorContains(t, err, c.want)
				return
			}
			require.NoError(t, err)
			defer a.Close()
			require.Len(t, a.Paths(), 2)
			b, err := a.Float32("b", 1)
			require.NoError(t, err)
			require.Equal(t, []float32{2}, b)
		})
	}
}

func TestNoWeights(t *testing.T) {
	_, err := Open(t.TempDir())
	require.ErrorIs(t, err, os.ErrNotExist)
	require.ErrorContains(t, err, singleName)
}

// FuzzParseHeader: what is accepted lies in the data and covers it exactly.
func FuzzParseHeader(f *testing.F) {
	f.Add([]byte(`{"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}`), int64(8))
	f.Add([]byte(`{"__metadata__":{"format":"pt"},"a":{"dtype":"I64","shape":[],"data_offsets":[0,8]},"b":{"dtype":"F16","shape":[0,3],"data_offsets":[8,8]}}`), int64(8))
	f.Add([]byte(`{"a":{"dtype":"F32","shape":[9223372036854775807,3],"data_offsets":[0,9223372036854775807]}}`), int64(1))
	f.Add([]byte(strings.Repeat("[", 1000)), int64(0))
	f.Fuzz(func(t *testing.T, header []byte, size int64) {
		tensors, err := ParseHeader(header, size)
		if err != nil {
			require.ErrorIs(t, err, ErrFormat)
			return
		}
		var sum int64
		for name, info := range tensors {
			require.True(t, 0 <= info.Start && info.Start <= info.End && info.End <= size, name)
			sum += info.End - info.Start
		}
		require.Equal(t, size, sum)
	})
}
