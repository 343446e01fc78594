//go:build nvidia

package kernel

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"gorgonia.org/cu"

	"sluice/kernels/ref"
	"sluice/model"
)

func TestPool(t *testing.T) {
	poolings := []func(dst, x []float32){ref.MeanPool, ref.CLSPool, ref.LastPool}
	for _, width := range []int{2, 130, 384, 1024} {
		for pooling, reference := range poolings {
			for _, unit := range []bool{true, false} {
				t.Run(fmt.Sprint(width, " ", pooling, unit), func(t *testing.T) {
					b := open(t)
					offsets := []int32{0, 1, 8, 45, 47}
					const zero = 3 // a sequence of zeros
					x := b.normals(47*width, 1)
					clear(x[45*width:])
					px := upload(b, rounded(x))
					want, norms := make([]float32, 4*width), make([]float32, 4)
					for i := range 4 {
						v := want[i*width:][:width]
						reference(v, x[int(offsets[i])*width:int(offsets[i+1])*width])
						scaled := slices.Clone(v)
						if norms[i] = float32(ref.Normalize(scaled)); unit {
							copy(v, scaled)
						}
					}
					require.Zero(t, norms[zero])
					out, lengths := room(b, 4*len(want)), room(b, 16)
					require.NoError(t, b.Pool(cu.NoStream, out, lengths, px, upload(b, offsets), Pooling(pooling), unit, 4, width))
					near(b, want, download[float32](b, out, len(want)), 1e-5, 2e-5)
					near(b, norms, download[float32](b, lengths, 4), 1e-5, 0)
					require.NoError(t, b.Pool(cu.NoStream, out, 0, px, upload(b, offsets), Pooling(pooling), unit, 4, width))
					require.NoError(t, cu.Synchronize())
				})
			}
		}
	}
}

func TestClassify(t *testing.T) {
	for _, shape := range [][2]int{{1, 3}, {3, 50}, {1, 384}, {17, 70}} { // labels, width
		for _, norm := range []bool{true, false} {
			t.Run(fmt.Sprint(shape, norm), func(t *testing.T) {
				const sequences = 3
				labels, width := shape[0], shape[1]
				b := open(t)
				x := b.normals(sequences*width, 0.3)
				dense := b.product(sequences, width, width, model.Tanh, false, false)
				dense.x = x
				ref.Linear(dense.want, x, dense.w, dense.bias, width, width)
				activated(dense.want, model.Tanh)
				h := Head{Dense: b.dense(dense, upload(b, dense.w))}
				if norm {
					n, gain, bias := b.norm(width, 1e-5)
					h.Norm = n
					ref.LayerNorm(dense.want, gain, bias, 1e-5)
				}
				out := b.product(sequences, width, labels, model.Identity, false, false)
				out.x = dense.want
				ref.Linear(out.want, out.x, out.w, out.bias, width, labels)
				h.Out = b.dense(out, upload(b, out.w))
				logits := room(b, 4*sequences*labels)
				require.NoError(t, b.Classify(cu.NoStream, logits, upload(b, x), h, sequences))
				near(b, out.want, download[float32](b, logits, sequences*labels), 1e-4, 30*out.bound())
			})
		}
	}
}
