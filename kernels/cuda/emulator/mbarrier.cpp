#include "mbarrier.h"

#include <algorithm>
#include <map>

#include "device.h"
#include "language.h"
#include "tensor.h"

namespace emulator {

struct Barrier {
	unsigned number, arrivals;
	unsigned missing; // arrivals of this phase
	int64_t bytes;    // that it was told of and that have not arrived
	uint32_t phase;   // under way
	Clock gathered, known; // of who has arrived; of who waits for the last phase
};

static std::map<const void *, Barrier> barriers; // by address

void forget_barriers() { barriers.clear(); }

void join(Clock &clock, const Clock &other) {
	for (size_t i = 0; i < clock.size(); i++) clock[i] = std::max(clock[i], other[i]);
}

static Barrier &find(const void *address) {
	auto found = barriers.find(address);
	if (found == barriers.end()) fault(CUDA_ERROR_LAUNCH_FAILED, "no barrier has been started at %p", address);
	return found->second;
}

static void use(const void *address, Kind kind) {
	if ((uintptr_t)address % 8) fault(CUDA_ERROR_MISALIGNED_ADDRESS, "misaligned barrier at %p", address);
	access(address, 8, kind, nullptr);
}

void barrier_start(void *address, unsigned arrivals) {
	use(address, Kind::write);
	if (!arrivals || arrivals >= 1u << 20) fault(CUDA_ERROR_LAUNCH_FAILED, "a barrier of %u arrivals", arrivals);
	if (barriers.count(address)) fault(CUDA_ERROR_LAUNCH_FAILED, "the barrier at %p is started a second time", address);
	if (barriers.size() == most_barriers) fault(CUDA_ERROR_LAUNCH_FAILED, "more than %u barriers, which the emulator does not know", most_barriers);
	start_clocks();
	Clock nothing(thread->knows.size());
	barriers[address] = {unsigned(barriers.size()), arrivals, arrivals, 0, 0, nothing, nothing};
	thread->unpublished = true;
}

static void advance(Barrier &b) {
	if (b.missing || b.bytes) return;
	b.missing = b.arrivals;
	b.gathered[block.threads + b.number] = ++b.phase;
	b.known = b.gathered;
	wake();
}

void barrier_arrive(void *address, unsigned bytes) {
	use(address, Kind::atomic);
	Barrier &b = find(address);
	if (!b.missing) fault(CUDA_ERROR_LAUNCH_FAILED, "one arrival more than the %u of the barrier's phase, which lacks %lld bytes", b.arrivals, (long long)b.bytes);
	join(b.gathered, depart());
	b.bytes += bytes;
	b.missing--;
	advance(b);
}

void deliver(const void *address, unsigned bytes) {
	Barrier &b = find(address);
	b.bytes -= bytes;
	if (b.bytes < 0) fault(CUDA_ERROR_LAUNCH_FAILED, "%u bytes arrive, %lld more than the barrier was told of", bytes, -(long long)b.bytes);
	advance(b);
}

// Copies land as late as may be, or while a thread asks for the phase.
void barrier_wait(void *address, unsigned parity) {
	use(address, Kind::atomic);
	Barrier &b = find(address);
	while (b.phase % 2 == parity) {
		if (pick(2) && land_copy()) continue;
		await(address);
	}
	join(thread->knows, b.known);
}

Landing landing(const void *address) {
	const Barrier &b = find(address);
	return {b.number, b.phase + 1};
}

bool known(const Landing &l) { return thread->knows[block.threads + l.barrier] >= l.phases; }

std::string lack(const void *address) {
	const Barrier &b = find(address);
	return std::to_string(b.missing) + " arrivals and " + std::to_string(b.bytes) + " bytes";
}

} // namespace emulator
