// What matrix products have in common: tiles that copies fill, and what is made
// of the sums. See gemm.cu for the product, and gemm_90a.cu for compute 9.0.
#pragma once
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

// Output is what is made of the sums.
struct Output {
	bf16 *y;
	const float *bias;
	const bf16 *factor, *residual;
	int activation, rows, columns;
};

// finish writes two neighbours of y.
__device__ __forceinline__ void finish(const Output &out, int row, int column, float2 v) {
	size_t at = (size_t)row * out.columns + column;
	v.x = activate(v.x + out.bias[column], out.activation);
	v.y = activate(v.y + out.bias[column + 1], out.activation);
	if (out.factor) {
		uint32_t pair = *(const uint32_t *)(out.factor + at);
		v.x *= low_bf16(pair);
		v.y *= high_bf16(pair);
	}
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
