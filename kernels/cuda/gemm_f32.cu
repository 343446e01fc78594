// y = activation(x·wᵀ + bias) ∘ factor + residual in plain float: for heads, and where
// bfloat16 is not wanted. Shapes as in gemm.cu, without limits to them. A block
// has 64 × 64 of y, a thread 4 × 4.
#include "device.cuh"

constexpr int edge = 64, slab = 16;

// fetch_slab brings 64 rows × 16 columns, transposed, zeros beyond the edges.
__device__ __forceinline__ void fetch_slab(float (*tile)[edge + 4], const float *from, int first, int rows, int k, int depth) {
	for (int i = threadIdx.x; i < edge * slab; i += 256) {
		int row = i / slab, column = i % slab;
		bool there = first + row < rows && k + column < depth;
		tile[column][row] = there ? from[(size_t)(first + row) * depth + k + column] : 0;
	}
}

extern "C" __global__ void __launch_bounds__(256) gemm_f32(float *y, const float *x, const float *w, const float *bias, const float *factor,
                                                           const float *residual, int activation, int rows, int columns, int depth) {
	__shared__ float xs[slab][edge + 4], ws[slab][edge + 4];
	int first_row = blockIdx.y * edge, first_column = blockIdx.x * edge, row = threadIdx.x / 16 * 4, column = threadIdx.x % 16 * 4;
	float sums[4][4] = {};
	for (int k = 0; k < depth; k += slab) {
		fetch_slab(xs, x, first_row, rows, k, depth);
		fetch_slab(ws, w, first_column, columns, k, depth);
		__syncthreads();
#pragma unroll
		for (int d = 0; d < slab; d++)
#pragma unroll
			for (int i = 0; i < 4; i++)
#pragma unroll
				for (int j = 0; j < 4; j++) sums[i][j] += xs[d][row + i] * ws[d][column + j];
		__syncthreads();
	}
	for (int i = 0; i < 4; i++)
		for (int j = 0; j < 4; j++) {
			int r = first_row + row + i, c = first_column + column + j;
			if (r >= rows || c >= columns) continue;
			size_t at = (size_t)r * columns + c;
			y[at] = activate(sums[i][j] + bias[c], activation) * (factor ? factor[at] : 1) + (residual ? residual[at] : 0);
		}
}
