// Kernels that the emulator's tests run, right ones and wrong ones.
#include "device.cuh"
#include "tensor.cuh"

extern "C" __global__ void add(float *y, const float *x, int n) {
	int i = blockIdx.x * blockDim.x + threadIdx.x;
	if (i < n) y[i] += x[i];
}

// Reads or writes x[at], in steps of one byte.
extern "C" __global__ void touch(unsigned char *x, long long at, int bytes) {
	if (bytes == 1) x[at] = 1;
	if (bytes == 4) *(unsigned *)(x + at) = 1;
	if (bytes == -4) *(unsigned *)x = *(unsigned *)(x + at);
}

extern "C" __global__ void diverge(float *y) {
	if (threadIdx.x < 32) __syncthreads();
	else
		__syncthreads();
	y[threadIdx.x] = 1;
}

extern "C" __global__ void leave_early(float *y) {
	if (threadIdx.x == 5) return;
	__syncthreads();
	y[threadIdx.x] = 1;
}

// Sums a block's numbers; without the barrier it races.
extern "C" __global__ void sum(float *y, const float *x, int barrier) {
	__shared__ float part[64];
	part[threadIdx.x] = x[threadIdx.x];
	if (barrier) __syncthreads();
	if (threadIdx.x != 0) return;
	float total = 0;
	for (int i = 0; i < 64; i++) total += part[i];
	*y = total;
}

// Neighbours within a warp; a shuffle orders no memory.
extern "C" __global__ void neighbours(float *y, const float *x, int how) {
	__shared__ float part[32];
	part[threadIdx.x] = x[threadIdx.x];
	if (how == 1) __syncwarp();
	if (how == 2) __shfl_sync(whole_warp, 0, 0);
	y[threadIdx.x] = part[threadIdx.x ^ 1];
}

// Overwrites what others may still read.
extern "C" __global__ void rotate(float *x, int barrier) {
	DYNAMIC_SHARED(float, part);
	part[threadIdx.x] = x[threadIdx.x];
	__syncthreads();
	float next = part[(threadIdx.x + 1) % blockDim.x];
	if (barrier) __syncthreads();
	part[threadIdx.x] = next;
	x[threadIdx.x] = part[threadIdx.x];
}

// Counts with atomic operations.
extern "C" __global__ void count(int *y) {
	__shared__ int all;
	if (threadIdx.x == 0) all = 0;
	__syncthreads();
	atomicAdd(&all, 1);
	__syncthreads();
	if (threadIdx.x == 0) atomicAdd(y, all);
}

// Copies 64 bytes through shared memory; without the wait others read too early.
extern "C" __global__ void copy(float *y, const float *x, int wait) {
	__shared__ __align__(16) float part[16];
	if (threadIdx.x < 4) copy_async(part + 4 * threadIdx.x, x + 4 * threadIdx.x, threadIdx.x == 3 ? 8 : 16);
	commit_copies();
	if (wait) wait_copies<0>();
	__syncthreads();
	y[threadIdx.x] = part[threadIdx.x];
	if (!wait) wait_copies<0>();
}

// Transposes tiles of 8 × 64 that the accelerator brings one after the other, a
// column a thread. `mistake` is one of many.
enum Mistake { none, no_fence, no_wait, too_few, too_many, off, no_arrival, too_early, left_alone, no_map, twice, over, too_often, no_barrier, in_memory };
struct Source { TensorMap map; };
extern "C" __global__ void tile(bf16 *y, int rounds, int mistake, const __grid_constant__ Source from) {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
	DYNAMIC_SHARED(bf16, memory);
	Barrier *filled = (Barrier *)(memory + 1024), *empty = filled + 1;
	if (threadIdx.x == 0) {
		if (mistake != no_barrier) start(filled, 1);
		start(empty, 64);
		if (mistake == twice) start(empty, 1);
		if (mistake != no_fence) publish();
	}
	__syncthreads();
	for (int round = 0, column = threadIdx.x; round < rounds; round++) {
		if (threadIdx.x == 0) {
			if (mistake != too_early) wait(empty, round % 2 ^ 1);
			arrive_expecting(filled, mistake == too_few ? 512 : mistake == too_many ? 2048 : 1024);
			if (mistake == too_often) arrive(filled);
			const void *map = mistake == no_map ? (const void *)memory : mistake == in_memory ? y : (const void *)&from.map;
			copy_tile(memory + (mistake == off ? 8 : 0), (const TensorMap *)map, 8 * round - 4, 0, filled);
		}
		if (mistake == left_alone) return;
		if (mistake != no_wait || threadIdx.x) wait(filled, round % 2);
		for (int row = 0; row < 8; row++) y[(round * 64 + column) * 8 + row] = memory[8 * place<8>(row, column / 8) + column % 8];
		if (mistake == over) memory[8 * place<8>(0, column / 8) + column % 8] = 0;
		if (mistake != no_arrival) arrive(empty);
	}
#endif
}
