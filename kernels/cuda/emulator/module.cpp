#include "module.h"

#include <cstdio>
#include <cstring>
#include <regex>

#include "device.h"

namespace emulator {

static std::map<std::string, Kernel> &kernels() {
	static std::map<std::string, Kernel> all;
	return all;
}

void enlist(const Kernel &kernel) { kernels()[kernel.name] = kernel; }

// newest is the version of PTX that a driver reads, in tenths.
static int newest() { return version() >= 13000 ? 90 : version() >= 12000 ? 80 + version() % 1000 / 10 : 70 + version() % 1000 / 10; }

// sizes reads the bytes of an entry's parameters.
static std::vector<size_t> sizes(const std::string &list) {
	static const std::regex one(R"(\.param (?:\.align \d+ )?\.[a-z](\d+)[^,\[]*(?:\[(\d+)\])?)");
	std::vector<size_t> found;
	for (std::sregex_iterator p(list.begin(), list.end(), one), end; p != end; ++p)
		found.push_back(std::stoul((*p)[1]) / 8 * ((*p)[2].matched ? std::stoul((*p)[2]) : 1));
	return found;
}

static int number(const std::string &text, const std::regex &pattern, int otherwise) {
	std::smatch match;
	return std::regex_search(text, match, pattern) ? std::stoi(match[1]) : otherwise;
}

static int shared_bytes(const std::string &body) {
	static const std::regex one(R"(\n\s*\.shared [^\n]*\.[a-z](\d+) [^\n\[]*\[(\d+)\])");
	int total = 0;
	for (std::sregex_iterator p(body.begin(), body.end(), one), end; p != end; ++p) total += std::stoi((*p)[1]) / 8 * std::stoi((*p)[2]);
	return total;
}

// add adds one kernel; its parameters must be those that the host's version has.
CUresult add(Module &module, const Entry &e) {
	auto kernel = kernels().find(e.name);
	if (kernel == kernels().end()) return CUDA_SUCCESS; // of others: their functions are not found
	if (e.sizes != kernel->second.sizes) {
		fprintf(stderr, "emulated CUDA device: the parameters of %s differ between module and source\n", e.name.c_str());
		return CUDA_ERROR_INVALID_PTX;
	}
	module.functions[e.name] = {&kernel->second, e.threads, e.shared, int(static_limit) - e.shared};
	return e.shared > (int)static_limit ? CUDA_ERROR_INVALID_PTX : CUDA_SUCCESS;
}

static CUresult suitable(const std::string &ptx) {
	std::smatch match;
	if (!std::regex_search(ptx, match, std::regex(R"(\.version (\d+)\.(\d+))"))) return CUDA_ERROR_INVALID_PTX;
	if (std::stoi(match[1]) * 10 + std::stoi(match[2]) > newest()) return CUDA_ERROR_UNSUPPORTED_PTX_VERSION;
	if (!std::regex_search(ptx, match, std::regex(R"(\.target sm_(\d+)(a?))"))) return CUDA_ERROR_INVALID_PTX;
	int target = std::stoi(match[1]);
	return match[2].length() ? (target == compute() ? CUDA_SUCCESS : CUDA_ERROR_NO_BINARY_FOR_GPU)
	                         : (target <= compute() ? CUDA_SUCCESS : CUDA_ERROR_NO_BINARY_FOR_GPU);
}

static CUresult load_ptx(Module &module, const std::string &ptx) {
	if (CUresult r = suitable(ptx)) return r;
	static const std::regex threads(R"(\.maxntid (\d+))");
	const std::string mark = ".entry ";
	for (size_t at = ptx.find(mark); at != std::string::npos;) {
		size_t name = at + mark.size(), open = ptx.find('(', name), close = ptx.find(')', open), next = ptx.find(mark, name);
		if (close == std::string::npos) return CUDA_ERROR_INVALID_PTX;
		std::string body = ptx.substr(close, next - close);
		CUresult r = add(module, {ptx.substr(name, open - name), sizes(ptx.substr(open, close - open)), number(body, threads, 1024), shared_bytes(body)});
		if (r) return r;
		at = next;
	}
	return CUDA_SUCCESS;
}

CUresult load(Module &module, const char *image) { return is_cubin(image) ? load_cubin(module, image) : load_ptx(module, image); }

static bool launchable(const Function &f, const Grid &g) {
	size_t threads = (size_t)g.threads.x * g.threads.y * g.threads.z;
	return g.blocks.x && g.blocks.y && g.blocks.z && threads && threads <= (size_t)f.max_threads && g.blocks.x < 1u << 31 &&
	       g.blocks.y < 1u << 16 && g.blocks.z < 1u << 16 && g.dynamic_bytes <= (size_t)f.dynamic_bytes;
}

// The running kernel's parameters lie here, where kernels may read.
alignas(64) static char parameter_space[4096];
static void *parameter_pointers[256];

// start copies the parameters, as the caller's may change at once.
CUresult start(Stream *stream, Function *f, const Grid &grid, void **parameters) {
	if (!launchable(*f, grid)) return CUDA_ERROR_INVALID_VALUE;
	std::vector<char> values;
	std::vector<size_t> offsets;
	for (size_t i = 0; i < f->kernel->sizes.size(); i++) {
		values.resize((values.size() + 63) / 64 * 64);
		offsets.push_back(values.size());
		values.insert(values.end(), (char *)parameters[i], (char *)parameters[i] + f->kernel->sizes[i]);
	}
	if (values.size() > sizeof parameter_space) return CUDA_ERROR_INVALID_VALUE;
	return enqueue(stream, [f, grid, values, offsets] {
		memcpy(parameter_space, values.data(), values.size());
		for (size_t i = 0; i < offsets.size(); i++) parameter_pointers[i] = parameter_space + offsets[i];
		return run(*f->kernel, parameter_pointers, grid.blocks, grid.threads, grid.dynamic_bytes);
	});
}

} // namespace emulator
