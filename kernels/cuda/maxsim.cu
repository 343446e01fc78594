// Late interaction: for every token of a query the best inner product with any
// token of a passage, and the mean of these (Khattab and Zaharia, SIGIR 2020);
// a best match counts at least −1. A passage's token is a code row: a bit a
// dimension, set for +, then a float factor; its inner product with q is
// factor · Σ ±q[d] (Gao and Long, SIGMOD 2024). dims is a multiple of 32, so
// rows are whole words: dims/32 of bits and one of the factor.
//
// A block has one passage, a thread a token of it; the query, in dynamic shared
// memory with one word a token more, is read by all threads at once.
#include "device.cuh"

extern "C" __global__ void __launch_bounds__(128) maxsim(float *scores, const float *query, int query_tokens, int dims, const uint32_t *codes,
                                                         const int *offsets) {
	DYNAMIC_SHARED(float, q);
	int *best = (int *)(q + query_tokens * dims); // bits of 1 + the best product: they order as the numbers do
	for (int i = threadIdx.x; i < query_tokens * dims; i += 128) q[i] = query[i];
	for (int i = threadIdx.x; i < query_tokens; i += 128) best[i] = 0;
	__syncthreads();
	int words = dims / 32;
	for (int token = offsets[blockIdx.x] + threadIdx.x; token < offsets[blockIdx.x + 1]; token += 128) {
		const uint32_t *row = codes + (size_t)token * (words + 1);
		float factor = __uint_as_float(row[words]);
		for (int t = 0; t < query_tokens; t++) {
			float sum = 0;
			for (int w = 0; w < words; w++)
				for (int b = 0; b < 32; b++) {
					float x = q[t * dims + 32 * w + b];
					sum += row[w] >> b & 1 ? x : -x;
				}
			atomicMax(best + t, __float_as_int(fmaxf(0, 1 + sum * factor)));
		}
	}
	__syncthreads();
	if (threadIdx.x >= 32) return;
	float sum = 0;
	for (int t = threadIdx.x; t < query_tokens; t += 32) sum += __int_as_float(best[t]) - 1;
	sum = warp_sum(sum);
	if (threadIdx.x == 0) scores[blockIdx.x] = query_tokens ? sum / query_tokens : -1;
}
