// Every access of a kernel, checked. The compiler calls __tsan_read4 and the
// like (-fsanitize=thread); these stand in the place of ThreadSanitizer's.
#include <cuda.h>
#include <dlfcn.h>

#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include "device.h"
#include "tensor.h"

// Static shared memory is this section; the linker knows its ends.
extern "C" char __start_device_shared[], __stop_device_shared[];
// Constants of the kernels lie in the library itself, between these.
extern "C" char __ehdr_start[] __attribute__((visibility("hidden"))), _end[] __attribute__((visibility("hidden")));

namespace emulator {

// Shadow remembers who touched two bytes of shared memory last. Accesses of
// different intervals are ordered by a barrier of the block, those of a warp
// also by __syncwarp between them.
struct Shadow {
	uint32_t write_interval, write_generation;
	uint32_t read_interval, read_generation;
	uint16_t writer, reader;
};

enum : uint16_t {
	several_lanes = 0x8000, // of the warp in the low bits
	several_warps = 0xfffe,
	atomics = 0xffff,
};

static size_t dynamic_bytes;
static std::vector<Shadow> static_shadow, dynamic_shadow;

uint32_t next_interval() {
	static uint32_t interval;
	return ++interval;
}

// forget_shared fills shared memory with NaN, as nothing is known of it when a block begins.
void forget_shared() {
	memset(__start_device_shared, 0xff, __stop_device_shared - __start_device_shared);
	memset(dynamic_shared, 0xff, dynamic_bytes);
}

void set_dynamic(size_t bytes) {
	dynamic_bytes = bytes;
	static_shadow.resize((__stop_device_shared - __start_device_shared + 1) / 2);
	if (dynamic_shadow.size() < bytes / 2 + 1) dynamic_shadow.resize(bytes / 2 + 1);
}

// where names the source line of an instruction, as far as binutils are there.
std::string where(const void *caller) {
	Dl_info library;
	if (!caller || !dladdr(caller, &library)) return "";
	char command[512], line[256] = "";
	snprintf(command, sizeof command, "addr2line -s -e '%s' %#zx 2>/dev/null", library.dli_fname,
	         (size_t)((char *)caller - (char *)library.dli_fbase) - 1);
	if (FILE *output = popen(command, "r")) {
		if (!fgets(line, sizeof line, output)) *line = 0;
		pclose(output);
	}
	line[strcspn(line, "\n")] = 0;
	return *line ? std::string(" at ") + line : "";
}

[[noreturn]] static void bad_access(int code, const char *what, const void *address, size_t size, Kind kind, const void *caller) {
	const char *verb[] = {"read", "write", "atomic operation"};
	fault(code, "%s: %s of %zu bytes at %p%s", what, verb[(int)kind], size, address, where(caller).c_str());
}

static bool ordered(uint32_t interval, uint32_t generation, unsigned warp) {
	if (interval != block.interval) return true;
	return warp == thread->number / 32 && generation != thread->warp->memory_generation;
}

[[noreturn]] static void race(const Shadow &s, bool with_write, const char *verb, const void *caller) {
	unsigned other = with_write ? s.writer : s.reader;
	const char *did = with_write ? "written" : "read";
	std::string who = other == several_warps ? "several warps" : other == atomics ? "atomic operations"
	                : other >= several_lanes ? "several lanes" : "thread " + std::to_string(other);
	fault(CUDA_ERROR_LAUNCH_FAILED, "race in shared memory: %s of what %s has %s since the last barrier%s", verb, who.c_str(), did,
	      where(caller).c_str());
}

static unsigned warp_of(uint16_t who) { return who >= several_lanes ? who - several_lanes : who / 32u; }

static bool write_is_ordered(const Shadow &s) {
	if (s.writer == thread->number) return true;
	return ordered(s.write_interval, s.write_generation, s.writer == atomics ? ~0u : s.writer / 32u);
}

static bool read_is_ordered(const Shadow &s) {
	if (s.reader == thread->number) return true;
	return ordered(s.read_interval, s.read_generation, s.reader == several_warps ? ~0u : warp_of(s.reader));
}

static void note_read(Shadow &s) {
	uint16_t self = thread->number;
	if (s.read_interval != block.interval || s.reader == self) s.reader = self;
	else if (s.reader == several_warps || warp_of(s.reader) != thread->number / 32) s.reader = several_warps;
	else s.reader = several_lanes + thread->number / 32;
	s.read_interval = block.interval, s.read_generation = thread->warp->memory_generation;
}

static void shared_access(Shadow *s, size_t size, Kind kind, const void *caller) {
	for (Shadow *last = s + (size + 1) / 2; s < last; s++) {
		bool among_atomics = kind == Kind::atomic && s->writer == atomics;
		if (!among_atomics && !write_is_ordered(*s)) race(*s, true, kind == Kind::read ? "a read" : "a write", caller);
		if (kind == Kind::read) {
			note_read(*s);
			continue;
		}
		if (!read_is_ordered(*s)) race(*s, false, "a write", caller);
		s->write_interval = block.interval, s->write_generation = thread->warp->memory_generation;
		s->writer = kind == Kind::atomic ? (uint16_t)atomics : (uint16_t)thread->number;
	}
}

static inline bool inside(const void *address, size_t size, const char *from, size_t bytes) {
	size_t at = (const char *)address - from;
	return at < bytes && size <= bytes - at;
}

void access(const void *address, size_t size, Kind kind, const void *caller) {
	if (!running()) return;
	if (inside(address, size, thread->stack, stack_bytes)) return;
	size_t fixed = __stop_device_shared - __start_device_shared;
	if (inside(address, size, __start_device_shared, fixed))
		return shared_access(&static_shadow[((char *)address - __start_device_shared) / 2], size, kind, caller);
	if (inside(address, size, dynamic_shared, dynamic_bytes) && tile_access(address, size, kind, caller)) return;
	if (inside(address, size, dynamic_shared, dynamic_bytes))
		return shared_access(&dynamic_shadow[((char *)address - dynamic_shared) / 2], size, kind, caller);
	if (size_t end = size_at(address)) {
		if (size > end) bad_access(CUDA_ERROR_ILLEGAL_ADDRESS, "out of bounds", address, size, kind, caller);
		return;
	}
	if (kind == Kind::read && inside(address, size, __ehdr_start, _end - __ehdr_start)) return;
	bad_access(CUDA_ERROR_ILLEGAL_ADDRESS, "illegal address", address, size, kind, caller);
}

// aligned is access by an instruction that wants its operand aligned.
static inline void aligned(const void *address, size_t size, Kind kind, const void *caller) {
	if (!running()) return;
	if ((uintptr_t)address % size) bad_access(CUDA_ERROR_MISALIGNED_ADDRESS, "misaligned address", address, size, kind, caller);
	access(address, size, kind, caller);
}

} // namespace emulator

