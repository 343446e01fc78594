// Embedding: the rows of a token's id, position and type are gathered and
// summed, and the sum is normalised (Ba et al., arXiv:1607.06450). A warp has
// one token; tables that a model lacks are null. width is even, 1024 at most.
#include "norm.cuh"

__device__ __forceinline__ void add_row(Row &x, const bf16 *table, int row, int width) {
	const bf16 *from = table + (size_t)row * width;
	each(width, [&](int i, int column) {
		uint32_t pair = pair_at(from, column);
		x.v[i].x += low_bf16(pair);
		x.v[i].y += high_bf16(pair);
	});
}

extern "C" __global__ void __launch_bounds__(128) embed(bf16 *out, const int *ids, const int *positions, const int *types, const bf16 *word,
                                                        const bf16 *position, const bf16 *type, const float *gain, const float *bias,
                                                        float epsilon, int tokens, int width) {
	int token = blockIdx.x * 4 + threadIdx.x / 32;
	if (token >= tokens) return;
	Row x = {};
	add_row(x, word, ids[token], width);
	if (position) add_row(x, position, positions[token], width);
	if (type) add_row(x, type, types[token], width);
	normalise(out + (size_t)token * width, x, gain, bias, epsilon, width);
}
