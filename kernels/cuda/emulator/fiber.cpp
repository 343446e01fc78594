// Threads of a block as fibers, and the barriers between them.
#include "runtime.h"

#include <cuda.h>
#include <sys/mman.h>

#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "device.h"
#include "mbarrier.h"
#include "tensor.h"

namespace emulator {

Thread *thread;
Block block;
alignas(1024) char dynamic_shared[dynamic_limit];

// fiber_switch saves what a callee must keep, and goes on where next was left.
extern "C" void fiber_switch(void **save, void *next);
asm(R"(
.text
.globl fiber_switch
.hidden fiber_switch
.type fiber_switch,@function
fiber_switch:
	pushq %rbp
	pushq %rbx
	pushq %r12
	pushq %r13
	pushq %r14
	pushq %r15
	movq %rsp, (%rdi)
	movq %rsi, %rsp
	popq %r15
	popq %r14
	popq %r13
	popq %r12
	popq %rbx
	popq %rbp
	ret
)");

// The running launch.
static struct {
	const Kernel *kernel;
	void **parameters;
	void *scheduler; // stack pointer of run_block
	bool active;
	int code; // of the fault
} launch;

static std::vector<Thread> threads;
static std::vector<Warp> warps;
static std::vector<unsigned> order; // in which threads take turns
static unsigned turn;
static bool clocks; // run in this block

bool running() { return launch.active; }

void fault(int code, const char *format, ...) {
	char what[512];
	va_list arguments;
	va_start(arguments, format);
	vsnprintf(what, sizeof what, format, arguments);
	va_end(arguments);
	report(code, "%s: %s; block (%u,%u,%u), thread (%u,%u,%u)", launch.kernel->name, what, block.index.x, block.index.y, block.index.z,
	       thread->index.x, thread->index.y, thread->index.z);
	launch.code = code;
	void *abandoned;
	fiber_switch(&abandoned, launch.scheduler);
	abort();
}

[[noreturn]] static void deadlock(int line) {
	for (unsigned i = 0; i < block.threads; i++)
		if (threads[i].state == State::at_phase)
			fault(CUDA_ERROR_LAUNCH_FAILED, "deadlock: thread %u waits for a phase of a barrier that lacks %s", i, lack(threads[i].awaited).c_str());
	fault(CUDA_ERROR_LAUNCH_FAILED, "deadlock: every thread waits at a barrier (lines %d and %d)", block.line, line);
}

// next_ready is the thread whose turn it is, null if there is none.
static Thread *next_ready() {
	for (unsigned tried = 0; tried < block.threads; tried++) {
		turn = turn + 1 == block.threads ? 0 : turn + 1;
		if (threads[order[turn]].state == State::ready) return &threads[order[turn]];
	}
	return nullptr;
}

// yield lets another thread run; the caller has said in its state why. Where none
// can, tensor copies land.
static void yield() {
	Thread *self = thread, *next = next_ready();
	if (block.exited == block.threads) fiber_switch(&self->stack_pointer, launch.scheduler);
	while (!next && land_copy()) next = next_ready();
	if (!next) deadlock(self->line);
	if (next == self) return;
	thread = next;
	fiber_switch(&self->stack_pointer, next->stack_pointer);
}

// release wakes the threads from first on that wait in this state.
static void release(State waiting, unsigned first, unsigned count) {
	for (unsigned i = first; i < first + count && i < block.threads; i++)
		if (threads[i].state == waiting) threads[i].state = State::ready;
}

void await(const void *barrier) {
	thread->awaited = barrier;
	thread->state = State::at_phase;
	yield();
	asm volatile("" ::: "memory");
}

void wake() { release(State::at_phase, 0, block.threads); }

void start_clocks() {
	if (clocks) return;
	clocks = true;
	for (unsigned i = 0; i < block.threads; i++) threads[i].knows.assign(block.threads + most_barriers, 0), threads[i].time = 1;
}

static const Clock &depart(Thread &t) {
	t.knows[t.number] = t.time++;
	return t.knows;
}

const Clock &depart() { return depart(*thread); }

// meet lets threads know all that each of them does.
static void meet(unsigned first, unsigned count) {
	if (!clocks) return;
	unsigned last = first + count < block.threads ? first + count : block.threads;
	Clock all(threads[first].knows.size());
	for (unsigned i = first; i < last; i++) join(all, depart(threads[i]));
	for (unsigned i = first; i < last; i++) threads[i].knows = all;
}

void block_barrier(int line) {
	asm volatile("" ::: "memory");
	if (block.exited)
		fault(CUDA_ERROR_LAUNCH_FAILED, "a thread is at the barrier in line %d, and %u have returned", line, block.exited);
	if (block.arrived && block.line != line)
		fault(CUDA_ERROR_LAUNCH_FAILED, "diverging barriers: threads wait in lines %d and %d", block.line, line);
	block.line = thread->line = line;
	block.unpublished = (block.arrived && block.unpublished) || thread->unpublished;
	if (++block.arrived == block.threads) {
		block.arrived = 0;
		block.interval = next_interval();
		meet(0, block.threads);
		release(State::at_barrier, 0, block.threads);
		return;
	}
	thread->state = State::at_barrier;
	yield();
	asm volatile("" ::: "memory");
}

void warp_barrier(unsigned mask, int line, bool orders_memory) {
	asm volatile("" ::: "memory");
	Warp *warp = thread->warp;
	if ((mask & warp->lanes) != warp->lanes)
		fault(CUDA_ERROR_LAUNCH_FAILED, "line %d: mask %08x leaves lanes of the warp out, which the emulator does not know", line, mask);
	if (warp->arrived && warp->line != line)
		fault(CUDA_ERROR_LAUNCH_FAILED, "diverging warp: lanes wait in lines %d and %d", warp->line, line);
	warp->line = thread->line = line;
	warp->arrived |= 1u << thread->lane;
	if (warp->arrived == warp->lanes) {
		warp->arrived = 0;
		warp->generation++;
		warp->memory_generation += orders_memory;
		if (orders_memory) meet(thread->number - thread->lane, 32);
		release(State::at_warp_barrier, thread->number - thread->lane, 32);
		return;
	}
	thread->state = State::at_warp_barrier;
	yield();
	asm volatile("" ::: "memory");
}

static void leave() {
	if (block.arrived)
		fault(CUDA_ERROR_LAUNCH_FAILED, "a thread returned while others wait at the barrier in line %d", block.line);
	if (thread->warp->arrived)
		fault(CUDA_ERROR_LAUNCH_FAILED, "a lane returned while others of its warp wait in line %d", thread->warp->line);
	thread->state = State::done;
	if (++block.exited == block.threads && copies_fly())
		fault(CUDA_ERROR_LAUNCH_FAILED, "the block ends before its tensor copies, and its memory with it");
	yield();
}

static void fiber_main() {
	launch.kernel->call(launch.parameters);
	leave();
}

// prepare lays a thread's first frame, as fiber_switch would have left it.
static void prepare(Thread &t, unsigned number) {
	if (!t.stack) {
		char *pages = (char *)mmap(nullptr, stack_bytes + 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		if (pages == MAP_FAILED) abort();
		mprotect(pages, 4096, PROT_NONE);
		t.stack = pages + 4096;
	}
	t.number = number, t.lane = number % 32, t.warp = &warps[number / 32];
	t.index = {number % block.size.x, number / block.size.x % block.size.y, number / (block.size.x * block.size.y)};
	t.state = State::ready, t.line = 0;
	t.copies.clear(), t.copy_group = 0;
	t.products.clear(), t.product_group = 0, t.unpublished = false;
	void **top = (void **)(t.stack + stack_bytes - 64 - number % 16 * 192); // not all in the same cache sets
	*--top = nullptr;
	*--top = (void *)fiber_main;
	for (int saved = 0; saved < 6; saved++) *--top = nullptr;
	t.stack_pointer = top;
}

// shuffle orders warps, and the lanes within each.
static void shuffle() {
	unsigned count = block.threads, full = count / 32;
	order.resize(count);
	std::vector<unsigned> warp_order((count + 31) / 32);
	permute(warp_order.data(), full);
	if (count % 32) warp_order[full] = full;
	unsigned at = 0;
	for (unsigned w : warp_order) {
		unsigned lanes = count - 32 * w < 32 ? count - 32 * w : 32, lane_order[32];
		permute(lane_order, lanes);
		for (unsigned i = 0; i < lanes; i++) order[at++] = 32 * w + lane_order[i];
	}
}

static void run_block() {
	block.arrived = block.exited = 0;
	block.unpublished = clocks = false;
	forget_barriers();
	forget_tiles();
	block.interval = next_interval();
	forget_shared();
	for (unsigned w = 0; w < warps.size(); w++) {
		unsigned left = block.threads - 32 * w;
		warps[w].lanes = left >= 32 ? ~0u : (1u << left) - 1;
		warps[w].arrived = 0;
	}
	for (unsigned i = 0; i < block.threads; i++) prepare(threads[i], i);
	shuffle();
	turn = 0;
	thread = &threads[order[0]];
	fiber_switch(&launch.scheduler, thread->stack_pointer);
}

int run(const Kernel &kernel, void **parameters, Index grid, Index size, size_t dynamic_bytes) {
	block.size = size, block.grid = grid;
	block.threads = size.x * size.y * size.z;
	if (threads.size() < block.threads) threads.resize(block.threads);
	warps.resize((block.threads + 31) / 32);
	set_dynamic(dynamic_bytes);
	launch = {&kernel, parameters, nullptr, true, CUDA_SUCCESS};
	size_t blocks = (size_t)grid.x * grid.y * grid.z, first = pick(blocks);
	for (size_t i = 0; i < blocks && launch.code == CUDA_SUCCESS; i++) {
		size_t b = (first + i) % blocks;
		block.index = {unsigned(b % grid.x), unsigned(b / grid.x % grid.y), unsigned(b / ((size_t)grid.x * grid.y))};
		run_block();
	}
	launch.active = false;
	return launch.code;
}

} // namespace emulator
