// The Tensor Memory Accelerator of compute 9.0: one thread asks for a whole tile,
// and a barrier in shared memory counts the bytes of it that have arrived.
#pragma once
#include "device.cuh"

// TensorMap is a matrix in global memory and the box that a copy takes of it, as
// the driver encodes them. Kernels get it as a constant of the grid.
struct __align__(64) TensorMap {
	uint64_t opaque[16];
};

// Barrier goes from one phase to the next when all its arrivals have happened and
// all the bytes that it was told of have arrived. Phases are counted from 0.
typedef uint64_t Barrier;

#ifdef __CUDACC__
__device__ __forceinline__ uint32_t shared_address(const void *p) { return (uint32_t)__cvta_generic_to_shared(p); }
#endif

// start makes a barrier of so many arrivals a phase. Others may use it after
// publish and a barrier of the block.
__device__ __forceinline__ void start(Barrier *b, int arrivals) {
#ifdef __CUDACC__
	asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" :: "r"(shared_address(b)), "r"(arrivals) : "memory");
#else
	emulator::barrier_start(b, arrivals);
#endif
}

// arrive is one arrival. What the thread has read and written comes before the
// phase's end.
__device__ __forceinline__ void arrive(Barrier *b) {
#ifdef __CUDACC__
	asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" :: "r"(shared_address(b)) : "memory");
#else
	emulator::barrier_arrive(b, 0);
#endif
}

// arrive_expecting is one arrival that tells of bytes to come in this phase.
__device__ __forceinline__ void arrive_expecting(Barrier *b, int bytes) {
#ifdef __CUDACC__
	asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" :: "r"(shared_address(b)), "r"(bytes) : "memory");
#else
	emulator::barrier_arrive(b, bytes);
#endif
}

// wait returns when the last phase of that parity is over. The one before the
// first is over from the start.
__device__ __forceinline__ void wait(Barrier *b, int parity) {
#ifdef __CUDACC__
	uint32_t over;
	do {
		asm volatile("{\n\t"
		             ".reg .pred over;\n\t"
		             "mbarrier.try_wait.parity.shared::cta.b64 over, [%1], %2;\n\t"
		             "selp.u32 %0, 1, 0, over;\n\t"
		             "}"
		             : "=r"(over) : "r"(shared_address(b)), "r"(parity) : "memory");
	} while (!over);
#else
	emulator::barrier_wait(b, parity);
#endif
}

// prefetch brings a map to where copies look for it.
__device__ __forceinline__ void prefetch(const TensorMap *map) {
#ifdef __CUDACC__
	asm volatile("prefetch.tensormap [%0];" :: "l"(map) : "memory");
#else
	emulator::tensor_prefetch(map);
#endif
}

// copy_tile starts the copy of the box that begins at a row and a column, and has
// the barrier told of each byte; what the matrix does not have arrives as zeros.
// The tile begins at a multiple of 1024 bytes and has its parts of 16 bytes
// where place<8> has them.
__device__ __forceinline__ void copy_tile(void *tile, const TensorMap *map, int row, int column, Barrier *b) {
#ifdef __CUDACC__
	asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];"
	             :: "r"(shared_address(tile)), "l"(map), "r"(column), "r"(row), "r"(shared_address(b)) : "memory");
#else
	emulator::tensor_copy(tile, map, row, column, b);
#endif
}
