// The emulated device: what its parts know of one another.
#pragma once
#include <cuda.h>

#include <cstddef>
#include <cstdint>
#include <string>

#include "runtime.h"

namespace emulator {

// Settings come from the environment, CUDA_EMULATOR_SEED and so on.
size_t setting(const char *name, size_t otherwise);
int devices(), compute(), version(), shared_limit();

// Chance: everything that a real device leaves open is decided by the seed.
size_t pick(size_t n);                      // 0 … n−1
void permute(unsigned *order, unsigned n);  // fills order with 0 … n−1, shuffled

// The first fault is kept: as on a real device every later call answers with it.
void report(int code, const char *format, ...) __attribute__((format(printf, 2, 3)));
CUresult sticky();
const char *sticky_text();

// misbehave does to what is copied to the host as CUDA_EMULATOR_FAULT says, from
// the copy on whose number CUDA_EMULATOR_FAULT_AT is: crash ends the process, hang
// does not return, nan spoils the numbers, fault is an error of the device.
CUresult misbehave(void *copied, size_t bytes);

// Memory of the device, and pinned memory of the host. size_at is the number of
// bytes from address to the end of its allocation, 0 outside of all.
enum class Home { device, host };
CUresult allocate(Home home, size_t bytes, void **address);
CUresult release(Home home, void *address);
size_t size_at(const void *address);
bool on_device(CUdeviceptr address, size_t bytes);
bool pinned(const void *address, size_t bytes);
bool range(CUdeviceptr address, CUdeviceptr *base, size_t *bytes);
size_t memory_total(), memory_free();

// Shared memory.
uint32_t next_interval();
void forget_shared();
void set_dynamic(size_t bytes);
std::string where(const void *caller); // as in " at gemm.cu:12", if that can be said

} // namespace emulator
