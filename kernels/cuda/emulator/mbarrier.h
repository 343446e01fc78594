// Barriers in shared memory, PTX's mbarrier, and what threads know of one another
// through them: an order that intervals between barriers of the block cannot tell.
#pragma once
#include <string>

#include "runtime.h"

namespace emulator {

constexpr unsigned most_barriers = 64; // of a block

// join adds to a clock what another one knows.
void join(Clock &clock, const Clock &other);

// Landing is the end of a phase, at which what a copy brings is there.
struct Landing {
	unsigned barrier; // by number
	uint32_t phases;  // that are over then
};
Landing landing(const void *barrier);
bool known(const Landing &l); // to the running thread

// deliver tells a barrier of bytes that have arrived.
void deliver(const void *barrier, unsigned bytes);

std::string lack(const void *barrier); // of its phase
void forget_barriers();

} // namespace emulator
