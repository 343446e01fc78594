// The part of CUDA C++ that the kernels use, for a host compiler. It is
// included before every .cu file in place of CUDA's own headers.
#pragma once
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <utility>

#include "runtime.h"

#define __global__
#define __device__
#define __forceinline__ inline __attribute__((always_inline))
#define __restrict__
#define __launch_bounds__(...)
#define __grid_constant__
#define __align__(n) __attribute__((aligned(n)))
// Only in a kernel itself, not in a template: all of it is one section of the library.
#define __shared__ static __attribute__((section("device_shared")))
#define DYNAMIC_SHARED(type, name) type *name = (type *)emulator::dynamic_shared

namespace emulator {

enum class Number { bf16, f16 };

// A thread's own place never changes: the compiler may ask once.
__attribute__((const)) Index thread_index();
Index block_index(), block_size(), grid_size();
uint64_t exchange(unsigned mask, uint64_t value, unsigned source, int line);
unsigned lane();
void atomic_read(void *address, void *value, size_t bytes, const void *caller);
void atomic_write(void *address, const void *value, size_t bytes);
void tensor_multiply(float *d, const uint32_t *a, const uint32_t *b, Number number, int line);
void tensor_multiply(int *d, const uint32_t *a, const uint32_t *b, int line);
void load_matrices(uint32_t *registers, const void *row, bool transposed, int line);
void copy_async(void *to, const void *from, unsigned bytes);
void copy_commit();
void copy_wait(unsigned groups);
uint32_t shared_address(const void *address);
void multiply_group(float *d, int columns, uint64_t a, uint64_t b);
void products_commit();
void products_wait(unsigned groups);
void publish();
void barrier_start(void *barrier, unsigned arrivals);
void barrier_arrive(void *barrier, unsigned bytes);
void barrier_wait(void *barrier, unsigned parity);
void tensor_prefetch(const void *map);
void tensor_copy(void *tile, const void *map, int row, int column, void *barrier);

template <class T, class F> T atomically(T *address, F change) {
	static_assert(sizeof(T) == 4 || sizeof(T) == 8, "atomic operations are on 4 or 8 bytes");
	T old;
	atomic_read(address, &old, sizeof(T), __builtin_return_address(0));
	T now = change(old);
	atomic_write(address, &now, sizeof(T));
	return old;
}

template <class T> T shuffle(unsigned mask, T value, unsigned source, int line) {
	static_assert(sizeof(T) <= 8, "a shuffle moves 8 bytes at most");
	uint64_t bits = 0;
	memcpy(&bits, &value, sizeof value);
	bits = exchange(mask, bits, source, line);
	memcpy(&value, &bits, sizeof value);
	return value;
}

} // namespace emulator

#define threadIdx (emulator::thread_index())
#define blockIdx (emulator::block_index())
#define blockDim (emulator::block_size())
#define gridDim (emulator::grid_size())

inline void __syncthreads(int line = __builtin_LINE()) { emulator::block_barrier(line); }
inline void __syncwarp(unsigned mask = ~0u, int line = __builtin_LINE()) { emulator::warp_barrier(mask, line, true); }

template <class T> T __shfl_sync(unsigned mask, T v, int source, int line = __builtin_LINE()) {
	return emulator::shuffle(mask, v, source, line);
}
template <class T> T __shfl_xor_sync(unsigned mask, T v, int x, int line = __builtin_LINE()) {
	return emulator::shuffle(mask, v, emulator::lane() ^ x, line);
}

template <class T> T atomicAdd(T *address, T v) { return emulator::atomically(address, [v](T old) { return old + v; }); }
template <class T> T atomicMax(T *address, T v) { return emulator::atomically(address, [v](T old) { return old < v ? v : old; }); }

struct alignas(8) float2 { float x, y; };
struct alignas(16) uint4 { unsigned x, y, z, w; };
inline float2 make_float2(float x, float y) { return {x, y}; }

inline int __popc(unsigned x) { return __builtin_popcount(x); }
inline float __int_as_float(int x) { float f; memcpy(&f, &x, 4); return f; }
inline float __uint_as_float(unsigned x) { float f; memcpy(&f, &x, 4); return f; }
inline int __float_as_int(float f) { int x; memcpy(&x, &f, 4); return x; }
inline unsigned __float_as_uint(float f) { unsigned x; memcpy(&x, &f, 4); return x; }
inline float rsqrtf(float x) { return 1 / sqrtf(x); }
inline float __expf(float x) { return expf(x); }
template <class T> T min(T a, T b) { return b < a ? b : a; }
template <class T> T max(T a, T b) { return a < b ? b : a; }

// ENLIST makes a kernel known to the emulator under its name.
namespace emulator {
template <class... P, size_t... I>
void call(void (*kernel)(P...), void **parameters, std::index_sequence<I...>) {
	kernel(*(std::remove_const_t<P> *)parameters[I]...);
}
template <class... P> Kernel describe(const char *name, void (*)(P...), void (*call)(void **)) { return {name, call, {sizeof(P)...}}; }
template <class... P> void spread(void (*kernel)(P...), void **parameters) { call(kernel, parameters, std::index_sequence_for<P...>{}); }
} // namespace emulator
#define ENLIST(kernel)                                                                                             \
	static const bool kernel##_is_enlisted = [] {                                                                  \
		emulator::enlist(emulator::describe(#kernel, &kernel, [](void **p) { emulator::spread(&kernel, p); }));    \
		return true;                                                                                               \
	}();
