// Allocations: filled with NaN, in front of a page that faults where the host
// itself goes too far.
#include <sys/mman.h>

#include <cstring>
#include <map>

#include "device.h"

namespace emulator {

constexpr size_t page = 4096, alignment = 256;

struct Allocation {
	size_t bytes;
	Home home;
	char *pages;
	size_t mapped;
};

static std::map<uintptr_t, Allocation> allocations; // by address
static size_t used;
static uintptr_t last_address, last_bytes; // found last

size_t memory_total() { return setting("CUDA_EMULATOR_MEMORY", size_t(1) << 30); }
size_t memory_free() { return memory_total() - used; }

CUresult allocate(Home home, size_t bytes, void **address) {
	if (!bytes) return CUDA_ERROR_INVALID_VALUE;
	if (home == Home::device && bytes > memory_free()) return CUDA_ERROR_OUT_OF_MEMORY;
	size_t usable = (bytes + page - 1) / page * page, mapped = usable + 2 * page;
	char *pages = (char *)mmap(nullptr, mapped, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (pages == MAP_FAILED || mprotect(pages + page, usable, PROT_READ | PROT_WRITE)) return CUDA_ERROR_OUT_OF_MEMORY;
	char *start = pages + page + (usable - bytes) / alignment * alignment; // as near to the end as may be
	memset(start, 0xff, bytes);
	allocations[(uintptr_t)start] = {bytes, home, pages, mapped};
	if (home == Home::device) used += bytes;
	*address = start;
	return CUDA_SUCCESS;
}

CUresult release(Home home, void *address) {
	auto found = allocations.find((uintptr_t)address);
	if (found == allocations.end() || found->second.home != home) return CUDA_ERROR_INVALID_VALUE;
	munmap(found->second.pages, found->second.mapped);
	if (home == Home::device) used -= found->second.bytes;
	allocations.erase(found);
	last_bytes = 0;
	return CUDA_SUCCESS;
}

static const std::pair<const uintptr_t, Allocation> *find(uintptr_t address) {
	auto next = allocations.upper_bound(address);
	if (next == allocations.begin()) return nullptr;
	--next;
	return address - next->first < next->second.bytes ? &*next : nullptr;
}

size_t size_at(const void *address) {
	uintptr_t at = (uintptr_t)address;
	if (at - last_address >= last_bytes) {
		auto found = find(at);
		if (!found) return 0;
		last_address = found->first, last_bytes = found->second.bytes;
	}
	return last_address + last_bytes - at;
}

static bool within(uintptr_t address, size_t bytes, Home home) {
	auto found = find(address);
	return found && found->second.home == home && bytes <= found->first + found->second.bytes - address;
}

bool on_device(CUdeviceptr address, size_t bytes) { return within(address, bytes, Home::device); }
bool pinned(const void *address, size_t bytes) { return within((uintptr_t)address, bytes, Home::host); }

bool range(CUdeviceptr address, CUdeviceptr *base, size_t *bytes) {
	auto found = find(address);
	if (!found) return false;
	if (base) *base = found->first;
	if (bytes) *bytes = found->second.bytes;
	return true;
}

} // namespace emulator
