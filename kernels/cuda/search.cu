// Filtered exact search: the k best inner products of each query with the rows
// that it may see. Vectors are rows of IEEE halves (search_f16_*) or of bytes
// with a scale a row (search_i8_*); products are those of tensor cores.
//
// A block passes over every gridDim.x-th tile of 128 rows for a group of
// queries, which stay in shared memory, and keeps the best k of each. Scores
// never reach memory; merge joins the blocks' answers. allowed has a bit a row,
// words 32-bit words a query; where words is 0 all queries share one bitmap,
// which has as many words as it takes.
#include "top.cuh"

constexpr int search_rows = 128, search_parts = 8, search_stages = 3; // a stage is 128 rows × 128 bytes

// Halves and Bytes are what sets the two kinds of vectors apart.
struct Halves {
	typedef float sum;
	static __device__ __forceinline__ void multiply(float (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]) { multiply_f16(d, a, b); }
};
struct Bytes {
	typedef int sum;
	static __device__ __forceinline__ void multiply(int (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]) { multiply_i8(d, a, b); }
};

// Vectors are the operands: rows and queries of `parts` times 16 bytes, scales of bytes.
struct Vectors {
	const uint4 *rows, *queries;
	const float *row_scales, *query_scales;
	int count, query_count, parts;
};

// fetch_queries starts the copies of a group of queries, zeros after the last.
// Part p of a query lies at part p%8 of slice p/8: slices are laid out as stages are.
template <int group> __device__ __forceinline__ void fetch_queries(uint4 *to, const Vectors &v, int first, int padded) {
	for (int i = threadIdx.x; i < group * padded; i += 256) {
		int q = i / padded, part = i % padded;
		bool there = first + q < v.query_count && part < v.parts;
		copy_async(to + part / search_parts * group * search_parts + place<search_parts>(q, part % search_parts),
		           v.queries + (there ? (size_t)(first + q) * v.parts + part : 0), there ? 16 : 0);
	}
}

// fetch_rows starts the copies of 128 bytes of 128 rows, from a part on.
__device__ __forceinline__ void fetch_rows(uint4 *to, const Vectors &v, size_t first, int first_part) {
	for (int i = threadIdx.x; i < search_rows * search_parts; i += 256) {
		int row = i / search_parts, part = first_part + i % search_parts;
		bool there = first + row < v.count && part < v.parts;
		copy_async(to + place<search_parts>(row, i % search_parts), v.rows + (there ? (first + row) * v.parts + part : 0), there ? 16 : 0);
	}
}

// multiply_stage multiplies a warp's 16 rows with the queries.
template <class N, int group>
__device__ __forceinline__ void multiply_stage(typename N::sum (&sums)[group / 8][4], const uint4 *rows, const uint4 *queries) {
	int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
#pragma unroll
	for (int part = 0; part < search_parts; part += 2) {
		uint32_t a[4];
		load_matrices(a, rows + place<search_parts>(16 * warp + lane % 16, part + lane / 16));
#pragma unroll
		for (int j = 0; j < group / 8; j += 2) {
			uint32_t b[4]; // a group of 8 is loaded twice over
			load_matrices(b, queries + place<search_parts>((8 * j + lane % 8 + lane / 16 * 8) % group, part + lane / 8 % 2));
			N::multiply(sums[j], a, {b[0], b[1]});
			if (j + 1 < group / 8) N::multiply(sums[(j + 1) % (group / 8)], a, {b[2], b[3]});
		}
	}
}

// offer_sums offers what is allowed and good enough of a lane's sums, of which
// bit i of pending stands for sums[i / 4][i % 4]. What finds no room stays pending.
template <class N, int group>
__device__ __forceinline__ unsigned offer_sums(unsigned pending, const typename N::sum (&sums)[group / 8][4], const Vectors &v, Top *tops,
                                               const uint32_t *allowed, int words, unsigned first_row, int first_query) {
	int lane = threadIdx.x % 32;
#pragma unroll
	for (int i = 0; i < group / 2; i++) {
		if (!(pending >> i & 1)) continue;
		pending &= ~(1u << i);
		unsigned row = first_row + lane / 4 + i / 2 % 2 * 8;
		int q = i / 4 * 8 + lane % 4 * 2 + i % 2;
		if (row >= v.count || first_query + q >= v.query_count) continue;
		if (!(allowed[(size_t)(first_query + q) * words + row / 32] >> row % 32 & 1)) continue;
		float score = sums[i / 4][i % 4];
		if (v.row_scales) score *= v.row_scales[row] * v.query_scales[first_query + q];
		key candidate = make_key(score, row);
		if (candidate > tops[q].least && !offer(tops[q], candidate)) pending |= 1u << i;
	}
	return pending;
}

