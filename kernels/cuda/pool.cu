// Pooling: the mean of a sequence's tokens, or its first or last, scaled to unit
// length if asked; a zero vector stays zero. A block has one sequence; width is
// even, 1024 at most. lengths (may be null) takes the length before scaling.
#include "norm.cuh"

enum Pooling { mean_of_tokens, first_token, last_token };

__device__ __forceinline__ float block_sum(float v, float *parts) {
	v = warp_sum(v);
	if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = v;
	__syncthreads();
	return parts[0] + parts[1] + parts[2] + parts[3];
}

extern "C" __global__ void __launch_bounds__(128) pool(float *out, float *lengths, const bf16 *x, const int *offsets, int pooling, int unit, int width) {
	__shared__ float parts[4];
	int begin = offsets[blockIdx.x], end = offsets[blockIdx.x + 1], count = end - begin;
	if (pooling == first_token) end = begin + 1;
	if (pooling == last_token) begin = end - 1;
	float2 v[widest_row / 256] = {};
	float squares = 0;
#pragma unroll
	for (int i = 0; i < widest_row / 256; i++) {
		int column = 256 * i + 2 * threadIdx.x;
		if (column >= width) continue;
		for (int token = begin; token < end; token++) {
			uint32_t pair = pair_at(x + (size_t)token * width, column);
			v[i].x += low_bf16(pair), v[i].y += high_bf16(pair);
		}
		if (pooling == mean_of_tokens) v[i].x /= count, v[i].y /= count;
		squares += v[i].x * v[i].x + v[i].y * v[i].y;
	}
	float length = sqrtf(block_sum(squares, parts)), scale = unit && length > 0 ? 1 / length : 1;
	if (lengths && threadIdx.x == 0) lengths[blockIdx.x] = length;
#pragma unroll
	for (int i = 0; i < widest_row / 256; i++) {
		int column = 256 * i + 2 * threadIdx.x;
		if (column < width) *(float2 *)(out + (size_t)blockIdx.x * width + column) = make_float2(v[i].x * scale, v[i].y * scale);
	}
}
