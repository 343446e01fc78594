//go:build nvidia

package kernel

import (
	"fmt"
	"testing"

	"gorgonia.org/cu"

	"github.com/stretchr/testify/require"

	"sluice/kernels/ref"
)

// norm makes gain and bias, on both sides.
func (b *bench) norm(width int, epsilon float32) (n Norm, gain, bias []float32) {
	gain, bias = b.normals(width, 1), b.normals(width, 1)
	return Norm{upload(b, gain), upload(b, bias), epsilon}, gain, bias
}

func TestEmbed(t *testing.T) {
	for _, width := range []int{2, 66, 384, 768, 1024} {
		for _, parts := range []string{"word position type", "word", "word type"} {
			t.Run(fmt.Sprint(width, " ", parts), func(t *testing.T) {
				const vocabulary, positions, tokens = 11, 7, 13
				b := open(t)
				n, gain, bias := b.norm(width, 1e-5)
				tables := Tables{Norm: n, Width: width}
				ids, places, types := make([]int32, tokens), make([]int32, tokens), make([]int32, tokens)
				want := make([]float32, tokens*width)
				add := func(part string, rows int, indices []int32) cu.DevicePtr {
					for i := range indices {
						indices[i] = int32(b.rng.IntN(rows))
					}
					indices[0] = int32(rows - 1)
					table := b.normals(rows*width, 1)
					bits := rounded(table)
					for i, row := range indices {
						ref.Add(want[i*width:][:width], table[int(row)*width:][:width])
					}
					return upload(b, bits)
				}
				tables.Word = add("word", vocabulary, ids)
				switch parts {
				case "word position type":
					tables.Position = add("position", positions, places)
					fallthrough
				case "word type":
					tables.Type = add("type", 2, types)
				}
				ref.LayerNorm(want, gain, bias, 1e-5)
				out := room(b, 2*tokens*width)
				require.NoError(t, b.Embed(cu.NoStream, out, tables, upload(b, ids), upload(b, places), upload(b, types), tokens))
				near(b, want, widened(download[uint16](b, out, tokens*width)), halfStep, 1e-4)
			})
		}
	}
}

func TestLayerNorm(t *testing.T) {
	for _, shape := range [][2]int{{1, 2}, {5, 50}, {3, 384}, {9, 768}, {4, 1022}} {
		rows, width := shape[0], shape[1]
		for _, kind := range []string{"alone", "residual", "far from zero", "constant", "in place"} {
			t.Run(fmt.Sprint(shape, " ", kind), func(t *testing.T) {
				b := open(t)
				n, gain, bias := b.norm(width, 1e-12)
				x, residual := b.normals(rows*width, 1), b.normals(rows*width, 3)
				for i := range x {
					switch kind {
					case "far from zero":
						x[i] += 256
					case "constant":
						x[i] = 7 // only epsilon keeps it from 0/0
					}
				}
				px, other := upload(b, rounded(x)), cu.DevicePtr(0)
				if kind == "residual" {
					other = upload(b, rounded(residual))
					ref.Add(x, residual)
				}
				out := px
				if kind != "in place" {
					out = room(b, 2*rows*width)
				}
				require.NoError(t, b.LayerNorm(cu.NoStream, out, px, other, n, rows, width))
				ref.LayerNorm(x, gain, bias, 1e-12)
				near(b, x, widened(download[uint16](b, out, rows*width)), halfStep, 2e-4)
			})
		}
	}
}
