/*
 * A static libcuda.a that opens the real driver at run time. A program linked
 * with it needs no file of NVIDIA's, and starts on a machine without a GPU: it
 * finds 0 devices there. CUDA_DRIVER_LIBRARY names another driver than
 * libcuda.so.1, for tests.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>

enum { success = 0, no_device = 100, not_supported = 801 };

static int without_driver(void) { return no_device; }
static int without_function(void) { return not_supported; }

/*
 * Every function is a jump through a pointer, which keeps all registers and
 * the stack as the caller left them: no prototypes are needed.
 */
#if defined(__x86_64__)
#define JUMP(name) "jmp *trampoline_" #name "(%rip)\n"
#elif defined(__aarch64__)
#define JUMP(name) \
	"adrp x16, trampoline_" #name "\n" \
	"ldr x16, [x16, :lo12:trampoline_" #name "]\n" \
	"br x16\n"
#else
#error "CUDA is for amd64 and arm64"
#endif

#define SYMBOL(name) \
	__attribute__((visibility("hidden"))) void *trampoline_##name = (void *)without_driver; \
	__asm__(".text\n.globl " #name "\n.type " #name ",%function\n" #name ":\n" JUMP(name) ".size " #name ",.-" #name "\n");
#include "symbols.h"
#undef SYMBOL

static int (*init)(unsigned);
static int (*device_count)(int *);
static int (*driver_version)(int *);
static int status = no_device; /* what the driver's own cuInit said */

static void *look_up(void *driver, const char *name) {
	void *function = dlsym(driver, name);
	return function ? function : (void *)without_function;
}

static void open_driver(void) {
	const char *path = getenv("CUDA_DRIVER_LIBRARY");
	void *driver = dlopen(path && *path ? path : "libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
	if (!driver) return;
#define SYMBOL(name) trampoline_##name = look_up(driver, #name);
#include "symbols.h"
#undef SYMBOL
	init = (int (*)(unsigned))look_up(driver, "cuInit");
	device_count = (int (*)(int *))look_up(driver, "cuDeviceGetCount");
	driver_version = (int (*)(int *))look_up(driver, "cuDriverGetVersion");
	status = init(0);
}

/* Always succeeds: gorgonia.org/cu ends the process where it fails. */
int cuInit(unsigned flags) {
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	(void)flags;
	pthread_once(&once, open_driver);
	return success;
}

int cuDeviceGetCount(int *count) {
	*count = 0;
	return status == success ? device_count(count) : success;
}

int cuDriverGetVersion(int *version) {
	*version = 0;
	return status == success ? driver_version(version) : success;
}

/* Why there is no device: 0, or an error code of the driver. */
int trampoline_status(void) { return status; }
