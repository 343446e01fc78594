package wire

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"math/rand/v2"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/require"

	"sluice/gpu"
	"sluice/model"
)

func batch(lengths ...int) *gpu.Batch {
	var b gpu.Batch
	b.Reset()
	for _, n := range lengths {
		ids, types := make([]int32, n), make([]int32, n)
		for i := range ids {
			ids[i], types[i] = rand.Int32(), rand.Int32N(2)
		}
		b.Append(ids, types)
	}
	return &b
}

func read(t *testing.T, data []byte) Frame {
	t.Helper()
	f, err := NewReader(iotest.OneByteReader(bytes.NewReader(data))).Read()
	require.NoError(t, err)
	return f
}

func TestRun(t *testing.T) {
	for _, lengths := range [][]int{{}, {1}, {3, 1, 200}} {
		b := batch(lengths...)
		data, err := AppendRun([]byte("old"), 7, 2, WantPooled|WantLogits, b)
		require.NoError(t, err)
		f := read(t, data)
		require.Equal(t, KindRun, f.Kind)
		require.EqualValues(t, 7, f.ID)
		r := Run{Batch: *batch(5)}
		require.NoError(t, r.Decode(f.Payload))
		require.Equal(t, Run{2, WantPooled | WantLogits, *b}.Model, r.Model)
		require.Equal(t, WantPooled|WantLogits, r.Want)
		require.Equal(t, b.Offsets, r.Batch.Offsets)
		require.ElementsMatch(t, b.IDs, r.Batch.IDs)
		require.ElementsMatch(t, b.Types, r.Batch.Types)
	}
}

func TestAnswer(t *testing.T) {
	a := Answer{Pooled: []float32{1, -2}, Norms: []float32{3}, Logits: []float32{4}, Tokens: []uint16{0x3f80, 0xbf80, 0x7fc0}}
	data, err := AppendAnswer(nil, 9, a)
	require.NoError(t, err)
	f := read(t, data)
	out := gpu.Output{Pooled: make([]float32, 2), Norms: make([]float32, 1), Logits: make([]float32, 1), Tokens: make([]float32, 3)}
	require.NoError(t, DecodeAnswer(f.Payload, out))
	require.Equal(t, a.Pooled, out.Pooled)
	require.Equal(t, a.Norms, out.Norms)
	require.Equal(t, a.Logits, out.Logits)
	require.Equal(t, []float32{1, -1}, out.Tokens[:2])
	require.NotEqual(t, out.Tokens[2], out.Tokens[2], "a NaN stays one")

	out.Norms, out.Logits[0], out.Tokens[0] = nil, 0, 0
	require.NoError(t, DecodeAnswer(f.Payload, out))
	require.Equal(t, a.Logits, out.Logits)
	require.EqualValues(t, 1, out.Tokens[0])
	out.Pooled = out.Pooled[:1]
	require.ErrorIs(t, DecodeAnswer(f.Payload, out), ErrFrame, "not what was asked for")
}

func TestMessages(t *testing.T) {
	product := Product{In: 8, Out: 16, Activation: model.GELU, Adds: true}
	require.Equal(t, "8 × 16 gelu +", product.Name())
	want := Load{3, "/models/a", "digest", []Tried{{Kernel: "gemm_4", Product: product, Rows: 16, Seconds: 1e-5}}}
	data, err := AppendJSON(nil, KindLoad, 1, want)
	require.NoError(t, err)
	var got Load
	require.NoError(t, DecodeJSON(read(t, data), &got))
	require.Equal(t, want, got)
	failure := Failure{CodeMemory, "too long"}
	data, err = AppendFailure(nil, 4, failure)
	require.NoError(t, err)
	f, err := DecodeFailure(read(t, data).Payload)
	require.NoError(t, err)
	require.Equal(t, failure, f)
}

func TestMemory(t *testing.T) {
	data, err := AppendHold(nil, 4, 7, 100, 90, func(dst []byte) []byte { return append(dst, "0123456789"...) })
	require.NoError(t, err)
	f := read(t, data)
	require.Equal(t, KindHold, f.Kind)
	h, err := DecodeHold(f.Payload)
	require.NoError(t, err)
	require.Equal(t, Hold{7, 100, 90, []byte("0123456789")}, h)
	for what, bad := range map[string]func(p []byte){
		"past the end": func(p []byte) { p[12]++ }, "no size": func(p []byte) { clear(p[4:20]) }, "as large as none": func(p []byte) { p[10] = 1 },
		"begins far away": func(p []byte) { p[19] = 255 },
	} {
		payload := bytes.Clone(f.Payload)
		bad(payload)
		_, err := DecodeHold(payload)
		require.ErrorIs(t, err, ErrFrame, what)
	}
	data, err = AppendDrop(nil, 7)
	require.NoError(t, err)
	number, err := DecodeDrop(read(t, data).Payload)
	require.NoError(t, err)
	require.EqualValues(t, 7, number)
}

