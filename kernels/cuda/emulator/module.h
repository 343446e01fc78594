// Modules of PTX, and launches of what they hold. PTX says which kernels there
// are, and what they take; what runs is the host's version of the same name.
#pragma once
#include <cuda.h>

#include <map>
#include <string>

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

struct Grid {
	Index blocks, threads;
	size_t dynamic_bytes;
};

CUresult load(Module &module, const std::string &ptx);
CUresult start(Stream *stream, Function *f, const Grid &grid, void **parameters);

} // namespace emulator
