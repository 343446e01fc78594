// The driver's interface, as far as the worker uses it.
#include <cuda.h>

#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <random>
#include <regex>
#include <string>
#include <vector>

#include "device.h"
#include "stream.h"

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
static std::string first_text, running_name;

void report(int code, const char *format, ...) {
	if (first_code) return;
	char what[768];
	va_list arguments;
	va_start(arguments, format);
	vsnprintf(what, sizeof what, format, arguments);
	va_end(arguments);
	first_code = code, first_text = running_name + ": " + what;
	fprintf(stderr, "emulated CUDA device: %s\n", first_text.c_str());
}

CUresult sticky() { return (CUresult)first_code; }

static std::map<std::string, Kernel> &kernels() {
	static std::map<std::string, Kernel> all;
	return all;
}

void enlist(const Kernel &kernel) { kernels()[kernel.name] = kernel; }

constexpr size_t static_limit = 48 << 10; // of shared memory, without asking

struct Function {
	const Kernel *kernel;
	int max_threads, static_bytes;
	int dynamic_bytes; // allowed
};

struct Module {
	std::map<std::string, Function> functions;
};

struct Context {
	CUdevice device;
};

static thread_local std::vector<Context *> contexts; // of this thread, the current one last
static Context primary[16];

static std::recursive_mutex &lock() {
	static auto *mutex = new std::recursive_mutex; // outlives the threads that end after main
	return *mutex;
}

static int devices() { return setting("CUDA_EMULATOR_DEVICES", 1); }
static int compute() { return setting("CUDA_EMULATOR_COMPUTE", 90); }
static int version() { return setting("CUDA_EMULATOR_VERSION", 12000); }

// shared_limit is what a block can ask for, as devices of that capability have it.
static int shared_limit() { return compute() == 90 ? int(dynamic_limit) : compute() == 80 ? 163 << 10 : 99 << 10; }

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

// entry adds one kernel; its parameters must be those that the host's version has.
static CUresult entry(Module &module, const std::string &name, const std::string &list, const std::string &body) {
	auto kernel = kernels().find(name);
	if (kernel == kernels().end()) return CUDA_SUCCESS; // PTX of others: its functions are not found
	if (sizes(list) != kernel->second.sizes) {
		fprintf(stderr, "emulated CUDA device: the parameters of %s differ between PTX and source\n", name.c_str());
		return CUDA_ERROR_INVALID_PTX;
	}
	static const std::regex threads(R"(\.maxntid (\d+))");
	int shared = shared_bytes(body);
	module.functions[name] = {&kernel->second, number(body, threads, 1024), shared, int(static_limit) - shared};
	return shared > (int)static_limit ? CUDA_ERROR_INVALID_PTX : CUDA_SUCCESS;
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

static CUresult load(Module &module, const std::string &ptx) {
	if (CUresult r = suitable(ptx)) return r;
	const std::string mark = ".entry ";
	for (size_t at = ptx.find(mark); at != std::string::npos;) {
		size_t name = at + mark.size(), open = ptx.find('(', name), close = ptx.find(')', open), next = ptx.find(mark, name);
		if (close == std::string::npos) return CUDA_ERROR_INVALID_PTX;
		CUresult r = entry(module, ptx.substr(name, open - name), ptx.substr(open, close - open), ptx.substr(close, next - close));
		if (r) return r;
		at = next;
	}
	return CUDA_SUCCESS;
}

struct Grid {
	Index blocks, threads;
	size_t dynamic_bytes;
};

static bool launchable(const Function &f, const Grid &g) {
	size_t threads = (size_t)g.threads.x * g.threads.y * g.threads.z;
	return g.blocks.x && g.blocks.y && g.blocks.z && threads && threads <= (size_t)f.max_threads && g.blocks.x < 1u << 31 &&
	       g.blocks.y < 1u << 16 && g.blocks.z < 1u << 16 && g.dynamic_bytes <= (size_t)f.dynamic_bytes;
}

// The running kernel's parameters lie here, where kernels may read.
alignas(64) static char parameter_space[4096];
static void *parameter_pointers[256];

// start copies the parameters, as the caller's may change at once.
static CUresult start(CUstream stream, Function *f, const Grid &grid, void **parameters) {
	if (!launchable(*f, grid)) return CUDA_ERROR_INVALID_VALUE;
	std::vector<char> values;
	std::vector<size_t> offsets;
	for (size_t i = 0; i < f->kernel->sizes.size(); i++) {
		values.resize((values.size() + 63) / 64 * 64);
		offsets.push_back(values.size());
		values.insert(values.end(), (char *)parameters[i], (char *)parameters[i] + f->kernel->sizes[i]);
	}
	if (values.size() > sizeof parameter_space) return CUDA_ERROR_INVALID_VALUE;
	return enqueue((Stream *)stream, [f, grid, values, offsets] {
		memcpy(parameter_space, values.data(), values.size());
		for (size_t i = 0; i < offsets.size(); i++) parameter_pointers[i] = parameter_space + offsets[i];
		running_name = f->kernel->name;
		return run(f->kernel->call, parameter_pointers, grid.blocks, grid.threads, grid.dynamic_bytes);
	});
}

// copy moves bytes in a stream. Pageable memory of the host is read or written before the call returns.
static CUresult copy(CUstream stream, void *to, const void *from, size_t bytes, bool wait) {
	CUresult r = enqueue((Stream *)stream, [to, from, bytes] {
		memcpy(to, from, bytes);
		return CUDA_SUCCESS;
	});
	return r || !wait ? r : wait_stream((Stream *)stream);
}

template <class T> static CUresult fill(CUstream stream, CUdeviceptr to, T value, size_t count, bool wait) {
	if (!on_device(to, count * sizeof(T)) || to % sizeof(T)) return CUDA_ERROR_INVALID_VALUE;
	CUresult r = enqueue((Stream *)stream, [=] {
		std::fill_n((T *)to, count, value);
		return CUDA_SUCCESS;
	});
	return r || !wait ? r : wait_stream((Stream *)stream);
}

static Context *current() { return contexts.empty() ? nullptr : contexts.back(); }

} // namespace emulator