func TestSearch(t *testing.T) {
	want := Search{3, 1000, 8, 10, []uint32{4, 5}, bytes.Repeat([]byte{1, 2}, 16)}
	data, err := AppendSearch(nil, 1, want)
	require.NoError(t, err)
	f := read(t, data)
	got := Search{Bitmaps: []uint32{1}, Queries: []byte("old")}
	require.NoError(t, got.Decode(f.Payload))
	require.Equal(t, want, got)
	for i, bad := range map[int]byte{4: 0, 7: 255, 8: 9, 12: 0, 13: 255, 16: 3, 19: 255} { // rows, width, k, n
		payload := bytes.Clone(f.Payload)
		payload[i] = bad
		if i == 4 {
			payload = payload[:len(payload)-1]
		}
		require.ErrorIs(t, got.Decode(payload), ErrFrame, "byte %d", i)
	}
	found := Found{[]int32{5, -1}, []float32{0.5, 0}}
	data, err = AppendFound(nil, 2, found)
	require.NoError(t, err)
	f = read(t, data)
	into := Found{make([]int32, 2), make([]float32, 2)}
	require.NoError(t, into.Decode(f.Payload))
	require.Equal(t, found, into)
	require.ErrorIs(t, Found{make([]int32, 3), make([]float32, 3)}.Decode(f.Payload), ErrFrame, "not what was asked for")
}

func TestMaxSim(t *testing.T) {
	query := make([]float32, 2*32)
	query[33] = 1.5
	passages := [][]byte{[]byte("12345678"), nil, []byte("abcdefghijklmnop")}
	data, err := AppendMaxSim(nil, 1, query, 32, passages)
	require.NoError(t, err)
	f := read(t, data)
	require.Equal(t, KindMaxSim, f.Kind)
	m := MaxSim{Offsets: []int32{9}}
	require.NoError(t, m.Decode(f.Payload))
	require.Equal(t, []any{32, 2, []int32{0, 1, 1, 3}, "12345678abcdefghijklmnop"}, []any{m.Dimensions, m.Tokens, m.Offsets, string(m.Codes)})
	got := make([]float32, len(query))
	floats(got, m.Query)
	require.Equal(t, query, got)
	for i, bad := range map[int]byte{0: 33, 2: 1, 4: 0, 5: 9, 8: 4, 10: 1, 12: 2, 15: 255, 20: 1} { // dimensions, tokens, passages, rows
		payload := bytes.Clone(f.Payload)
		payload[i] = bad
		require.ErrorIs(t, m.Decode(payload), ErrFrame, "byte %d", i)
	}
}

// Every flipped bit and every cut is found.
func TestDamage(t *testing.T) {
	data, err := AppendRun(nil, 7, 0, WantPooled, batch(2))
	require.NoError(t, err)
	for i := range data {
		_, err := NewReader(bytes.NewReader(data[:i])).Read()
		require.Error(t, err)
		for bit := range 8 {
			damaged := bytes.Clone(data)
			damaged[i] ^= 1 << bit
			_, err := NewReader(bytes.NewReader(damaged)).Read()
			require.ErrorIs(t, err, ErrFrame, "byte %d, bit %d", i, bit)
		}
	}
	_, err = NewReader(bytes.NewReader(nil)).Read()
	require.Equal(t, io.EOF, err)
	binary.LittleEndian.PutUint16(data[4:], Version+1)
	_, err = NewReader(bytes.NewReader(data)).Read()
	require.ErrorContains(t, err, "of one release")
}

// A length that lies costs a step of memory, not what it says.
func TestLengthsAreNotBelieved(t *testing.T) {
	frame := begin(nil)
	frame, err := seal(frame, KindRun, 1)
	require.NoError(t, err)
	binary.LittleEndian.PutUint32(frame[12:], MaxPayload)
	r := NewReader(bytes.NewReader(frame))
	_, err = r.Read()
	require.ErrorIs(t, err, ErrFrame)
	require.LessOrEqual(t, cap(r.payload), 2*step)
	binary.LittleEndian.PutUint32(frame[12:], MaxPayload+1)
	_, err = NewReader(bytes.NewReader(frame)).Read()
	require.ErrorContains(t, err, "are allowed")
}

