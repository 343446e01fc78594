// y = activation(x·wᵀ + bias) ∘ factor + residual on tensor cores: x is rows ×
// depth, w is columns × depth, y, factor and residual (which may be null) are
// rows × columns, all bfloat16; bias is float, and so are the sums. depth is a
// multiple of 8, columns an even number. y may be factor or residual.
//
// Both operands stream through a ring of tiles in shared memory, filled by
// copies that run ahead; load_matrices hands them to the tensor cores. Edges
// are zeros that the copies fill in.
#include "gemm.cuh"

// multiply_tile adds the product of two tiles, as far as it is this warp's.
template <class S> __device__ __forceinline__ void multiply_tile(Sums<S> &sums, const uint4 *x, const uint4 *w, int row, int column) {
	int lane = threadIdx.x % 32;
#pragma unroll
	for (int part = 0; part < S::parts; part += 2) {
		uint32_t a[S::row_tiles][4], b[S::column_tiles][2];
#pragma unroll
		for (int i = 0; i < S::row_tiles; i++) load_matrices(a[i], x + place<S::parts>(row + 16 * i + lane % 16, part + lane / 16));
#pragma unroll
		for (int j = 0; j < S::column_tiles; j += 2) {
			uint32_t r[4];
			load_matrices(r, w + place<S::parts>(column + 8 * j + lane % 8 + lane / 16 * 8, part + lane / 8 % 2));
			b[j][0] = r[0], b[j][1] = r[1], b[j + 1][0] = r[2], b[j + 1][1] = r[3];
		}
#pragma unroll
		for (int i = 0; i < S::row_tiles; i++)
#pragma unroll
			for (int j = 0; j < S::column_tiles; j++) multiply_bf16(sums.d[i][j], a[i], b[j]);
	}
}

template <class S>
__device__ __forceinline__ void gemm(bf16 *y, const bf16 *x, const bf16 *w, const float *bias, const bf16 *factor, const bf16 *residual,
                                     int activation, int rows, int columns, int depth) {
	DYNAMIC_SHARED(uint4, ring);
	constexpr int x_parts = S::rows * S::parts, stage = (S::rows + S::columns) * S::parts;
	int first_row = blockIdx.y * S::rows, first_column = blockIdx.x * S::columns, steps = (depth + S::depth - 1) / S::depth;
	auto fetch_step = [&](int step) {
		uint4 *at = ring + step % S::stages * stage;
		if (step < steps) {
			fetch<S, S::rows>(at, x, first_row, rows, step * S::depth, depth);
			fetch<S, S::columns>(at + x_parts, w, first_column, columns, step * S::depth, depth);
		}
		commit_copies();
	};
	for (int step = 0; step < S::stages - 1; step++) fetch_step(step);

	int warp = threadIdx.x / 32, row = warp / (S::columns / S::warp_columns) * S::warp_rows;
	int column = warp % (S::columns / S::warp_columns) * S::warp_columns;
	Sums<S> sums = {};
	for (int step = 0; step < steps; step++) {
		wait_copies<S::stages - 2>();
		__syncthreads(); // the step is there for all, and all have left the one before, whose place is free
		fetch_step(step + S::stages - 1);
		const uint4 *at = ring + step % S::stages * stage;
		multiply_tile<S>(sums, at, at + x_parts, row, column);
	}

	wait_copies<0>();
	__syncthreads(); // the ring becomes the warps' stages
	float *own = (float *)ring + warp * 16 * (S::warp_columns + 8);
	write<S>({y, bias, factor, residual, activation, rows, columns}, sums, own, first_row + row, first_column + column);
}

// 1: for many rows. 48 KiB of dynamic shared memory, 256 threads.
extern "C" __global__ void __launch_bounds__(256) gemm_1(bf16 *y, const bf16 *x, const bf16 *w, const float *bias, const bf16 *factor,
                                                         const bf16 *residual, int activation, int rows, int columns, int depth) {
	gemm<Shape<128, 128, 64, 32, 32, 3>>(y, x, w, bias, factor, residual, activation, rows, columns, depth);
}

// 2: for the few rows of a query: smaller tiles, so that more blocks share the
// weights, and a deeper ring, as there is little else to hide latency behind.
// 48 KiB, 128 threads.
extern "C" __global__ void __launch_bounds__(128) gemm_2(bf16 *y, const bf16 *x, const bf16 *w, const float *bias, const bf16 *factor,
                                                         const bf16 *residual, int activation, int rows, int columns, int depth) {
	gemm<Shape<32, 64, 16, 32, 64, 4>>(y, x, w, bias, factor, residual, activation, rows, columns, depth);
}