using namespace emulator;

#define API extern "C" __attribute__((visibility("default"))) CUresult
// Most calls need a context, and fail for ever after a fault.
#define ENTER                                                  \
	std::lock_guard<std::recursive_mutex> guard(lock());       \
	if (!current()) return CUDA_ERROR_INVALID_CONTEXT;         \
	if (sticky()) return sticky()
#define DEVICE(d) \
	if (d < 0 || d >= devices()) return CUDA_ERROR_INVALID_DEVICE

API cuInit(unsigned flags) { return flags ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS; }
API cuDriverGetVersion(int *v) { return *v = version(), CUDA_SUCCESS; }

API cuGetErrorName(CUresult code, const char **name) {
	switch ((int)code) {
	case CUDA_SUCCESS: return *name = "CUDA_SUCCESS", CUDA_SUCCESS;
	case CUDA_ERROR_INVALID_VALUE: return *name = "CUDA_ERROR_INVALID_VALUE", CUDA_SUCCESS;
	case CUDA_ERROR_OUT_OF_MEMORY: return *name = "CUDA_ERROR_OUT_OF_MEMORY", CUDA_SUCCESS;
	case CUDA_ERROR_ILLEGAL_ADDRESS: return *name = "CUDA_ERROR_ILLEGAL_ADDRESS", CUDA_SUCCESS;
	case CUDA_ERROR_MISALIGNED_ADDRESS: return *name = "CUDA_ERROR_MISALIGNED_ADDRESS", CUDA_SUCCESS;
	case CUDA_ERROR_LAUNCH_FAILED: return *name = "CUDA_ERROR_LAUNCH_FAILED", CUDA_SUCCESS;
	}
	return *name = nullptr, CUDA_ERROR_INVALID_VALUE;
}

// The text of a fault says what the kernel did, which a real driver cannot.
API cuGetErrorString(CUresult code, const char **text) {
	std::lock_guard<std::recursive_mutex> guard(lock());
	if (code && code == sticky()) return *text = first_text.c_str(), CUDA_SUCCESS;
	return cuGetErrorName(code, text);
}

