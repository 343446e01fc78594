// y = activation(x·wᵀ + bias) + residual on tensor cores: x is rows × depth, w is
// columns × depth, y and residual (which may be null) are rows × columns, all
// bfloat16; bias is float, and so are the sums. depth is a multiple of 8,
// columns an even number.
//
// Both operands stream through a ring of tiles in shared memory, filled by
// copies that run ahead; load_matrices hands them to the tensor cores. Edges
// are zeros that the copies fill in.
#include "device.cuh"

// Shape of a block: its tile of y, that of one warp, and the ring.
template <int Rows, int Columns, int WarpRows, int WarpColumns, int Depth, int Stages> struct Shape {
	static constexpr int rows = Rows, columns = Columns, depth = Depth, stages = Stages;
	static constexpr int warp_rows = WarpRows, warp_columns = WarpColumns;
	static constexpr int parts = depth / 8; // of 16 bytes in a row of a tile
	static constexpr int threads = Rows / WarpRows * (Columns / WarpColumns) * 32;
	static constexpr int row_tiles = WarpRows / 16, column_tiles = WarpColumns / 8;
};

// fetch starts the copies of `count` rows of a tile that begins at column k.
template <class S, int count> __device__ __forceinline__ void fetch(uint4 *tile, const bf16 *from, int first, int rows, int k, int depth) {
	for (int i = threadIdx.x; i < count * S::parts; i += S::threads) {
		int row = i / S::parts, part = i % S::parts, column = k + 8 * part;
		bool there = first + row < rows && column < depth;
		copy_async(tile + place<S::parts>(row, part), from + (there ? (size_t)(first + row) * depth + column : 0), there ? 16 : 0);
	}
}

template <class S> struct Sums {
	float d[S::row_tiles][S::column_tiles][4];
};

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

// Output is what is made of the sums.
struct Output {
	bf16 *y;
	const float *bias;
	const bf16 *residual;
	int activation, rows, columns;
};

// finish writes two neighbours of y.
__device__ __forceinline__ void finish(const Output &out, int row, int column, float2 v) {
	size_t at = (size_t)row * out.columns + column;
	v.x = activate(v.x + out.bias[column], out.activation);
	v.y = activate(v.y + out.bias[column + 1], out.activation);
	if (out.residual) {
		uint32_t pair = *(const uint32_t *)(out.residual + at);
		v.x += low_bf16(pair);
		v.y += high_bf16(pair);
	}
	*(uint32_t *)(out.y + at) = pack_bf16(v.x, v.y);
}

// write takes a warp's sums through its own part of shared memory, 16 rows at a
// time, so that whole rows are written, by a loop that is not unrolled.
template <class S> __device__ __forceinline__ void write(const Output &out, const Sums<S> &sums, float *stage, int first_row, int first_column) {
	constexpr int width = S::warp_columns, padded = width + 8;
	int lane = threadIdx.x % 32;
#pragma unroll
	for (int i = 0; i < S::row_tiles; i++) {
#pragma unroll
		for (int j = 0; j < S::column_tiles; j++)
#pragma unroll
			for (int half = 0; half < 2; half++)
				*(float2 *)(stage + (lane / 4 + 8 * half) * padded + 8 * j + lane % 4 * 2) =
					make_float2(sums.d[i][j][2 * half], sums.d[i][j][2 * half + 1]);
		__syncwarp();
#pragma unroll 1
		for (int at = 2 * lane; at < 16 * width; at += 64) {
			int row = first_row + 16 * i + at / width, column = first_column + at % width;
			if (row < out.rows && column < out.columns) finish(out, row, column, *(const float2 *)(stage + at / width * padded + at % width));
		}
		__syncwarp();
	}
}

template <class S>
__device__ __forceinline__ void gemm(bf16 *y, const bf16 *x, const bf16 *w, const float *bias, const bf16 *residual, int activation, int rows,
                                     int columns, int depth) {
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
	write<S>({y, bias, residual, activation, rows, columns}, sums, own, first_row + row, first_column + column);
}

// 1: for many rows. 48 KiB of dynamic shared memory, 256 threads.
extern "C" __global__ void __launch_bounds__(256) gemm_1(bf16 *y, const bf16 *x, const bf16 *w, const float *bias, const bf16 *residual,
                                                         int activation, int rows, int columns, int depth) {
	gemm<Shape<128, 128, 64, 32, 32, 3>>(y, x, w, bias, residual, activation, rows, columns, depth);
}

// 2: for the few rows of a query: smaller tiles, so that more blocks share the
// weights, and a deeper ring, as there is little else to hide latency behind.
// 48 KiB, 128 threads.
extern "C" __global__ void __launch_bounds__(128) gemm_2(bf16 *y, const bf16 *x, const bf16 *w, const float *bias, const bf16 *residual,
                                                         int activation, int rows, int columns, int depth) {
	gemm<Shape<32, 64, 16, 32, 64, 4>>(y, x, w, bias, residual, activation, rows, columns, depth);
}
