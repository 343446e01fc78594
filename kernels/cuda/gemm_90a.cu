// The product of gemm.cu on the tensor cores of compute 9.0, with the same
// contract. Four warps have 64 rows; a step is 64 numbers of depth, so that a
// row of a tile is 128 bytes, the widest that the hardware permutes.
//
// While the products of a step run, the copies of the next one do. A place in
// the ring is free when the products of its step are done for every warp: they
// are waited for a step later, and the barrier after that says it to all. So
// copies run two places behind the ring's length ahead.
#include "gemm.cuh"
#include "group.cuh"

template <class S>
__device__ __forceinline__ void gemm_grouped(bf16 *y, const bf16 *x, const bf16 *w, const float *bias, const bf16 *factor, const bf16 *residual,
                                             int activation, int rows, int columns, int depth) {
	static_assert(S::depth == 64 && S::warp_rows == 16 && S::warp_columns == S::columns, "four warps have 64 rows and all columns");
	DYNAMIC_SHARED(uint4, ring);
	constexpr int x_parts = S::rows * S::parts, stage = (S::rows + S::columns) * S::parts, ahead = S::stages - 2;
	int first_row = blockIdx.y * S::rows, first_column = blockIdx.x * S::columns, steps = (depth + S::depth - 1) / S::depth;
	auto fetch_step = [&](int step) {
		uint4 *at = ring + step % S::stages * stage;
		if (step < steps) {
			fetch<S, S::rows>(at, x, first_row, rows, step * S::depth, depth);
			fetch<S, S::columns>(at + x_parts, w, first_column, columns, step * S::depth, depth);
		}
		commit_copies();
	};
	for (int step = 0; step < ahead; step++) fetch_step(step);

	int warp = threadIdx.x / 32;
	Sums<S> sums = {};
	for (int step = 0; step < steps; step++) {
		wait_copies<ahead - 1>();
		publish();
		__syncthreads(); // the step is there for all, and the products before the last are done for all
		const uint4 *xs = ring + step % S::stages * stage + warp / 4 * 64 * S::parts, *ws = ring + step % S::stages * stage + x_parts;
		begin_products();
#pragma unroll
		for (int part = 0; part < S::parts; part += 2) multiply_group(sums.d[0], describe(xs, part), describe(ws, part));
		commit_products();
		fetch_step(step + ahead);
		wait_products<1>();
	}

	wait_products<0>();
	wait_copies<0>();
	__syncthreads(); // the ring becomes the warps' stages
	float *own = (float *)ring + warp * 16 * (S::warp_columns + 8);
	write<S>({y, bias, factor, residual, activation, rows, columns}, sums, own, first_row + 16 * warp, first_column);
}

// 3: for many rows. 96 KiB of dynamic shared memory, 256 threads; two blocks a
// processor, so that one computes where the other waits.
extern "C" __global__ void __launch_bounds__(256) gemm_3(bf16 *y, const bf16 *x, const bf16 *w, const float *bias, const bf16 *factor,
                                                         const bf16 *residual, int activation, int rows, int columns, int depth) {
	gemm_grouped<Shape<128, 128, 16, 128, 64, 3>>(y, x, w, bias, factor, residual, activation, rows, columns, depth);
}

// 4: for few rows. 80 KiB, 128 threads.
extern "C" __global__ void __launch_bounds__(128) gemm_4(bf16 *y, const bf16 *x, const bf16 *w, const float *bias, const bf16 *factor,
                                                         const bf16 *residual, int activation, int rows, int columns, int depth) {
	gemm_grouped<Shape<64, 64, 16, 64, 64, 5>>(y, x, w, bias, factor, residual, activation, rows, columns, depth);
}
