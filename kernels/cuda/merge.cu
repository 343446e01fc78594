// The best k of what the blocks of a search found: a block a query, whose
// candidates are count keys (see top.cuh; 0 is none). Rows and scores come out
// in order; where there are fewer than k, row −1.
#include "top.cuh"

extern "C" __global__ void __launch_bounds__(128) merge(int *rows, float *scores, const key *candidates, int count, int k) {
	__shared__ Top top;
	__shared__ int full;
	if (threadIdx.x == 0) clear(top);
	__syncthreads();
	const key *mine = candidates + (size_t)blockIdx.x * count;
	for (int first = 0; first < count; first += 128) {
		key candidate = first + threadIdx.x < count ? mine[first + threadIdx.x] : no_key;
		bool pending = candidate != no_key;
		do {
			if (pending) pending = candidate > top.least && !offer(top, candidate);
		} while (make_room(&top, 1, k, &full));
	}
	if (threadIdx.x >= 32) return;
	select(top, k);
	__syncwarp();
	for (int i = threadIdx.x; i < k; i += 32) {
		bool there = i < top.count;
		unsigned bits = there ? (unsigned)(top.keys[i] >> 32) : 0;
		rows[(size_t)blockIdx.x * k + i] = there ? (int)~(unsigned)top.keys[i] : -1;
		scores[(size_t)blockIdx.x * k + i] = there ? __uint_as_float(bits >> 31 ? bits & 0x7fffffffu : ~bits) : 0;
	}
}
