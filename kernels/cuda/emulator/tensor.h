// Tensor maps, and the copies of tiles that they describe.
#pragma once
#include <cuda.h>

#include "runtime.h"

namespace emulator {

// Box is what a program says of a matrix of up to five dimensions.
struct Box {
	CUtensorMapDataType type;
	unsigned rank;
	void *address;
	const cuuint64_t *size, *strides;
	const cuuint32_t *box, *step;
	CUtensorMapInterleave interleave;
	CUtensorMapSwizzle swizzle;
};

// encode keeps a box in a map, if a driver would take it.
CUresult encode(CUtensorMap *map, const Box &b);

// land_copy completes one of the copies that are under way, by the seed, if there is any.
bool land_copy();
bool copies_fly();

// tile_access is an access to shared memory, and reports whether it was a read of
// a tile that a copy has brought.
bool tile_access(const void *address, size_t size, Kind kind, const void *caller);
void forget_tiles();

} // namespace emulator
