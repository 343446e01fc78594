//go:build nvidia

package kernel

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"gorgonia.org/cu"

	"sluice/kernels/ref"
	"sluice/model"
)

// attend runs attention over qkv, which it rounds.
func (b *bench) attend(qkv []float32, offsets []int, h Heads) []uint16 {
	tokens := offsets[len(offsets)-1]
	out, tiles := room(b, 2*tokens*h.Count*h.Size), AppendTiles(nil, offsets)
	require.NoError(b, b.Attention(cu.NoStream, out, upload(b, rounded(qkv)), upload(b, tiles), len(tiles), h))
	return download[uint16](b, out, tokens*h.Count*h.Size)
}

// attended is the reference: want, and the sum of what is weighed, sign aside,
// as weights are rounded to bfloat16 and the error is a share of that.
// relative is by head and distance from −far to far.
func attended(qkv []float32, offsets []int, h Heads, relative []float32, far int) (want, magnitude []float32) {
	hidden := h.Count * h.Size
	want, magnitude = make([]float32, offsets[len(offsets)-1]*hidden), make([]float32, offsets[len(offsets)-1]*hidden)
	part := func(token, which, head int) []float32 { return qkv[(3*token+which)*hidden+head*h.Size:][:h.Size] }
	for s := range len(offsets) - 1 {
		for i := offsets[s]; i < offsets[s+1]; i++ {
			for head := range h.Count {
				var scores []float32
				for j := offsets[s]; j < offsets[s+1]; j++ {
					score := float32(float64(ref.Dot(part(i, 0, head), part(j, 1, head))) / math.Sqrt(float64(h.Used)))
					if relative != nil {
						score += relative[head*(2*far+1)+far+j-i]
					}
					if h.Window > 0 && max(j-i, i-j) > h.Window {
						score = float32(math.Inf(-1))
					}
					scores = append(scores, score)
				}
				ref.Softmax(scores, 1)
				for d := range h.Size {
					for j, weight := range scores {
						v := weight * part(offsets[s]+j, 2, head)[d]
						want[i*hidden+head*h.Size+d] += v
						magnitude[i*hidden+head*h.Size+d] += max(v, -v)
					}
				}
			}
		}
	}
	return want, magnitude
}

func TestAttention(t *testing.T) {
	for _, size := range []int{32, 64} {
		for _, lengths := range [][]int{{1}, {64}, {3, 1, 65}, {17, 130}} {
			for _, window := range []int{0, 1, 9, 64, 200} {
				for _, far := range []int{0, 130} {
					if (window > 9 || size == 32) && far > 0 || window > 0 && len(lengths) == 1 {
						continue // enough is enough
					}
					t.Run(fmt.Sprint(size, lengths, window, far), func(t *testing.T) {
						b := open(t)
						h := Heads{Count: 2, Size: size, Used: size - window%2*8, Window: window, Zero: far}
						offsets := []int{0}
						for _, n := range lengths {
							offsets = append(offsets, offsets[len(offsets)-1]+n)
						}
						var relative []float32
						if far > 0 {
							relative = b.normals(h.Count*(2*far+1), 1)
							scaled := slices.Clone(relative)
							for i := range scaled {
								scaled[i] *= math.Log2E
							}
							h.Relative = upload(b, scaled)
						}
						qkv := b.normals(offsets[len(offsets)-1]*3*h.Count*size, 1)
						got := widened(b.attend(qkv, offsets, h))
						want, magnitude := attended(qkv, offsets, h, relative, far)
						for i, v := range got {
							require.InDelta(t, want[i], v, float64(magnitude[i])/128+1e-4, "element %d", i)
						}
					})
				}
			}
		}
	}
}

// A sequence's answer has the same bits whatever it is batched with.
func TestAttentionIgnoresNeighbours(t *testing.T) {
	const first, second = 70, 9
	for _, window := range []int{0, 5} {
		b := open(t)
		h := Heads{Count: 3, Size: 32, Used: 32, Window: window}
		width, hidden := 3*h.Count*h.Size, h.Count*h.Size
		qkv := b.normals((first+second)*width, 1)
		both := b.attend(qkv, []int{0, first, first + second}, h)
		require.Equal(t, b.attend(qkv[:first*width], []int{0, first}, h), both[:first*hidden])
		require.Equal(t, b.attend(qkv[first*width:], []int{0, second}, h), both[first*hidden:])
	}
}

func TestHeadSize(t *testing.T) {
	for used, want := range map[int]int{8: 32, 32: 32, 33: 64, 64: 64} {
		size, err := HeadSize(used)
		require.NoError(t, err)
		require.Equal(t, want, size)
	}
	_, err := HeadSize(65)
	require.ErrorIs(t, err, model.ErrUnsupported)
}

func TestRope(t *testing.T) {
	for _, used := range []int{32, 12, 64} {
		b := open(t)
		const positions, tokens = 70, 5
		size, err := HeadSize(used)
		require.NoError(t, err)
		h, half := Heads{Count: 3, Size: size, Used: used}, used/2
		cos, sin := ref.RopeTable(positions, used, 1000, 1.5)
		places := []int32{0, 69, 1, 33, 2}
		qkv := b.normals(tokens*3*h.Count*size, 1)
		p := upload(b, rounded(qkv))
		for t, place := range places {
			for head := range 2 * h.Count { // of queries and of keys
				ref.Rope(qkv[t*3*h.Count*size+head*size:][:used], cos[int(place)*half:][:half], sin[int(place)*half:][:half])
			}
		}
		require.NoError(t, b.Rope(cu.NoStream, p, upload(b, places), Turn{upload(b, cos), upload(b, sin), half}, h, tokens))
		near(b, qkv, widened(download[uint16](b, p, len(qkv))), halfStep, 1e-4)
	}
}

func TestAppendTiles(t *testing.T) {
	require.Equal(t, []int32{0, 0, 65, 64, 0, 65, 65, 65, 67}, AppendTiles(nil, []int{0, 65, 65, 67}))
	require.Equal(t, []int{0, 1, 1, 2}, []int{Tiles(0), Tiles(1), Tiles(64), Tiles(65)})
}
