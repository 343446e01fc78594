// softmax(q·kᵀ/√size)·v per sequence and head, over sequences laid end to end.
// A row of qkv has a token's query, key and value, heads × size each. Scores
// never leave the registers: keys pass by in tiles of 64, and what is summed so
// far is scaled whenever a larger score comes (Dao et al., arXiv:2205.14135).
//
// A block has 64 queries of one head, a warp 16. tiles has three numbers a
// block: its first query, and the first token of its sequence and of the next.
//
// The kernels whose names end in _near look at distances of key and query: up to
// `window` they see each other (0: always), and a score gets the head's part of
// relative (null: nothing), which is zero + 1 + zero numbers for the distances
// from −zero to zero, already times log₂e.
#include "device.cuh"

constexpr int tile_tokens = 64;

// Distance is what a head makes of key − query.
struct Distance {
	int window;
	const float *relative; // at the distance 0

	__device__ __forceinline__ bool sees(int distance) const { return distance <= window && -distance <= window; }
	__device__ __forceinline__ float added(int distance) const { return relative ? relative[distance] : 0; }
};
constexpr int no_window = 1 << 30;

template <int size> struct Head {
	static constexpr int parts = size / 8; // of 16 bytes in a row
	static constexpr int tile = tile_tokens * parts;
};

// fetch_tokens starts the copies of a head's part of up to 64 tokens; the rest is zeros.
template <int size> __device__ __forceinline__ void fetch_tokens(uint4 *tile, const bf16 *from, int first, int end, int stride) {
	constexpr int parts = Head<size>::parts;
	for (int i = threadIdx.x; i < tile_tokens * parts; i += 128) {
		int row = i / parts, part = i % parts;
		bool there = first + row < end;
		copy_async(tile + place<parts>(row, part), from + (there ? (size_t)(first + row) * stride + 8 * part : 0), there ? 16 : 0);
	}
}

// quad_max and quad_sum are over the four lanes that share a row.
__device__ __forceinline__ float quad_max(float v) {
	v = fmaxf(v, __shfl_xor_sync(whole_warp, v, 1));
	return fmaxf(v, __shfl_xor_sync(whole_warp, v, 2));
}
__device__ __forceinline__ float quad_sum(float v) {
	v += __shfl_xor_sync(whole_warp, v, 1);
	return v + __shfl_xor_sync(whole_warp, v, 2);
}

// Running is the softmax so far of a lane's two rows, g and g + 8.
template <int size> struct Running {
	float largest[2], total[2];
	float out[size / 8][4];
};

// score multiplies 16 queries with 64 keys.
template <int size> __device__ __forceinline__ void score(float (&scores)[8][4], const uint32_t (&q)[size / 16][4], const uint4 *keys) {
	int lane = threadIdx.x % 32;
#pragma unroll
	for (int j = 0; j < 8; j += 2)
#pragma unroll
		for (int k = 0; k < size / 16; k++) {
			uint32_t r[4];
			load_matrices(r, keys + place<Head<size>::parts>(8 * j + lane % 8 + lane / 16 * 8, 2 * k + lane / 8 % 2));
			multiply_bf16(scores[j], q[k], {r[0], r[1]});
			multiply_bf16(scores[j + 1], q[k], {r[2], r[3]});
		}
}

// by_distance adds to scores what their distance asks for; key is the first, and
// last the sequence's last token. Queries after it are nobody's: they count as last.
__device__ __forceinline__ void by_distance(float (&scores)[8][4], const Distance &d, float scale, int query, int key, int last) {
#pragma unroll
	for (int j = 0; j < 8; j++)
#pragma unroll
		for (int i = 0; i < 4; i++) {
			int at = min(key + 8 * j + (int)threadIdx.x % 4 * 2 + i % 2, last) - min(query + (int)threadIdx.x % 32 / 4 + i / 2 * 8, last);
			scores[j][i] = d.sees(at) ? scores[j][i] * scale + d.added(at) : -INFINITY;
		}
}

// weigh turns scores into weights, relative to the largest so far, and scales
// what was summed before by as much. left is how many of the keys there are. In
// near, a query may have seen none yet: its weights are zero.
template <int size, bool near> __device__ __forceinline__ void weigh(float (&scores)[8][4], Running<size> &run, float scale, int left) {
	int column = threadIdx.x % 4 * 2;
#pragma unroll
	for (int half = 0; half < 2; half++) {
		float largest = run.largest[half], total = 0;
#pragma unroll
		for (int j = 0; j < 8; j++)
#pragma unroll
			for (int i = 0; i < 2; i++) {
				float &s = scores[j][2 * half + i];
				s = 8 * j + column + i < left ? s * scale : -INFINITY;
				largest = fmaxf(largest, s);
			}
		largest = quad_max(largest);
		float base = near && largest == -INFINITY ? 0 : largest, before = exp2f(run.largest[half] - base);
#pragma unroll
		for (int j = 0; j < 8; j++)
#pragma unroll
			for (int i = 0; i < 2; i++) {
				float &s = scores[j][2 * half + i];
				s = exp2f(s - base);
				total += s;
			}
		run.largest[half] = largest;
		run.total[half] = run.total[half] * before + quad_sum(total);
#pragma unroll
		for (int d = 0; d < size / 8; d++) {
			run.out[d][2 * half] *= before;
			run.out[d][2 * half + 1] *= before;
		}
	}
}

