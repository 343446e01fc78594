// Streams and events of the emulated device.
#pragma once
#include <cuda.h>

#include <cstdint>
#include <ctime>
#include <functional>

namespace emulator {

struct Stream {
	bool non_blocking; // does not order itself with the default stream
	int priority;
};

// Event is recorded when asked, and completed when its stream gets there.
struct Event {
	uint64_t recorded, completed;
	timespec time;
};

CUresult enqueue(Stream *stream, std::function<int()> run);
CUresult enqueue_wait(Stream *stream, Event *event);
CUresult record(Stream *stream, Event *event);
CUresult wait_all(), wait_stream(Stream *stream), wait_event(Event *event), poll();
bool idle(Stream *stream);

} // namespace emulator
