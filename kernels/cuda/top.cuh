// The best k of what a block finds, in shared memory. A candidate is a key of 64
// bits that orders by score and then by row, the smaller row first; so the
// answer does not depend on the order in which candidates come. NaN is none.
#pragma once
#include "device.cuh"

typedef unsigned long long key;

constexpr int top_room = 128; // candidates of a query; k is smaller
constexpr key no_key = 0;

__device__ __forceinline__ key make_key(float score, unsigned row) {
	if (score != score) return no_key;
	unsigned bits = __float_as_uint(score + 0.0f); // −0 is 0
	bits = bits >> 31 ? ~bits : bits | 0x80000000u; // orders as the scores do
	return (key)bits << 32 | (unsigned)~row;
}

// Top is one query's candidates.
struct Top {
	key keys[top_room];
	key least; // a candidate must beat it
	unsigned count, asked; // keys there; those that wanted to be
};

__device__ __forceinline__ void clear(Top &t) {
	t.least = no_key;
	t.count = t.asked = 0;
}

// select keeps the best k in order, of up to top_room; for a whole warp.
__device__ __forceinline__ void select(Top &t, int k) {
	int lane = threadIdx.x % 32, count = t.count;
	key mine[top_room / 32];
	int rank[top_room / 32] = {};
#pragma unroll
	for (int i = 0; i < top_room / 32; i++) mine[i] = lane + 32 * i < count ? t.keys[lane + 32 * i] : no_key;
	for (int other = 0; other < count; other++) {
		key its = t.keys[other];
#pragma unroll
		for (int i = 0; i < top_room / 32; i++) rank[i] += its > mine[i];
	}
	__syncwarp();
#pragma unroll
	for (int i = 0; i < top_room / 32; i++)
		if (lane + 32 * i < count && rank[i] < k) t.keys[rank[i]] = mine[i];
	__syncwarp();
	if (lane == 0) {
		t.count = t.asked = min(count, k);
		if (count >= k) t.least = t.keys[k - 1];
	}
}

// offer adds a candidate. If there is no room, false is returned: the candidate
// must be offered again after make_room.
__device__ __forceinline__ bool offer(Top &t, key candidate) {
	unsigned at = atomicAdd(&t.asked, 1u);
	if (at >= top_room) return false;
	t.keys[at] = candidate;
	return true;
}

// make_room ends a round of offers, for the whole block: it reduces the queries
// whose room is spent, and reports whether there were any. full is in shared memory.
__device__ __forceinline__ bool make_room(Top *tops, int queries, int k, int *full) {
	if (threadIdx.x == 0) *full = 0;
	__syncthreads();
	for (int q = threadIdx.x / 32; q < queries; q += blockDim.x / 32) {
		bool over = tops[q].asked > top_room;
		__syncwarp();
		if (threadIdx.x % 32 == 0) tops[q].count = min(tops[q].asked, (unsigned)top_room);
		__syncwarp();
		if (!over) continue;
		select(tops[q], k);
		if (threadIdx.x % 32 == 0) atomicMax(full, 1);
	}
	__syncthreads();
	bool again = *full;
	__syncthreads();
	return again;
}

// write_top puts the best k into out, in order, with no_key after the last.
__device__ __forceinline__ void write_top(key *out, Top &t, int k) {
	__syncwarp();
	select(t, k);
	__syncwarp();
	for (int i = threadIdx.x % 32; i < k; i += 32) out[i] = i < t.count ? t.keys[i] : no_key;
}
