// What the lanes of a warp do together, and the other operations of a thread
// that are more than arithmetic.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "device.h"
#include "language.h"

namespace emulator {

Index thread_index() { return thread->index; }
Index block_index() { return block.index; }
Index block_size() { return block.size; }
Index grid_size() { return block.grid; }
unsigned lane() { return thread->lane; }

uint64_t exchange(unsigned mask, uint64_t value, unsigned source, int line) {
	Warp *warp = thread->warp;
	uint64_t *slots = warp->slots[warp->generation % 2];
	slots[thread->lane] = value;
	warp_barrier(mask, line, false);
	if (!(warp->lanes >> source % 32 & 1))
		fault(CUDA_ERROR_LAUNCH_FAILED, "line %d: shuffle from lane %u, which the warp does not have", line, source % 32);
	return slots[source % 32];
}

void atomic_read(void *address, void *value, size_t bytes, const void *caller) {
	if ((uintptr_t)address % bytes) fault(CUDA_ERROR_MISALIGNED_ADDRESS, "misaligned atomic operation at %p", address);
	access(address, bytes, Kind::atomic, caller);
	memcpy(value, address, bytes);
}

void atomic_write(void *address, const void *value, size_t bytes) { memcpy(address, value, bytes); }

static float half(uint16_t bits) {
	int exponent = bits >> 10 & 31, fraction = bits & 1023;
	float magnitude = exponent == 31 ? (fraction ? NAN : INFINITY)
	                : exponent ? ldexpf(1024 + fraction, exponent - 25) : ldexpf(fraction, -24);
	return bits >> 15 ? -magnitude : magnitude;
}

static float bfloat(uint16_t bits) { return __uint_as_float((unsigned)bits << 16); }

// unpack writes the two numbers of a register.
static void unpack(float *low, float *high, uint32_t pair, Number number) {
	auto convert = number == Number::bf16 ? bfloat : half;
	*low = convert(pair & 0xffff), *high = convert(pair >> 16);
}

// multiply computes a warp's 16×8 product of A (16×16) and B (16×8), whose
// elements lie in the lanes' registers as PTX's m16n8k16 has them.
static void multiply(Warp *warp, Number number) {
	float a[16][16], b[16][8];
	for (int l = 0; l < 32; l++) {
		int group = l / 4, pair = l % 4 * 2;
		for (int r = 0; r < 4; r++) {
			float *at = &a[group + r % 2 * 8][pair + r / 2 * 8];
			unpack(at, at + 1, warp->fragments[l][r], number);
		}
		for (int r = 0; r < 2; r++) unpack(&b[pair + r * 8][group], &b[pair + r * 8 + 1][group], warp->fragments[l][4 + r], number);
	}
	memset(warp->product, 0, sizeof warp->product);
	for (int i = 0; i < 16; i++)
		for (int k = 0; k < 16; k++)
			for (int j = 0; j < 8; j++) warp->product[i][j] += a[i][k] * b[k][j];
}

// multiply_bytes is the same of 16×32 and 32×8 signed bytes, as m16n8k32 has them.
static void multiply_bytes(Warp *warp) {
	int8_t a[16][32], b[8][32];
	for (int l = 0; l < 32; l++) {
		int group = l / 4, quad = l % 4 * 4;
		for (int r = 0; r < 4; r++) memcpy(&a[group + r % 2 * 8][quad + r / 2 * 16], &warp->fragments[l][r], 4);
		for (int r = 0; r < 2; r++) memcpy(&b[group][quad + r * 16], &warp->fragments[l][4 + r], 4);
	}
	memset(warp->integer_product, 0, sizeof warp->integer_product);
	for (int i = 0; i < 16; i++)
		for (int j = 0; j < 8; j++)
			for (int k = 0; k < 32; k++) warp->integer_product[i][j] += a[i][k] * b[j][k];
}

// together collects a lane's operands; the last lane computes the product for all.
template <class F> static void together(const uint32_t *a, const uint32_t *b, int line, F multiply) {
	Warp *warp = thread->warp;
	if (warp->lanes != ~0u) fault(CUDA_ERROR_LAUNCH_FAILED, "line %d: a tensor-core instruction needs a whole warp", line);
	memcpy(warp->fragments[thread->lane], a, 16);
	memcpy(warp->fragments[thread->lane] + 4, b, 8);
	if ((warp->arrived | 1u << thread->lane) == ~0u) multiply(warp);
	warp_barrier(~0u, line, false);
}

// add_part adds what of a product is this lane's.
template <class T> static void add_part(T *d, const T (&product)[16][8]) {
	int group = thread->lane / 4, pair = thread->lane % 4 * 2;
	for (int i = 0; i < 4; i++) d[i] += product[group + i / 2 * 8][pair + i % 2];
}

void tensor_multiply(float *d, const uint32_t *a, const uint32_t *b, Number number, int line) {
	together(a, b, line, [number](Warp *warp) { multiply(warp, number); });
	add_part(d, thread->warp->product);
}

void tensor_multiply(int *d, const uint32_t *a, const uint32_t *b, int line) {
	together(a, b, line, multiply_bytes);
	add_part(d, thread->warp->integer_product);
}

static uint16_t element(const char *row, int at) {
	uint16_t v;
	access(row + 2 * at, 2, Kind::read, nullptr);
	memcpy(&v, row + 2 * at, 2);
	return v;
}

void load_matrices(uint32_t *registers, const void *row, bool transposed, int line) {
	if ((uintptr_t)row % 16) fault(CUDA_ERROR_MISALIGNED_ADDRESS, "line %d: ldmatrix of a row at %p", line, row);
	Warp *warp = thread->warp;
	uint64_t *rows = warp->slots[warp->generation % 2];
	rows[thread->lane] = (uint64_t)row;
	warp_barrier(~0u, line, false);
	int group = thread->lane / 4, pair = thread->lane % 4 * 2;
	for (int m = 0; m < 4; m++) {
		const char *first = (const char *)rows[8 * m + (transposed ? pair : group)];
		const char *second = transposed ? (const char *)rows[8 * m + pair + 1] : first;
		registers[m] = element(first, transposed ? group : pair) | (uint32_t)element(second, transposed ? group : pair + 1) << 16;
	}
}

// The target of a copy holds NaN until it is waited for.
void copy_async(void *to, const void *from, unsigned bytes) {
	const void *caller = __builtin_return_address(0);
	if ((uintptr_t)to % 16 || (bytes && (uintptr_t)from % 16)) fault(CUDA_ERROR_MISALIGNED_ADDRESS, "cp.async from %p to %p", from, to);
	access(to, 16, Kind::write, caller);
	if (bytes) access(from, bytes, Kind::read, caller);
	memset(to, 0xff, 16);
	thread->copies.push_back({to, from, bytes, thread->copy_group});
}

void copy_commit() { thread->copy_group++; }

void copy_wait(unsigned groups) {
	auto &copies = thread->copies;
	auto done = std::find_if(copies.begin(), copies.end(), [&](const Copy &c) { return c.group + groups >= thread->copy_group; });
	for (auto c = copies.begin(); c != done; ++c) {
		access(c->to, 16, Kind::write, __builtin_return_address(0));
		memset(c->to, 0, 16);
		memcpy(c->to, c->from, c->bytes);
	}
	thread->unpublished |= done != copies.begin();
	copies.erase(copies.begin(), done);
}

uint32_t shared_address(const void *address) { return (uint32_t)((const char *)address - dynamic_shared); }

// operand is where a descriptor has element k of a row: rows of 128 bytes, eight
// to a tile, with address bits 4 to 6 permuted by bits 7 to 9.
static float operand(uint64_t descriptor, int row, int k, int line) {
	if (descriptor >> 62 != 1) fault(CUDA_ERROR_LAUNCH_FAILED, "line %d: a descriptor without the permutation of 128 bytes", line);
	uint32_t start = (descriptor & 0x3fff) << 4, stride = (descriptor >> 32 & 0x3fff) << 4;
	uint32_t at = start + row / 8 * stride + row % 8 * 128 + k * 2;
	uint16_t bits;
	const char *address = dynamic_shared + (at ^ (at >> 7 & 7) << 4);
	access(address, 2, Kind::read, nullptr);
	memcpy(&bits, address, 2);
	return bfloat(bits);
}

// finish does a thread's part of a product: two rows, and two columns of every eight.
static void finish(const Product &p) {
	int row = thread->number / 32 % 4 * 16 + thread->lane / 4, pair = thread->lane % 4 * 2;
	float a[2][16];
	for (int i = 0; i < 2; i++)
		for (int k = 0; k < 16; k++) a[i][k] = operand(p.a, row + 8 * i, k, __LINE__);
	for (int j = 0; j < p.columns / 2; j++) { // register j%4 of tile j/4
		float sum = 0;
		for (int k = 0; k < 16; k++) sum += a[j / 2 % 2][k] * operand(p.b, j / 4 * 8 + pair + j % 2, k, __LINE__);
		p.d[j] += sum;
	}
}

// Products happen when they are waited for: what is overwritten before then is seen.
void multiply_group(float *d, int columns, uint64_t a, uint64_t b) {
	if (block.unpublished) fault(CUDA_ERROR_LAUNCH_FAILED, "a product of what was written to shared memory without a fence of the async proxy");
	operand(a, 0, 0, __LINE__), operand(b, 0, 0, __LINE__); // are there already
	thread->products.push_back({d, columns, a, b, thread->product_group});
}

void products_commit() { thread->product_group++; }

void products_wait(unsigned groups) {
	auto &products = thread->products;
	auto done = std::find_if(products.begin(), products.end(), [&](const Product &p) { return p.group + groups >= thread->product_group; });
	std::for_each(products.begin(), done, finish);
	products.erase(products.begin(), done);
}

void publish() { thread->unpublished = false; }

} // namespace emulator
