// What the kernels share: numbers of 16 bits, warps, tensor cores, and copies
// into shared memory. On a host, emulator/language.h stands in for the
// instructions that C++ has no words for.
#pragma once
#include <cstdint>

typedef uint16_t bf16; // bits of a bfloat16

constexpr unsigned whole_warp = 0xffffffffu;

#ifdef __CUDACC__
extern __shared__ __align__(1024) unsigned char dynamic_shared[];
#define DYNAMIC_SHARED(type, name) type *name = (type *)dynamic_shared
#endif

__device__ __forceinline__ float low_bf16(uint32_t pair) { return __uint_as_float(pair << 16); }
__device__ __forceinline__ float high_bf16(uint32_t pair) { return __uint_as_float(pair & 0xffff0000u); }

// pack_bf16 rounds two numbers to nearest, ties to even; a comes first in memory.
__device__ __forceinline__ uint32_t pack_bf16(float a, float b) {
#ifdef __CUDACC__
	uint32_t pair;
	asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(b), "f"(a));
	return pair;
#else
	auto round = [](float f) {
		unsigned bits = __float_as_uint(f);
		return f != f ? 0x7fffu : (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
	};
	return round(a) | round(b) << 16;
#endif
}

__device__ __forceinline__ float warp_sum(float v) {
	for (int step = 16; step > 0; step /= 2) v += __shfl_xor_sync(whole_warp, v, step);
	return v;
}

// Activation is the function after a matrix, as model.Activation names them.
enum Activation { identity, gelu, gelu_tanh, silu, relu, hyperbolic_tangent };

__device__ __forceinline__ float activate(float x, int activation) {
	switch (activation) {
	case gelu: return 0.5f * x * (1 + erff(x * 0.70710678f));
	case gelu_tanh: return 0.5f * x * (1 + tanhf(0.79788456f * (x + 0.044715f * x * x * x)));
	case silu: return x / (1 + __expf(-x));
	case relu: return fmaxf(x, 0);
	case hyperbolic_tangent: return tanhf(x);
	}
	return x;
}

// place is where a tile keeps 16-byte part `part` of a row, in 16-byte parts
// from the tile's start. Parts are permuted within 128 bytes so that the eight
// rows that load_matrices reads at once lie in different banks.
template <int parts> __device__ __forceinline__ int place(int row, int part) {
	static_assert(parts == 4 || parts % 8 == 0, "rows of 64 bytes, or of whole 128");
	return row * parts + (parts == 4 ? part ^ (row >> 1 & 3) : part ^ (row & 7));
}

// multiply_bf16 is d += a·b on tensor cores: a is 16 × 16, b is 16 × 8, spread
// over the lanes as PTX's mma.m16n8k16 has them. Of lane 4g+t, d holds rows g
// and g+8, columns 2t and 2t+1.
__device__ __forceinline__ void multiply_bf16(float (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]) {
#ifdef __CUDACC__
	asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
	             : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
	             : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
#else
	emulator::tensor_multiply(d, a, b, emulator::Number::bf16, __LINE__);
#endif
}

// multiply_f16 is the same of IEEE halves.
__device__ __forceinline__ void multiply_f16(float (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]) {
#ifdef __CUDACC__
	asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
	             : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
	             : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
#else
	emulator::tensor_multiply(d, a, b, emulator::Number::f16, __LINE__);
#endif
}

// multiply_i8 is the same of signed bytes: a is 16 × 32, b is 32 × 8.
__device__ __forceinline__ void multiply_i8(int (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]) {
#ifdef __CUDACC__
	asm volatile("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
	             : "+r"(d[0]), "+r"(d[1]), "+r"(d[2]), "+r"(d[3])
	             : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
#else
	emulator::tensor_multiply(d, a, b, __LINE__);
#endif
}

// load_matrices reads four 8 × 8 matrices of 16-bit numbers from shared memory
// as fragments. Lane i gives the address of row i%8 of matrix i/8.
__device__ __forceinline__ void load_matrices(uint32_t (&r)[4], const void *row) {
#ifdef __CUDACC__
	asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
	             : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
	             : "r"((uint32_t)__cvta_generic_to_shared(row)) : "memory");
#else
	emulator::load_matrices(r, row, false, __LINE__);
#endif
}

// load_transposed is the same of the transposed matrices.
__device__ __forceinline__ void load_transposed(uint32_t (&r)[4], const void *row) {
#ifdef __CUDACC__
	asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
	             : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
	             : "r"((uint32_t)__cvta_generic_to_shared(row)) : "memory");
#else
	emulator::load_matrices(r, row, true, __LINE__);
#endif
}

// copy_async brings the first bytes of 16 to shared memory, past the
// registers, and zeros the rest. It is there after wait_copies, for others
// after a barrier too.
__device__ __forceinline__ void copy_async(void *to, const void *from, int bytes) {
#ifdef __CUDACC__
	asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;"
	             :: "r"((uint32_t)__cvta_generic_to_shared(to)), "l"(from), "r"(bytes) : "memory");
#else
	emulator::copy_async(to, from, bytes);
#endif
}

// commit_copies closes a group of copies.
__device__ __forceinline__ void commit_copies() {
#ifdef __CUDACC__
	asm volatile("cp.async.commit_group;" ::: "memory");
#else
	emulator::copy_commit();
#endif
}

// wait_copies returns when all groups but the last few are there.
template <int groups> __device__ __forceinline__ void wait_copies() {
#ifdef __CUDACC__
	asm volatile("cp.async.wait_group %0;" :: "n"(groups) : "memory");
#else
	emulator::copy_wait(groups);
#endif
}

// publish makes what a thread has written to shared memory visible to products
// and tensor copies of compute 9.0, after the barrier that follows.
__device__ __forceinline__ void publish() {
#ifdef __CUDACC__
	asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
#else
	emulator::publish();
#endif
}
