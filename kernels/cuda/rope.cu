// Rotary embedding, in place: the numbers k and k + half of each head of a token's
// query and key are turned by an angle of the token's position (Su et al.,
// arXiv:2104.09864). cos and sin have half numbers a position. A row of qkv is
// as in attention.cu, heads × size each of query, key and value; half is even,
// and 2·half may be less than size. A block has one token.
#include "device.cuh"

extern "C" __global__ void __launch_bounds__(128) rope(bf16 *qkv, const int *positions, const float *cos, const float *sin, int heads, int size, int half) {
	bf16 *row = qkv + (size_t)blockIdx.x * 3 * heads * size;
	const float *c = cos + (size_t)positions[blockIdx.x] * half, *s = sin + (size_t)positions[blockIdx.x] * half;
	for (int i = threadIdx.x; i < heads * half; i += 128) { // two planes of a head, of a query or a key
		int head = 2 * i / half, k = 2 * i % half;
		uint32_t *a = (uint32_t *)(row + head * size + k), *b = (uint32_t *)(row + head * size + k + half);
		float2 cosine = *(const float2 *)(c + k), sine = *(const float2 *)(s + k);
		float ax = low_bf16(*a), ay = high_bf16(*a), bx = low_bf16(*b), by = high_bf16(*b);
		*a = pack_bf16(ax * cosine.x - bx * sine.x, ay * cosine.y - by * sine.y);
		*b = pack_bf16(bx * cosine.x + ax * sine.x, by * cosine.y + ay * sine.y);
	}
}