template <class N, int group>
__device__ __forceinline__ void search(key *out, const Vectors &v, const uint32_t *allowed, int words, int k) {
	DYNAMIC_SHARED(uint4, queries);
	constexpr int stage = search_rows * search_parts;
	int steps = (v.parts + search_parts - 1) / search_parts, first_query = blockIdx.y * group;
	uint4 *ring = queries + group * steps * search_parts;
	Top *tops = (Top *)(ring + search_stages * stage);
	int *full = (int *)(tops + group);
	int tiles = (v.count + search_rows - 1) / search_rows, mine = blockIdx.x < tiles ? (tiles - 1 - blockIdx.x) / gridDim.x + 1 : 0;
	auto first_row = [&](int tile) { return (blockIdx.x + tile * gridDim.x) * search_rows; };
	auto fetch = [&](int s) { // step s%steps of this block's tile s/steps
		if (s < mine * steps) fetch_rows(ring + s % search_stages * stage, v, first_row(s / steps), s % steps * search_parts);
		commit_copies();
	};

	fetch_queries<group>(queries, v, first_query, steps * search_parts);
	for (int q = threadIdx.x; q < group; q += 256) clear(tops[q]);
	for (int s = 0; s < search_stages - 1; s++) fetch(s);
	for (int tile = 0, s = 0; tile < mine; tile++) {
		typename N::sum sums[group / 8][4] = {};
		for (int step = 0; step < steps; step++, s++) {
			wait_copies<search_stages - 2>();
			__syncthreads(); // the step is there for all, and all have left the one before
			fetch(s + search_stages - 1);
			multiply_stage<N, group>(sums, ring + s % search_stages * stage, queries + step * group * search_parts);
		}
		unsigned pending = ~0u;
		do {
			pending = offer_sums<N, group>(pending, sums, v, tops, allowed, words, first_row(tile) + threadIdx.x / 32 * 16, first_query);
		} while (make_room(tops, group, k, full));
	}

	wait_copies<0>();
	__syncthreads();
	for (int q = threadIdx.x / 32; q < group && first_query + q < v.query_count; q += 8)
		write_top(out + ((size_t)(first_query + q) * gridDim.x + blockIdx.x) * k, tops[q], k);
}

// For many queries at once, and for few. Dynamic shared memory: a group of
// queries padded to multiples of 128 bytes, 48 KiB, a Top a query, and 16 bytes.
extern "C" __global__ void __launch_bounds__(256) search_f16_64(key *out, const uint4 *rows, const uint4 *queries, const uint32_t *allowed,
                                                                int words, int count, int query_count, int parts, int k) {
	search<Halves, 64>(out, {rows, queries, nullptr, nullptr, count, query_count, parts}, allowed, words, k);
}

extern "C" __global__ void __launch_bounds__(256) search_f16_8(key *out, const uint4 *rows, const uint4 *queries, const uint32_t *allowed,
                                                               int words, int count, int query_count, int parts, int k) {
	search<Halves, 8>(out, {rows, queries, nullptr, nullptr, count, query_count, parts}, allowed, words, k);
}

extern "C" __global__ void __launch_bounds__(256) search_i8_64(key *out, const uint4 *rows, const float *row_scales, const uint4 *queries,
                                                               const float *query_scales, const uint32_t *allowed, int words, int count,
                                                               int query_count, int parts, int k) {
	search<Bytes, 64>(out, {rows, queries, row_scales, query_scales, count, query_count, parts}, allowed, words, k);
}

extern "C" __global__ void __launch_bounds__(256) search_i8_8(key *out, const uint4 *rows, const float *row_scales, const uint4 *queries,
                                                              const float *query_scales, const uint32_t *allowed, int words, int count,
                                                              int query_count, int parts, int k) {
	search<Bytes, 8>(out, {rows, queries, row_scales, query_scales, count, query_count, parts}, allowed, words, k);
}
