// What the device is, what is left to chance, and the fault that it keeps.
#include "device.h"

#include <unistd.h>

#include <csignal>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <string>

namespace emulator {

size_t setting(const char *name, size_t otherwise) {
	const char *value = getenv(name);
	return value && *value ? strtoull(value, nullptr, 0) : otherwise;
}

static std::mt19937_64 &chance() {
	static std::mt19937_64 generator(setting("CUDA_EMULATOR_SEED", 1));
	return generator;
}

size_t pick(size_t n) { return n > 1 ? chance()() % n : 0; }

void permute(unsigned *order, unsigned n) {
	for (unsigned i = 0; i < n; i++) {
		size_t j = pick(i + 1);
		order[i] = order[j], order[j] = i;
	}
}

static int first_code;
static std::string first_text;

void report(int code, const char *format, ...) {
	if (first_code) return;
	char what[768];
	va_list arguments;
	va_start(arguments, format);
	vsnprintf(what, sizeof what, format, arguments);
	va_end(arguments);
	first_code = code, first_text = what;
	fprintf(stderr, "emulated CUDA device: %s\n", first_text.c_str());
}

CUresult misbehave(void *copied, size_t bytes) {
	static size_t copies;
	const char *text = getenv("CUDA_EMULATOR_FAULT");
	if (++copies < setting("CUDA_EMULATOR_FAULT_AT", 1) || !text) return CUDA_SUCCESS;
	std::string kind = text;
	if (kind == "crash") raise(SIGKILL);
	while (kind == "hang") pause();
	if (kind == "nan") memset(copied, 0xff, bytes);
	if (kind == "fault") report(CUDA_ERROR_ECC_UNCORRECTABLE, "an uncorrectable error of memory, as asked for");
	return sticky();
}

CUresult sticky() { return (CUresult)first_code; }
const char *sticky_text() { return first_text.c_str(); }

int devices() { return setting("CUDA_EMULATOR_DEVICES", 1); }
int compute() { return setting("CUDA_EMULATOR_COMPUTE", 90); }
int version() { return setting("CUDA_EMULATOR_VERSION", 12000); }

// shared_limit is what a block can ask for, as devices of that capability have it.
int shared_limit() { return compute() == 90 ? int(dynamic_limit) : compute() == 80 ? 163 << 10 : 99 << 10; }

} // namespace emulator
