// Tensor cores of compute 9.0: four warps multiply together, and read both
// operands from shared memory while they go on with something else.
#pragma once
#include "device.cuh"

// describe names a tile in shared memory to a product: rows of 128 bytes, with
// the parts of 16 bytes where place<8> has them. `part` is where in the rows the
// product begins; the tile begins at a multiple of 1024 bytes.
//
// The bits: address/16; from 16 on the distance of columns of tiles, of which
// there is one; from 32 on the bytes/16 from eight rows to the next; from 62 on
// the permutation, 1 for that of 128 bytes.
__device__ __forceinline__ uint64_t describe(const uint4 *tile, int part) {
#ifdef __CUDACC__
	uint32_t address = (uint32_t)__cvta_generic_to_shared(tile + part);
#else
	uint32_t address = emulator::shared_address(tile + part);
#endif
	return (uint64_t)(address >> 4 & 0x3fff) | 1ull << 16 | (uint64_t)(1024 >> 4) << 32 | 1ull << 62;
}

// multiply_group is d += a·bᵀ for four warps: a has 64 rows, b 8·tiles, each 16
// bfloat16 wide. Warp i of the four has rows 16i to 16i+15 of d, in the layout of
// multiply_bf16. d must not be touched before wait_products.
__device__ __forceinline__ void multiply_group(float (&d)[16][4], uint64_t a, uint64_t b) {
#ifdef __CUDACC__
	asm volatile(
	    "wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16 {"
	    "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
	    "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "
	    "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "
	    "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63}, "
	    "%64, %65, 1, 1, 1, 0, 0;"
	      : "+f"(d[0][0]), "+f"(d[0][1]), "+f"(d[0][2]), "+f"(d[0][3]), "+f"(d[1][0]), "+f"(d[1][1]), "+f"(d[1][2]), "+f"(d[1][3]),
	        "+f"(d[2][0]), "+f"(d[2][1]), "+f"(d[2][2]), "+f"(d[2][3]), "+f"(d[3][0]), "+f"(d[3][1]), "+f"(d[3][2]), "+f"(d[3][3]),
	        "+f"(d[4][0]), "+f"(d[4][1]), "+f"(d[4][2]), "+f"(d[4][3]), "+f"(d[5][0]), "+f"(d[5][1]), "+f"(d[5][2]), "+f"(d[5][3]),
	        "+f"(d[6][0]), "+f"(d[6][1]), "+f"(d[6][2]), "+f"(d[6][3]), "+f"(d[7][0]), "+f"(d[7][1]), "+f"(d[7][2]), "+f"(d[7][3]),
	        "+f"(d[8][0]), "+f"(d[8][1]), "+f"(d[8][2]), "+f"(d[8][3]), "+f"(d[9][0]), "+f"(d[9][1]), "+f"(d[9][2]), "+f"(d[9][3]),
	        "+f"(d[10][0]), "+f"(d[10][1]), "+f"(d[10][2]), "+f"(d[10][3]), "+f"(d[11][0]), "+f"(d[11][1]), "+f"(d[11][2]), "+f"(d[11][3]),
	        "+f"(d[12][0]), "+f"(d[12][1]), "+f"(d[12][2]), "+f"(d[12][3]), "+f"(d[13][0]), "+f"(d[13][1]), "+f"(d[13][2]), "+f"(d[13][3]),
	        "+f"(d[14][0]), "+f"(d[14][1]), "+f"(d[14][2]), "+f"(d[14][3]), "+f"(d[15][0]), "+f"(d[15][1]), "+f"(d[15][2]), "+f"(d[15][3])
	      : "l"(a), "l"(b));
#else
	emulator::multiply_group(&d[0][0], 128, a, b);
#endif
}
__device__ __forceinline__ void multiply_group(float (&d)[8][4], uint64_t a, uint64_t b) {
#ifdef __CUDACC__
	asm volatile(
	    "wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 {"
	    "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
	    "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31}, "
	    "%32, %33, 1, 1, 1, 0, 0;"
	      : "+f"(d[0][0]), "+f"(d[0][1]), "+f"(d[0][2]), "+f"(d[0][3]), "+f"(d[1][0]), "+f"(d[1][1]), "+f"(d[1][2]), "+f"(d[1][3]),
	        "+f"(d[2][0]), "+f"(d[2][1]), "+f"(d[2][2]), "+f"(d[2][3]), "+f"(d[3][0]), "+f"(d[3][1]), "+f"(d[3][2]), "+f"(d[3][3]),
	        "+f"(d[4][0]), "+f"(d[4][1]), "+f"(d[4][2]), "+f"(d[4][3]), "+f"(d[5][0]), "+f"(d[5][1]), "+f"(d[5][2]), "+f"(d[5][3]),
	        "+f"(d[6][0]), "+f"(d[6][1]), "+f"(d[6][2]), "+f"(d[6][3]), "+f"(d[7][0]), "+f"(d[7][1]), "+f"(d[7][2]), "+f"(d[7][3])
	      : "l"(a), "l"(b));
#else
	emulator::multiply_group(&d[0][0], 64, a, b);
#endif
}

// begin_products comes before the first product of a step; it orders the sums.
__device__ __forceinline__ void begin_products() {
#ifdef __CUDACC__
	asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#endif
}

// commit_products closes a group of products.
__device__ __forceinline__ void commit_products() {
#ifdef __CUDACC__
	asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
#else
	emulator::products_commit();
#endif
}

// wait_products returns when all groups but the last few are done.
template <int groups> __device__ __forceinline__ void wait_products() {
#ifdef __CUDACC__
	asm volatile("wgmma.wait_group.sync.aligned %0;" :: "n"(groups) : "memory");
#else
	emulator::products_wait(groups);
#endif
}
