#include "tensor.h"

#include <algorithm>
#include <cstring>
#include <string>

#include "device.h"
#include "language.h"
#include "mbarrier.h"

namespace emulator {

constexpr uint64_t mark = 0x70616d726f736e74; // of a map that encode has made

// Map is what the 128 bytes of a map hold.
struct Map {
	uint64_t mark;
	const char *address;
	uint64_t stride; // of rows, in bytes
	uint64_t columns, rows;
	uint16_t box_columns, box_rows;
	uint8_t rank, element, swizzle, plain; // plain: every element, not interleaved
};
static_assert(sizeof(Map) <= sizeof(CUtensorMap), "a map holds what a copy needs");

// element_bytes is 0 for types that the emulator does not know.
static unsigned element_bytes(CUtensorMapDataType type) {
	switch (type) {
	case CU_TENSOR_MAP_DATA_TYPE_UINT8: return 1;
	case CU_TENSOR_MAP_DATA_TYPE_UINT16:
	case CU_TENSOR_MAP_DATA_TYPE_FLOAT16:
	case CU_TENSOR_MAP_DATA_TYPE_BFLOAT16: return 2;
	case CU_TENSOR_MAP_DATA_TYPE_UINT32:
	case CU_TENSOR_MAP_DATA_TYPE_INT32:
	case CU_TENSOR_MAP_DATA_TYPE_FLOAT32: return 4;
	default: return 0;
	}
}

// widest is how many bytes a row of a box may have.
static size_t widest(CUtensorMapSwizzle swizzle) {
	switch (swizzle) {
	case CU_TENSOR_MAP_SWIZZLE_32B: return 32;
	case CU_TENSOR_MAP_SWIZZLE_64B: return 64;
	case CU_TENSOR_MAP_SWIZZLE_128B: return 128;
	default: return SIZE_MAX;
	}
}

// acceptable is what the driver's manual asks of a box.
static bool acceptable(const Box &b, unsigned element) {
	if (!element || b.rank < 1 || b.rank > 5) return false;
	size_t unit = b.interleave == CU_TENSOR_MAP_INTERLEAVE_32B ? 32 : 16;
	if ((uintptr_t)b.address % unit || (b.interleave != CU_TENSOR_MAP_INTERLEAVE_NONE && b.rank < 3)) return false;
	for (unsigned i = 0; i < b.rank; i++) {
		if (!b.size[i] || b.size[i] > 1ull << 32 || !b.box[i] || b.box[i] > 256 || !b.step[i] || b.step[i] > 8) return false;
		if (i + 1 < b.rank && (b.strides[i] % unit || b.strides[i] >= 1ull << 40)) return false;
	}
	size_t row = (size_t)b.box[0] * element;
	return b.interleave != CU_TENSOR_MAP_INTERLEAVE_NONE || (row % 16 == 0 && row <= widest(b.swizzle));
}

CUresult encode(CUtensorMap *map, const Box &b) {
	unsigned element = element_bytes(b.type);
	if (!map || (uintptr_t)map % 64 || !acceptable(b, element)) return CUDA_ERROR_INVALID_VALUE;
	bool plain = b.interleave == CU_TENSOR_MAP_INTERLEAVE_NONE && std::all_of(b.step, b.step + b.rank, [](cuuint32_t s) { return s == 1; });
	Map m = {mark, (const char *)b.address, 0, b.size[0], 1, uint16_t(b.box[0]), 1, uint8_t(b.rank), uint8_t(element), uint8_t(b.swizzle), plain};
	if (b.rank > 1) m.stride = b.strides[0], m.rows = b.size[1], m.box_rows = b.box[1];
	memset(map, 0, sizeof *map);
	memcpy(map, &m, sizeof m);
	return CUDA_SUCCESS;
}

static Map decode(const void *map) {
	if ((uintptr_t)map % 64) fault(CUDA_ERROR_MISALIGNED_ADDRESS, "misaligned tensor map at %p", map);
	if (size_at(map)) fault(CUDA_ERROR_LAUNCH_FAILED, "a tensor map in global memory, whose fences the emulator does not know");
	access(map, sizeof(CUtensorMap), Kind::read, nullptr);
	Map m;
	memcpy(&m, map, sizeof m);
	if (m.mark != mark) fault(CUDA_ERROR_LAUNCH_FAILED, "what lies at %p is no tensor map", map);
	return m;
}

void tensor_prefetch(const void *map) { decode(map); }

// Tile is what a copy fills, until something else is written there.
struct Tile {
	char *to;
	size_t bytes;
	Landing there;
	Clock readers; // by thread: when it has read last
};

// Flight is a copy under way.
struct Flight {
	Map map;
	int64_t row, column;
	char *to;
	const void *barrier;
};

static std::vector<Tile> tiles;
static std::vector<Flight> flights;

void forget_tiles() { tiles.clear(), flights.clear(); }
bool copies_fly() { return !flights.empty(); }

static size_t row_bytes(const Map &m) { return (size_t)m.box_columns * m.element; }

// overlaps finds a tile that has one of the bytes.
static std::vector<Tile>::iterator overlaps(const char *at, size_t bytes) {
	return std::find_if(tiles.begin(), tiles.end(), [=](const Tile &t) { return at < t.to + t.bytes && t.to < at + bytes; });
}

[[noreturn]] static void race(const char *verb, const std::string &what, const void *caller) {
	fault(CUDA_ERROR_LAUNCH_FAILED, "race in shared memory: %s of a tile that %s%s", verb, what.c_str(), where(caller).c_str());
}

// replace ends a tile that is written over: it must be there, and all must have read it.
static void replace(std::vector<Tile>::iterator t, const char *verb, const void *caller) {
	if (!known(t->there)) race(verb, "a tensor copy brings, which the thread has not waited for", caller);
	for (unsigned i = 0; i < block.threads; i++)
		if (i != thread->number && t->readers[i] > thread->knows[i]) race(verb, "thread " + std::to_string(i) + " may still read", caller);
	tiles.erase(t);
}

bool tile_access(const void *address, size_t size, Kind kind, const void *caller) {
	auto t = overlaps((const char *)address, size);
	if (t == tiles.end()) return false;
	if (kind != Kind::read) return replace(t, "a write", caller), false;
	if (!known(t->there)) race("a read", "a tensor copy brings, which the thread has not waited for", caller);
	t->readers[thread->number] = thread->time;
	return true;
}

// each_row calls row_part with what the matrix has of each row of the box.
template <class F> static void each_row(const Map &m, int64_t row, int64_t column, F row_part) {
	int64_t first = std::max<int64_t>(column, 0), last = std::min<int64_t>(column + m.box_columns, m.columns);
	for (int64_t i = 0; i < m.box_rows && first < last; i++)
		if (row + i >= 0 && row + i < (int64_t)m.rows)
			row_part(i, first - column, m.address + (row + i) * m.stride + first * m.element, (last - first) * m.element);
}

void tensor_copy(void *to, const void *map, int row, int column, void *barrier) {
	Map m = decode(map);
	if (m.rank != 2 || m.swizzle != CU_TENSOR_MAP_SWIZZLE_128B || !m.plain)
		fault(CUDA_ERROR_LAUNCH_FAILED, "a tensor copy that is not of two dimensions, permuted over 128 bytes, which the emulator does not know");
	char *tile = (char *)to;
	if (tile < dynamic_shared || tile >= dynamic_shared + dynamic_limit || shared_address(to) % 128)
		fault(CUDA_ERROR_MISALIGNED_ADDRESS, "a tensor copy to %p, which is no multiple of 128 bytes in dynamic shared memory", to);
	if (block.unpublished || thread->unpublished)
		fault(CUDA_ERROR_LAUNCH_FAILED, "a tensor copy beside what was written to shared memory without a fence of the async proxy");
	size_t bytes = m.box_rows * row_bytes(m);
	for (auto t = overlaps(tile, bytes); t != tiles.end(); t = overlaps(tile, bytes)) replace(t, "a tensor copy's write", nullptr);
	access(tile, bytes, Kind::write, nullptr);
	each_row(m, row, column, [](int64_t, int64_t, const char *from, size_t n) { access(from, n, Kind::read, nullptr); });
	memset(tile, 0xff, bytes);
	tiles.push_back({tile, bytes, landing(barrier), Clock(block.threads)});
	flights.push_back({m, row, column, tile, barrier});
}

// put writes bytes of a tile, their parts of 16 permuted by the address over 1024 bytes.
static void put(char *to, const char *from, size_t bytes) {
	for (size_t i = 0; i < bytes; i++) {
		uint32_t at = shared_address(to + i);
		dynamic_shared[at ^ (at >> 7 & 7) << 4] = from ? from[i] : 0;
	}
}

bool land_copy() {
	if (flights.empty()) return false;
	auto chosen = flights.begin() + pick(flights.size());
	Flight f = *chosen;
	flights.erase(chosen);
	size_t row = row_bytes(f.map);
	put(f.to, nullptr, f.map.box_rows * row);
	each_row(f.map, f.row, f.column, [&](int64_t i, int64_t column, const char *from, size_t n) { put(f.to + i * row + column * f.map.element, from, n); });
	deliver(f.barrier, f.map.box_rows * row);
	return true;
}

} // namespace emulator