func TestSteadyStateAllocatesNothing(t *testing.T) {
	b, a := batch(20, 30), Answer{Pooled: make([]float32, 384), Norms: make([]float32, 2)}
	out := gpu.Output{Pooled: make([]float32, 384), Norms: make([]float32, 2)}
	var buffer []byte
	var r Run
	stream := new(bytes.Reader)
	reader := NewReader(stream)
	require.Zero(t, testing.AllocsPerRun(100, func() {
		buffer, _ = AppendRun(buffer, 1, 0, WantPooled, b)
		stream.Reset(buffer)
		f, _ := reader.Read()
		_ = r.Decode(f.Payload)
		buffer, _ = AppendAnswer(buffer, 1, a)
		stream.Reset(buffer)
		f, _ = reader.Read()
		_ = DecodeAnswer(f.Payload, out)
	}))
}

// Whatever arrives is a frame or ErrFrame, and a message that is accepted is
// what encoding it again gives.
func FuzzRead(f *testing.F) {
	run, _ := AppendRun(nil, 7, 1, WantPooled|WantTokens, batch(2, 1))
	answer, _ := AppendAnswer(nil, 8, Answer{Pooled: make([]float32, 2), Norms: make([]float32, 1), Tokens: make([]uint16, 3)})
	failure, _ := AppendFailure(nil, 9, Failure{CodeInput, "x"})
	load, _ := AppendJSON(nil, KindLoad, 1, Load{1, "d", "e", nil})
	hold, _ := AppendHold(nil, 2, 1, 10, 5, func(dst []byte) []byte { return append(dst, 1, 2) })
	search, _ := AppendSearch(nil, 3, Search{1, 9, 8, 5, []uint32{2}, make([]byte, 16)})
	found, _ := AppendFound(nil, 3, Found{make([]int32, 2), make([]float32, 2)})
	maxsim, _ := AppendMaxSim(nil, 4, make([]float32, 32), 32, [][]byte{make([]byte, 16), nil})
	for _, seed := range [][]byte{run, answer, failure, load, hold, search, found, maxsim} {
		f.Add(seed[headerSize:], seed[6], false)
		f.Add(seed, seed[6], true)
	}
	f.Fuzz(func(t *testing.T, data []byte, kind byte, raw bool) {
		if !raw {
			frame, err := seal(append(begin(nil), data...), Kind(kind), 5)
			require.NoError(t, err)
			data = frame
		}
		frame, err := NewReader(bytes.NewReader(data)).Read()
		if err != nil {
			require.True(t, errors.Is(err, ErrFrame) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF), "%v", err)
			return
		}
		switch frame.Kind {
		case KindRun:
			var r Run
			if r.Decode(frame.Payload) == nil {
				again, err := AppendRun(nil, frame.ID, r.Model, r.Want, &r.Batch)
				require.NoError(t, err)
				require.Equal(t, frame.Payload, again[headerSize:])
			}
		case KindAnswer:
			_ = DecodeAnswer(frame.Payload, gpu.Output{Pooled: make([]float32, 2), Tokens: make([]float32, 3)})
		case KindHold:
			if h, err := DecodeHold(frame.Payload); err == nil {
				again, err := AppendHold(nil, frame.ID, h.Number, int(h.Size), int(h.At), func(dst []byte) []byte { return append(dst, h.Bytes...) })
				require.NoError(t, err)
				require.Equal(t, frame.Payload, again[headerSize:])
			}
		case KindDrop:
			_, _ = DecodeDrop(frame.Payload)
		case KindSearch:
			var s Search
			if s.Decode(frame.Payload) == nil {
				again, err := AppendSearch(nil, frame.ID, s)
				require.NoError(t, err)
				require.Equal(t, frame.Payload, again[headerSize:])
			}
		case KindMaxSim:
			var m MaxSim
			if m.Decode(frame.Payload) == nil {
				require.Len(t, m.Codes, int(m.Offsets[len(m.Offsets)-1])*RowBytes(m.Dimensions))
			}
		case KindFound:
			_ = Found{make([]int32, 2), make([]float32, 2)}.Decode(frame.Payload)
		case KindFailure:
			if failure, err := DecodeFailure(frame.Payload); err == nil {
				again, err := AppendFailure(nil, frame.ID, failure)
				require.NoError(t, err)
				require.Equal(t, frame.Payload, again[headerSize:])
			}
		default:
			var load Load
			_ = DecodeJSON(frame, &load)
		}
	})
}
