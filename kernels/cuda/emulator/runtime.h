// What runs a kernel on the host: a block's threads are fibers of one thread of
// the operating system, so a run depends on nothing but its seed.
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

namespace emulator {

struct Index {
	unsigned x, y, z;
};

// Copy is a cp.async that has not been waited for.
struct Copy {
	void *to;
	const void *from;
	unsigned bytes; // the rest of 16 becomes zero
	unsigned group;
};

// Product is a wgmma that has not been waited for.
struct Product {
	float *d;
	int columns;
	uint64_t a, b; // descriptors
	unsigned group;
};

// Clock is what a thread knows of the others of its block, by number: up to when
// what they did comes before what it does; and after these of barriers in shared
// memory, how many phases are over. Clocks run in blocks that have such barriers.
using Clock = std::vector<uint32_t>;

struct Warp {
	uint64_t slots[2][32];      // what lanes exchange; the next exchange uses the other half
	uint32_t fragments[32][6];  // of A and B
	float product[16][8];       // of a tensor-core instruction
	int integer_product[16][8];
	unsigned lanes;             // that the block has
	unsigned arrived;
	unsigned generation;        // of barriers of the warp
	unsigned memory_generation; // of those that order memory
	int line;                   // where the first lane waits
};

enum class State : uint8_t { ready, at_barrier, at_warp_barrier, at_phase, done };

struct Thread {
	void *stack_pointer;
	char *stack;
	Index index;
	unsigned number, lane;
	Warp *warp;
	State state;
	int line; // of the barrier at which it waits
	unsigned copy_group, product_group;
	std::vector<Copy> copies;
	std::vector<Product> products;
	bool unpublished; // it has written to shared memory what products and tensor copies may not see yet
	Clock knows;
	uint32_t time;       // its own
	const void *awaited; // a barrier in shared memory
};

struct Block {
	Index index, size, grid;
	unsigned threads, arrived, exited;
	uint32_t interval; // grows at every barrier, and never comes back
	int line;
	bool unpublished; // by a thread, before the last barrier
};

extern Thread *thread; // the one that runs
extern Block block;

constexpr size_t stack_bytes = 64 << 10;
constexpr size_t dynamic_limit = 227 << 10;
alignas(1024) extern char dynamic_shared[dynamic_limit];

// Barriers. A line tells one from another.
void block_barrier(int line);
void warp_barrier(unsigned mask, int line, bool orders_memory);

// A thread awaits a phase of a barrier in shared memory until wake, which is for all of
// them, and looks again.
void await(const void *barrier);
void wake();

// depart is what others may know of the running thread from here on.
void start_clocks();
const Clock &depart();

// A kernel makes itself known while the library is loaded.
struct Kernel {
	const char *name;
	void (*call)(void **);
	std::vector<size_t> sizes; // of its parameters
};
void enlist(const Kernel &kernel);

// run does a launch, block by block, in an order of the seed. Returns a code of the driver.
int run(const Kernel &kernel, void **parameters, Index grid, Index block, size_t dynamic_bytes);

// fault ends the running kernel.
[[noreturn]] void fault(int code, const char *format, ...) __attribute__((format(printf, 2, 3)));
bool running();

// access is called for every read and write of memory.
enum class Kind : uint8_t { read, write, atomic };
void access(const void *address, size_t size, Kind kind, const void *caller);

} // namespace emulator