using namespace emulator;

#define HOOK extern "C" __attribute__((visibility("hidden"))) void
#define ACCESS(name, size, kind) \
	HOOK __tsan_##name(void *address) { aligned(address, size, Kind::kind, __builtin_return_address(0)); }
ACCESS(read1, 1, read)
ACCESS(read2, 2, read)
ACCESS(read4, 4, read)
ACCESS(read8, 8, read)
ACCESS(read16, 16, read)
ACCESS(unaligned_read2, 2, read)
ACCESS(unaligned_read4, 4, read)
ACCESS(unaligned_read8, 8, read)
ACCESS(unaligned_read16, 16, read)
ACCESS(write1, 1, write)
ACCESS(write2, 2, write)
ACCESS(write4, 4, write)
ACCESS(write8, 8, write)
ACCESS(write16, 16, write)
ACCESS(unaligned_write2, 2, write)
ACCESS(unaligned_write4, 4, write)
ACCESS(unaligned_write8, 8, write)
ACCESS(unaligned_write16, 16, write)
HOOK __tsan_read_range(void *address, size_t size) { access(address, size, Kind::read, __builtin_return_address(0)); }
HOOK __tsan_write_range(void *address, size_t size) { access(address, size, Kind::write, __builtin_return_address(0)); }
HOOK __tsan_func_entry(void *) {}
HOOK __tsan_func_exit() {}
HOOK __tsan_init() {}
