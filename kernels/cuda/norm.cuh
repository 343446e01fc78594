// A row of up to 1024 numbers in the registers of a warp, and its normalisation.
#pragma once
#include "device.cuh"

constexpr int widest_row = 1024; // a multiple of 64

struct Row {
	float2 v[widest_row / 64]; // pair i of a lane begins at column 64i + 2·lane
};

// each calls f(pair, column) for the pairs of a row that this lane has.
template <class F> __device__ __forceinline__ void each(int width, F f) {
#pragma unroll
	for (int i = 0; i < widest_row / 64; i++) {
		int column = 64 * i + 2 * (threadIdx.x % 32);
		if (column < width) f(i, column);
	}
}

__device__ __forceinline__ uint32_t pair_at(const bf16 *row, int column) { return *(const uint32_t *)(row + column); }

// normalise writes (x − mean)/√(variance + epsilon)·gain + bias. The variance is
// taken in a second pass over the registers: a mean far from zero costs nothing.
__device__ __forceinline__ void normalise(bf16 *out, Row &x, const float *gain, const float *bias, float epsilon, int width) {
	float sum = 0, squares = 0;
	each(width, [&](int i, int) { sum += x.v[i].x + x.v[i].y; });
	float mean = warp_sum(sum) / width;
	each(width, [&](int i, int) {
		float a = x.v[i].x - mean, b = x.v[i].y - mean;
		squares += a * a + b * b;
	});
	float scale = rsqrtf(warp_sum(squares) / width + epsilon);
	each(width, [&](int i, int column) {
		float2 g = *(const float2 *)(gain + column), b = *(const float2 *)(bias + column);
		*(uint32_t *)(out + column) = pack_bf16((x.v[i].x - mean) * scale * g.x + b.x, (x.v[i].y - mean) * scale * g.y + b.y);
	});
}