API cuDeviceGetCount(int *n) { return *n = devices(), CUDA_SUCCESS; }
API cuDeviceGet(CUdevice *d, int ordinal) {
	DEVICE(ordinal);
	return *d = ordinal, CUDA_SUCCESS;
}
API cuDeviceGetName(char *name, int n, CUdevice d) {
	DEVICE(d);
	return snprintf(name, n, "emulated device"), CUDA_SUCCESS;
}
API cuDeviceTotalMem_v2(size_t *bytes, CUdevice d) {
	DEVICE(d);
	return *bytes = memory_total(), CUDA_SUCCESS;
}
API cuDeviceGetUuid(CUuuid *id, CUdevice d) {
	DEVICE(d);
	memset(id, 0, sizeof *id);
	return id->bytes[15] = d, CUDA_SUCCESS;
}
API cuDeviceGetAttribute(int *v, CUdevice_attribute attribute, CUdevice d) {
	DEVICE(d);
	static const std::map<int, int> values = {
		{CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK, 1024},
		{CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X, 1024},
		{CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y, 1024},
		{CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z, 64},
		{CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X, 2147483647},
		{CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y, 65535},
		{CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z, 65535},
		{CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK, int(static_limit)},
		{CU_DEVICE_ATTRIBUTE_WARP_SIZE, 32},
		{CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 2},
		{CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT, 2},
		{CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING, 1},
		{CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID, 0},
	};
	if (attribute == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR) return *v = compute() / 10, CUDA_SUCCESS;
	if (attribute == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR) return *v = compute() % 10, CUDA_SUCCESS;
	if (attribute == CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN) return *v = shared_limit(), CUDA_SUCCESS;
	auto found = values.find(attribute);
	return *v = found == values.end() ? 0 : found->second, CUDA_SUCCESS;
}

API cuCtxCreate_v2(CUcontext *c, unsigned, CUdevice d) {
	DEVICE(d);
	if (sticky()) return sticky();
	contexts.push_back(new Context{d});
	return *c = (CUcontext)contexts.back(), CUDA_SUCCESS;
}
API cuCtxDestroy_v2(CUcontext c) {
	std::lock_guard<std::recursive_mutex> guard(lock());
	if (!c) return CUDA_ERROR_INVALID_CONTEXT;
	CUresult r = wait_all();
	if (current() == (Context *)c) contexts.pop_back();
	delete (Context *)c;
	return r;
}
API cuCtxPushCurrent_v2(CUcontext c) { return contexts.push_back((Context *)c), CUDA_SUCCESS; }
API cuCtxPopCurrent_v2(CUcontext *c) {
	if (contexts.empty()) return CUDA_ERROR_INVALID_CONTEXT;
	if (c) *c = (CUcontext)contexts.back();
	return contexts.pop_back(), CUDA_SUCCESS;
}
API cuCtxSetCurrent(CUcontext c) {
	if (!contexts.empty()) contexts.pop_back();
	if (c) contexts.push_back((Context *)c);
	return CUDA_SUCCESS;
}
API cuCtxGetCurrent(CUcontext *c) { return *c = (CUcontext)current(), CUDA_SUCCESS; }
API cuCtxGetDevice(CUdevice *d) {
	if (!current()) return CUDA_ERROR_INVALID_CONTEXT;
	return *d = current()->device, CUDA_SUCCESS;
}
API cuCtxSynchronize() {
	ENTER;
	return wait_all();
}
API cuDevicePrimaryCtxRetain(CUcontext *c, CUdevice d) {
	DEVICE(d);
	primary[d % 16].device = d;
	return *c = (CUcontext)&primary[d % 16], CUDA_SUCCESS;
}
API cuDevicePrimaryCtxRelease_v2(CUdevice d) {
	DEVICE(d);
	return CUDA_SUCCESS;
}

API cuMemAlloc_v2(CUdeviceptr *p, size_t bytes) {
	ENTER;
	return allocate(Home::device, bytes, (void **)p);
}
API cuMemFree_v2(CUdeviceptr p) {
	ENTER;
	CUresult r = wait_all();
	return r ? r : p ? release(Home::device, (void *)p) : CUDA_SUCCESS;
}
API cuMemAllocHost_v2(void **p, size_t bytes) {
	ENTER;
	return allocate(Home::host, bytes, p);
}
API cuMemFreeHost(void *p) {
	ENTER;
	CUresult r = wait_all();
	return r ? r : release(Home::host, p);
}
API cuMemGetInfo_v2(size_t *left, size_t *total) {
	ENTER;
	return *left = memory_free(), *total = memory_total(), CUDA_SUCCESS;
}
API cuMemGetAddressRange_v2(CUdeviceptr *base, size_t *bytes, CUdeviceptr p) {
	ENTER;
	return range(p, base, bytes) ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}

API cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void *from, size_t n, CUstream s) {
	ENTER;
	return on_device(to, n) ? copy(s, (void *)to, from, n, !pinned(from, n)) : CUDA_ERROR_INVALID_VALUE;
}
API cuMemcpyDtoHAsync_v2(void *to, CUdeviceptr from, size_t n, CUstream s) {
	ENTER;
	return on_device(from, n) ? copy(s, to, (void *)from, n, !pinned(to, n)) : CUDA_ERROR_INVALID_VALUE;
}
API cuMemcpyDtoDAsync_v2(CUdeviceptr to, CUdeviceptr from, size_t n, CUstream s) {
	ENTER;
	return on_device(to, n) && on_device(from, n) ? copy(s, (void *)to, (void *)from, n, false) : CUDA_ERROR_INVALID_VALUE;
}
API cuMemcpyHtoD_v2(CUdeviceptr to, const void *from, size_t n) {
	ENTER;
	return on_device(to, n) ? copy(nullptr, (void *)to, from, n, true) : CUDA_ERROR_INVALID_VALUE;
}
API cuMemcpyDtoH_v2(void *to, CUdeviceptr from, size_t n) {
	ENTER;
	return on_device(from, n) ? copy(nullptr, to, (void *)from, n, true) : CUDA_ERROR_INVALID_VALUE;
}
API cuMemcpyDtoD_v2(CUdeviceptr to, CUdeviceptr from, size_t n) { return cuMemcpyDtoDAsync_v2(to, from, n, nullptr); }
API cuMemsetD8_v2(CUdeviceptr to, unsigned char v, size_t n) {
	ENTER;
	return fill(nullptr, to, v, n, true);
}
API cuMemsetD32_v2(CUdeviceptr to, unsigned v, size_t n) {
	ENTER;
	return fill(nullptr, to, v, n, true);
}
API cuMemsetD8Async(CUdeviceptr to, unsigned char v, size_t n, CUstream s) {
	ENTER;
	return fill(s, to, v, n, false);
}
API cuMemsetD32Async(CUdeviceptr to, unsigned v, size_t n, CUstream s) {
	ENTER;
	return fill(s, to, v, n, false);
}

API cuStreamCreateWithPriority(CUstream *s, unsigned flags, int priority) {
	ENTER;
	return *s = (CUstream) new Stream{(flags & CU_STREAM_NON_BLOCKING) != 0, priority}, CUDA_SUCCESS;
}
API cuStreamCreate(CUstream *s, unsigned flags) { return cuStreamCreateWithPriority(s, flags, 0); }
API cuStreamDestroy_v2(CUstream s) {
	ENTER;
	CUresult r = wait_stream((Stream *)s);
	delete (Stream *)s;
	return r;
}
API cuStreamSynchronize(CUstream s) {
	ENTER;
	return wait_stream((Stream *)s);
}
API cuStreamQuery(CUstream s) {
	ENTER;
	CUresult r = poll();
	return r ? r : idle((Stream *)s) ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
}
API cuStreamWaitEvent(CUstream s, CUevent e, unsigned) {
	ENTER;
	return enqueue_wait((Stream *)s, (Event *)e);
}
API cuStreamGetFlags(CUstream s, unsigned *flags) {
	return *flags = s && ((Stream *)s)->non_blocking ? CU_STREAM_NON_BLOCKING : CU_STREAM_DEFAULT, CUDA_SUCCESS;
}
API cuStreamGetPriority(CUstream s, int *priority) { return *priority = s ? ((Stream *)s)->priority : 0, CUDA_SUCCESS; }
API cuCtxGetStreamPriorityRange(int *least, int *greatest) { return *least = 0, *greatest = -5, CUDA_SUCCESS; }

