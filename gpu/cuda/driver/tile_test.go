//go:build nvidia

package driver

import (
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"
	"gorgonia.org/cu"
)

const tileRows, tileColumns = 13, 40 // of the matrix, of which tile takes boxes of 8 × 64

// launchTile has two tiles of a matrix transposed, the first of which begins
// four rows before it. Element (i, j) is bfloat16 of the bits 64i + j + 1.
func launchTile(t *testing.T, m cu.Module, y cu.DevicePtr, mistake int) error {
	t.Helper()
	bits := make([]uint16, tileRows*tileColumns+1)
	for i := range tileRows * tileColumns {
		bits[i] = uint16(64*(i/tileColumns) + i%tileColumns + 1)
	}
	x := upload(t, unsafe.Slice((*float32)(unsafe.Pointer(&bits[0])), tileRows*tileColumns/2))
	matrix, err := NewTensorMap(Matrix{Address: x, Rows: tileRows, Columns: tileColumns, Stride: 2 * tileColumns, BoxRows: 8, BoxColumns: 64})
	require.NoError(t, err)
	parameters := append([]uint64{Pointer(y), Int(2), Int(mistake)}, matrix[:]...)
	return Launch(lookUp(t, m, "tile"), cu.NoStream, Size{X: 1}, Size{X: 64}, 2064, parameters...)
}

// A tile has the matrix's elements where place has them, and zeros beside it.
func TestTile(t *testing.T) {
	m := open(t)
	y := upload(t, make([]float32, 8*64))
	require.NoError(t, launchTile(t, m, y, 0))
	got := make([]uint16, 2*8*64)
	require.NoError(t, cu.MemcpyDtoH(unsafe.Pointer(&got[0]), y, int64(2*len(got))))
	for i, bits := range got {
		row, column := 8*(i/512)+i%8-4, i/8%64
		want := uint16(64*row + column + 1)
		if row < 0 || row >= tileRows || column >= tileColumns {
			want = 0
		}
		require.Equal(t, want, bits, "row %d, column %d", row, column)
	}
}
