//go:build nvidia

package kernel

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"gorgonia.org/cu"

	"sluice/kernels/ref"
	"sluice/model"
)

// attend runs attention over qkv, which it rounds.
func (b *bench) attend(qkv []float32, offsets []int, heads, size int) []uint16 {
	tokens := offsets[len(offsets)-1]
	out, tiles := room(b, 2*tokens*heads*size), AppendTiles(nil, offsets)
	require.NoError(b, b.Attention(cu.NoStream, out, upload(b, rounded(qkv)), upload(b, tiles), len(tiles), heads, size))
	return download[uint16](b, out, tokens*heads*size)
}

func TestAttention(t *testing.T) {
	for _, size := range []int{32, 64} {
		for _, lengths := range [][]int{{1}, {64}, {3, 1, 65}, {17, 130}} {
			t.Run(fmt.Sprint(size, lengths), func(t *testing.T) {
				const heads = 2
				b := open(t)
				offsets := []int{0}
				for _, n := range lengths {
					offsets = append(offsets, offsets[len(offsets)-1]+n)
				}
				tokens := offsets[len(offsets)-1]
				qkv := b.normals(tokens*3*heads*size, 1)
				got := b.attend(qkv, offsets, heads, size)
				want := make([]float32, tokens*heads*size)
				ref.Attention(want, qkv, offsets, heads, size)
				// Weights are rounded to bfloat16: the error is a share of what they weigh, sign aside.
				for i := range tokens {
					values := qkv[(3*i+2)*heads*size:][:heads*size]
					for j, v := range values {
						values[j] = max(v, -v)
					}
				}
				magnitude := make([]float32, len(want))
				ref.Attention(magnitude, qkv, offsets, heads, size)
				for i, v := range widened(got) {
					require.InDelta(t, want[i], v, float64(magnitude[i])/128+1e-4, "element %d", i)
				}
			})
		}
	}
}

// A sequence's answer has the same bits whatever it is batched with.
func TestAttentionIgnoresNeighbours(t *testing.T) {
	const heads, size, first, second = 3, 32, 70, 9
	b := open(t)
	width := 3 * heads * size
	qkv := b.normals((first+second)*width, 1)
	both := b.attend(qkv, []int{0, first, first + second}, heads, size)
	require.Equal(t, b.attend(qkv[:first*width], []int{0, first}, heads, size), both[:first*heads*size])
	require.Equal(t, b.attend(qkv[first*width:], []int{0, second}, heads, size), both[first*heads*size:])
}

func TestAttentionOfOtherSizes(t *testing.T) {
	require.ErrorIs(t, open(t).Attention(cu.NoStream, 0, 0, 0, 3, 1, 48), model.ErrUnsupported)
}

func TestAppendTiles(t *testing.T) {
	require.Equal(t, []int32{0, 0, 65, 64, 0, 65, 65, 65, 67}, AppendTiles(nil, []int{0, 65, 65, 67}))
}