API cuEventCreate(CUevent *e, unsigned) {
	ENTER;
	return *e = (CUevent) new Event{}, CUDA_SUCCESS;
}
API cuEventDestroy_v2(CUevent e) {
	ENTER;
	CUresult r = wait_event((Event *)e);
	delete (Event *)e;
	return r;
}
API cuEventRecord(CUevent e, CUstream s) {
	ENTER;
	return record((Stream *)s, (Event *)e);
}
API cuEventSynchronize(CUevent e) {
	ENTER;
	return wait_event((Event *)e);
}
API cuEventQuery(CUevent e) {
	ENTER;
	CUresult r = poll();
	auto event = (Event *)e;
	return r ? r : event->completed >= event->recorded ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
}
API cuEventElapsedTime(float *ms, CUevent from, CUevent to) {
	ENTER;
	auto a = (Event *)from, b = (Event *)to;
	if (!a->recorded || !b->recorded) return CUDA_ERROR_INVALID_HANDLE;
	if (a->completed < a->recorded || b->completed < b->recorded) return CUDA_ERROR_NOT_READY;
	*ms = (b->time.tv_sec - a->time.tv_sec) * 1e3f + (b->time.tv_nsec - a->time.tv_nsec) * 1e-6f;
	return CUDA_SUCCESS;
}

API cuModuleLoadData(CUmodule *m, const void *image) {
	ENTER;
	auto module = new Module;
	CUresult r = load(*module, (const char *)image);
	if (r) delete module;
	else *m = (CUmodule)module;
	return r;
}
API cuModuleLoadDataEx(CUmodule *m, const void *image, unsigned, CUjit_option *, void **) { return cuModuleLoadData(m, image); }
API cuModuleUnload(CUmodule m) {
	ENTER;
	CUresult r = wait_all();
	delete (Module *)m;
	return r;
}
API cuModuleGetFunction(CUfunction *f, CUmodule m, const char *name) {
	ENTER;
	auto &functions = ((Module *)m)->functions;
	auto found = functions.find(name);
	if (found == functions.end()) return CUDA_ERROR_NOT_FOUND;
	return *f = (CUfunction)&found->second, CUDA_SUCCESS;
}
API cuFuncGetAttribute(int *v, CUfunction_attribute attribute, CUfunction function) {
	auto f = (Function *)function;
	switch (attribute) {
	case CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK: return *v = f->max_threads, CUDA_SUCCESS;
	case CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES: return *v = f->static_bytes, CUDA_SUCCESS;
	case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES: return *v = f->dynamic_bytes, CUDA_SUCCESS;
	default: return *v = 0, CUDA_SUCCESS;
	}
}
API cuFuncSetAttribute(CUfunction function, CUfunction_attribute attribute, int v) {
	ENTER;
	auto f = (Function *)function;
	if (attribute != CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES) return CUDA_SUCCESS;
	if (v < 0 || v + f->static_bytes > shared_limit()) return CUDA_ERROR_INVALID_VALUE;
	return f->dynamic_bytes = v, CUDA_SUCCESS;
}

API cuLaunchKernel(CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned shared, CUstream s,
                   void **parameters, void **extra) {
	ENTER;
	if (!f) return CUDA_ERROR_INVALID_HANDLE;
	if (extra) return CUDA_ERROR_NOT_SUPPORTED;
	return start(s, (Function *)f, {{gx, gy, gz}, {bx, by, bz}, shared}, parameters);
}
// Attributes of a launch that only change when it begins are no matter here.
API cuLaunchKernelEx(const CUlaunchConfig *c, CUfunction f, void **parameters, void **extra) {
	for (unsigned i = 0; i < c->numAttrs; i++)
		if (c->attrs[i].id != CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION) return CUDA_ERROR_NOT_SUPPORTED;
	return cuLaunchKernel(f, c->gridDimX, c->gridDimY, c->gridDimZ, c->blockDimX, c->blockDimY, c->blockDimZ, c->sharedMemBytes, c->hStream,
	                      parameters, extra);
}
API cuTensorMapEncodeTiled(CUtensorMap *map, CUtensorMapDataType, unsigned rank, void *address, const cuuint64_t *size, const cuuint64_t *strides,
                           const cuuint32_t *box, const cuuint32_t *step, CUtensorMapInterleave, CUtensorMapSwizzle, CUtensorMapL2promotion,
                           CUtensorMapFloatOOBfill) {
	if (!map || rank < 1 || rank > 5 || (uintptr_t)address % 16 || (uintptr_t)map % 64) return CUDA_ERROR_INVALID_VALUE;
	for (unsigned i = 0; i < rank; i++)
		if (!size[i] || !box[i] || box[i] > 256 || !step[i] || (i + 1 < rank && strides[i] % 16)) return CUDA_ERROR_INVALID_VALUE;
	memcpy(map, &address, sizeof address);
	return CUDA_SUCCESS;
}
