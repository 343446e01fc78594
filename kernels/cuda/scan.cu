// Scan of 1-bit codes: the k best estimates of each query's inner product with
// the rows that it may see. A row is a bit a dimension, set for +, and a
// factor; a query is 4 bits a dimension, q[d] = low + step·u[d], as bit planes
// of u. The estimate is factor · Σ ±q[d], which counting bits gives:
//
//	Σ ±q[d] = 2·(low·|c| + step·Σⱼ 2ʲ·|c & plane j|) − Σ q[d]
//
// (Gao and Long, SIGMOD 2024, section 3.3.) Codes lie in blocks of 32 rows, word
// by word, so that a warp reads 128 bytes at a time: word w of row r is
// codes[(r/32·words + w)·32 + r%32]. allowed is as in search.cu.
#include "top.cuh"

constexpr int scan_queries = 16;

// Query is what the bits do not say; total is Σ q[d].
struct Query {
	float low, step, total;
};

// estimate is the sum of a row's code, held in registers or cache by the caller.
__device__ __forceinline__ float estimate(const uint32_t *codes, const uint32_t *planes, int words, Query q) {
	int set = 0, weighted = 0;
	for (int w = 0; w < words; w++) {
		uint32_t c = codes[32 * w];
		set += __popc(c);
#pragma unroll
		for (int j = 0; j < 4; j++) weighted += __popc(c & planes[4 * w + j]) << j;
	}
	return 2 * (q.low * set + q.step * weighted) - q.total;
}

// planes holds four words for each word of a code, a query after the other;
// queries three floats each. Dynamic shared memory: 16·words bytes a query, a
// Top a query. gridDim.y is the number of groups of 16 queries.
extern "C" __global__ void __launch_bounds__(256) scan(key *out, const uint32_t *codes, const float *factors, const uint32_t *planes,
                                                       const float *queries, const uint32_t *allowed, int words, int bitmap_words, int count,
                                                       int query_count, int k) {
	DYNAMIC_SHARED(Top, tops);
	__shared__ int full;
	uint32_t *bits = (uint32_t *)(tops + scan_queries);
	int first_query = blockIdx.y * scan_queries, here = min(scan_queries, query_count - first_query);
	for (int i = threadIdx.x; i < here * words * 4; i += 256) bits[i] = planes[(size_t)first_query * words * 4 + i];
	for (int q = threadIdx.x; q < scan_queries; q += 256) clear(tops[q]);
	__syncthreads();
	for (long long first = blockIdx.x * 256ll; first < count; first += gridDim.x * 256ll) {
		unsigned row = first + threadIdx.x, pending = row < count ? (1u << here) - 1 : 0;
		const uint32_t *code = codes + (size_t)(row / 32) * words * 32 + row % 32;
		do {
			for (int q = 0; q < here; q++) {
				if (!(pending >> q & 1)) continue;
				pending &= ~(1u << q);
				if (!(allowed[(size_t)(first_query + q) * bitmap_words + row / 32] >> row % 32 & 1)) continue;
				const float *its = queries + 3 * (first_query + q);
				float sum = estimate(code, bits + q * words * 4, words, {its[0], its[1], its[2]});
				key candidate = make_key(sum * factors[row], row);
				if (candidate > tops[q].least && !offer(tops[q], candidate)) pending |= 1u << q;
			}
		} while (make_room(tops, here, k, &full));
	}
	for (int q = threadIdx.x / 32; q < here; q += 8)
		write_top(out + ((size_t)(first_query + q) * gridDim.x + blockIdx.x) * k, tops[q], k);
}
