// The driver's interface, as far as Sluice and gorgonia.org/cu use it.
#include <cuda.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <map>
#include <mutex>
#include <vector>

#include "device.h"
#include "module.h"
#include "stream.h"
#include "tensor.h"

namespace emulator {

struct Context {
	CUdevice device;
};

static thread_local std::vector<Context *> contexts; // of this thread, the current one last
static Context primary[16];

static std::recursive_mutex &lock() {
	static auto *mutex = new std::recursive_mutex; // outlives the threads that end after main
	return *mutex;
}

// copy moves bytes in a stream. Pageable memory of the host is read or written before the call returns.
static CUresult copy(Stream *stream, void *to, const void *from, size_t bytes, bool wait) {
	CUresult r = enqueue(stream, [to, from, bytes] {
		memcpy(to, from, bytes);
		return CUDA_SUCCESS;
	});
	return r || !wait ? r : wait_stream(stream);
}

static CUresult copy_to_host(Stream *stream, void *to, CUdeviceptr from, size_t bytes, bool wait) {
	CUresult r = enqueue(stream, [=] {
		memcpy(to, (void *)from, bytes);
		return misbehave(to, bytes);
	});
	return r || !wait ? r : wait_stream(stream);
}

template <class T> static CUresult fill(Stream *stream, CUdeviceptr to, T value, size_t count, bool wait) {
	if (!on_device(to, count * sizeof(T)) || to % sizeof(T)) return CUDA_ERROR_INVALID_VALUE;
	CUresult r = enqueue(stream, [=] {
		std::fill_n((T *)to, count, value);
		return CUDA_SUCCESS;
	});
	return r || !wait ? r : wait_stream(stream);
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
	if (code && code == sticky()) return *text = sticky_text(), CUDA_SUCCESS;
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
	return on_device(to, n) ? copy((Stream *)s, (void *)to, from, n, !pinned(from, n)) : CUDA_ERROR_INVALID_VALUE;
}
API cuMemcpyDtoHAsync_v2(void *to, CUdeviceptr from, size_t n, CUstream s) {
	ENTER;
	return on_device(from, n) ? copy_to_host((Stream *)s, to, from, n, !pinned(to, n)) : CUDA_ERROR_INVALID_VALUE;
}
API cuMemcpyDtoDAsync_v2(CUdeviceptr to, CUdeviceptr from, size_t n, CUstream s) {
	ENTER;
	return on_device(to, n) && on_device(from, n) ? copy((Stream *)s, (void *)to, (void *)from, n, false) : CUDA_ERROR_INVALID_VALUE;
}
API cuMemcpyHtoD_v2(CUdeviceptr to, const void *from, size_t n) {
	ENTER;
	return on_device(to, n) ? copy(nullptr, (void *)to, from, n, true) : CUDA_ERROR_INVALID_VALUE;
}
API cuMemcpyDtoH_v2(void *to, CUdeviceptr from, size_t n) {
	ENTER;
	return on_device(from, n) ? copy_to_host(nullptr, to, from, n, true) : CUDA_ERROR_INVALID_VALUE;
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
	return fill((Stream *)s, to, v, n, false);
}
API cuMemsetD32Async(CUdeviceptr to, unsigned v, size_t n, CUstream s) {
	ENTER;
	return fill((Stream *)s, to, v, n, false);
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
	return start((Stream *)s, (Function *)f, {{gx, gy, gz}, {bx, by, bz}, shared}, parameters);
}
// Attributes of a launch that only change when it begins are no matter here.
API cuLaunchKernelEx(const CUlaunchConfig *c, CUfunction f, void **parameters, void **extra) {
	for (unsigned i = 0; i < c->numAttrs; i++)
		if (c->attrs[i].id != CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION) return CUDA_ERROR_NOT_SUPPORTED;
	return cuLaunchKernel(f, c->gridDimX, c->gridDimY, c->gridDimZ, c->blockDimX, c->blockDimY, c->blockDimZ, c->sharedMemBytes, c->hStream,
	                      parameters, extra);
}
API cuTensorMapEncodeTiled(CUtensorMap *map, CUtensorMapDataType type, unsigned rank, void *address, const cuuint64_t *size,
                           const cuuint64_t *strides, const cuuint32_t *box, const cuuint32_t *step, CUtensorMapInterleave interleave,
                           CUtensorMapSwizzle swizzle, CUtensorMapL2promotion, CUtensorMapFloatOOBfill) {
	return encode(map, {type, rank, address, size, strides, box, step, interleave, swizzle});
}