// gather adds the weighted values. A pair of score tiles has the layout of the
// left operand of the next product, so weights only change their precision.
template <int size> __device__ __forceinline__ void gather(Running<size> &run, const float (&weights)[8][4], const uint4 *values) {
	int lane = threadIdx.x % 32;
#pragma unroll
	for (int k = 0; k < 4; k++) {
		const float(&low)[4] = weights[2 * k], (&high)[4] = weights[2 * k + 1];
		uint32_t p[4] = {pack_bf16(low[0], low[1]), pack_bf16(low[2], low[3]), pack_bf16(high[0], high[1]), pack_bf16(high[2], high[3])};
#pragma unroll
		for (int d = 0; d < size / 8; d += 2) {
			uint32_t r[4];
			load_transposed(r, values + place<Head<size>::parts>(16 * k + lane % 16, d + lane / 16));
			multiply_bf16(run.out[d], p, {r[0], r[1]});
			multiply_bf16(run.out[d + 1], p, {r[2], r[3]});
		}
	}
}

template <int size, bool near>
__device__ __forceinline__ void attention(bf16 *out, const bf16 *qkv, const int *tiles, int heads, float scale, Distance distance) {
	DYNAMIC_SHARED(uint4, shared);
	constexpr int tile = Head<size>::tile;
	uint4 *queries = shared, *ring = shared + tile; // two pairs of keys and values
	int first = tiles[3 * blockIdx.x], begin = tiles[3 * blockIdx.x + 1], end = tiles[3 * blockIdx.x + 2];
	int hidden = heads * size, stride = 3 * hidden, warp = threadIdx.x / 32, lane = threadIdx.x % 32;
	const bf16 *head = qkv + blockIdx.y * size;
	int from = begin, to = end; // the keys that a query of the block sees
	if (near) {
		from += max(0, first - distance.window - begin) / tile_tokens * tile_tokens;
		to = min(end, first + tile_tokens + distance.window);
	}
	auto fetch_keys = [&](int step) {
		uint4 *at = ring + step % 2 * 2 * tile;
		if (from + step * tile_tokens < to) {
			fetch_tokens<size>(at, head + hidden, from + step * tile_tokens, end, stride);
			fetch_tokens<size>(at + tile, head + 2 * hidden, from + step * tile_tokens, end, stride);
		}
		commit_copies();
	};
	fetch_tokens<size>(queries, head, first, end, stride);
	fetch_keys(0);

	uint32_t q[size / 16][4];
	Running<size> run = {{-INFINITY, -INFINITY}, {}, {}};
	for (int step = 0; from + step * tile_tokens < to; step++) {
		wait_copies<0>();
		__syncthreads(); // the tile is there for all, and all have left the one before
		fetch_keys(step + 1);
		if (step == 0)
#pragma unroll
			for (int k = 0; k < size / 16; k++)
				load_matrices(q[k], queries + place<Head<size>::parts>(16 * warp + lane % 16, 2 * k + lane / 16));
		const uint4 *at = ring + step % 2 * 2 * tile;
		float scores[8][4] = {};
		score<size>(scores, q, at);
		int key = from + step * tile_tokens;
		if (near) by_distance(scores, distance, scale, first + 16 * warp, key, end - 1);
		weigh<size, near>(scores, run, near ? 1 : scale, end - key);
		gather<size>(run, scores, at + tile);
	}

#pragma unroll
	for (int half = 0; half < 2; half++) {
		int token = first + 16 * warp + lane / 4 + 8 * half;
		if (token >= end) continue;
		float inverse = 1 / run.total[half];
		bf16 *to = out + (size_t)token * hidden + blockIdx.y * size + lane % 4 * 2;
#pragma unroll
		for (int d = 0; d < size / 8; d++)
			*(uint32_t *)(to + 8 * d) = pack_bf16(run.out[d][2 * half] * inverse, run.out[d][2 * half + 1] * inverse);
	}
}

// scale is log₂e/√size: powers of two are what the device computes. 128 threads,
// 5 tiles of dynamic shared memory: 640 bytes for each number of a head. Four
// blocks of the wide heads share a processor: 128 registers are enough.
extern "C" __global__ void __launch_bounds__(128) attention_32(bf16 *out, const bf16 *qkv, const int *tiles, int heads, float scale) {
	attention<32, false>(out, qkv, tiles, heads, scale, {});
}

extern "C" __global__ void __launch_bounds__(128, 4) attention_64(bf16 *out, const bf16 *qkv, const int *tiles, int heads, float scale) {
	attention<64, false>(out, qkv, tiles, heads, scale, {});
}

__device__ __forceinline__ Distance distance_of(int window, const float *relative, int zero) {
	return {window ? window : no_window, relative ? relative + blockIdx.y * (2 * zero + 1) + zero : relative};
}

extern "C" __global__ void __launch_bounds__(128) attention_32_near(bf16 *out, const bf16 *qkv, const int *tiles, int heads, float scale, int window,
                                                                    const float *relative, int zero) {
	attention<32, true>(out, qkv, tiles, heads, scale, distance_of(window, relative, zero));
}

extern "C" __global__ void __launch_bounds__(128, 4) attention_64_near(bf16 *out, const bf16 *qkv, const int *tiles, int heads, float scale, int window,
                                                                    const float *relative, int zero) {
	attention<64, true>(out, qkv, tiles, heads, scale, distance_of(window, relative, zero));
}
