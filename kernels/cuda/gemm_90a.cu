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
#include "tensor.cuh"

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

// Operands is what x and w are to the Tensor Memory Accelerator: boxes are as
// many rows as a tile has, and 64 columns.
struct Operands {
	TensorMap x, w;
};

// Pipeline is a ring of tiles in shared memory, between one warp that has them
// filled and the others, which read them. A place is filled when the bytes of both
// tiles are there, and empty when each reading warp has arrived.
template <class S> struct Pipeline {
	static constexpr int x_parts = S::rows * S::parts, stage = (S::rows + S::columns) * S::parts, readers = S::threads / 32;
	uint4 *ring;
	Barrier *filled, *empty;

	__device__ explicit Pipeline(uint4 *memory) : ring(memory), filled((Barrier *)(memory + S::stages * stage)), empty(filled + S::stages) {}
	__device__ uint4 *place(int step) const { return ring + step % S::stages * stage; }

	// open is one thread's; a barrier of the block comes after it.
	__device__ void open() const {
		for (int i = 0; i < S::stages; i++) {
			start(filled + i, 1);
			start(empty + i, readers);
		}
		publish();
	}

	// fill is one thread's.
	__device__ void fill(const Operands &from, int first_row, int first_column, int steps) const {
		for (int step = 0; step < steps; step++) {
			int i = step % S::stages;
			wait(empty + i, step / S::stages % 2 ^ 1);
			arrive_expecting(filled + i, stage * sizeof(uint4));
			copy_tile(place(step), &from.x, first_row, step * S::depth, filled + i);
			copy_tile(place(step) + x_parts, &from.w, first_column, step * S::depth, filled + i);
		}
	}

	// multiply is a group's of four warps, for 64 rows of its tile from `row` on.
	__device__ void multiply(Sums<S> &sums, int row, int steps) const {
		for (int step = 0; step < steps; step++) {
			wait(filled + step % S::stages, step / S::stages % 2);
			const uint4 *xs = place(step) + row * S::parts, *ws = place(step) + x_parts;
			begin_products();
#pragma unroll
			for (int part = 0; part < S::parts; part += 2) multiply_group(sums.d[0], describe(xs, part), describe(ws, part));
			commit_products();
			wait_products<1>(); // those of the step before
			if (step > 0) leave(step - 1);
		}
		wait_products<0>();
	}

	// leave says that the warp has read a place.
	__device__ void leave(int step) const {
		__syncwarp();
		if (threadIdx.x % 32 == 0) arrive(empty + step % S::stages);
	}
};

// 5: for many rows, as 3, of which it has the tile, the order of the sums and so
// every bit. The copies are the accelerator's, and one warp more asks for them: so
// the others have no addresses to make and no barrier of the block in their
// loop. 96 KiB and 48 bytes of dynamic shared memory, 288 threads.
extern "C" __global__ void __launch_bounds__(288, 2) gemm_5(bf16 *y, const float *bias, const bf16 *factor, const bf16 *residual, int activation,
                                                            int rows, int columns, int depth, const __grid_constant__ Operands from) {
	using S = Shape<128, 128, 16, 128, 64, 3>;
	DYNAMIC_SHARED(uint4, memory);
	Pipeline<S> pipeline(memory);
	int warp = threadIdx.x / 32, first_row = blockIdx.y * S::rows, first_column = blockIdx.x * S::columns;
	int steps = (depth + S::depth - 1) / S::depth;
	bool fills = threadIdx.x == S::threads;
	if (fills) {
		prefetch(&from.x);
		prefetch(&from.w);
		pipeline.open();
	}
	__syncthreads();

	Sums<S> sums = {};
	if (fills) pipeline.fill(from, first_row, first_column, steps);
	else if (warp < pipeline.readers) pipeline.multiply(sums, warp / 4 * 64, steps);
	__syncwarp();
	__syncthreads(); // the ring becomes the warps' stages
	if (warp == pipeline.readers) return;
	float *own = (float *)memory + warp * 16 * (S::warp_columns + 8);
	write<S>({y, bias, factor, residual, activation, rows, columns}, sums, own, first_row + 16 * warp, first_column);
}
