// Modules of PTX or machine code, and launches of what they hold. A module says
// which kernels there are, and what they take; what runs is the host's version
// of the same name.
#pragma once
#include <cuda.h>

#include <map>
#include <string>
#include <vector>

#include "runtime.h"
#include "stream.h"

namespace emulator {

constexpr size_t static_limit = 48 << 10; // of shared memory, without asking

struct Function {
	const Kernel *kernel;
	int max_threads, static_bytes;
	int dynamic_bytes; // allowed
};

struct Module {
	std::map<std::string, Function> functions;
};

// Entry is what a module says of a kernel.
struct Entry {
	std::string name;
	std::vector<size_t> sizes; // of parameters
	int threads, shared;       // at most, and declared
};

struct Grid {
	Index blocks, threads;
	size_t dynamic_bytes;
};

CUresult load(Module &module, const char *image);
CUresult add(Module &module, const Entry &entry);
bool is_cubin(const char *image);
CUresult load_cubin(Module &module, const char *image);
CUresult start(Stream *stream, Function *f, const Grid &grid, void **parameters);

} // namespace emulator
