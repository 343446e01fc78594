// Streams and events. Operations wait in a list until somebody waits for one
// of them; then any that may run does, in an order of the seed. So what a
// program has not ordered runs in the wrong order sooner or later.
#include "stream.h"

#include <algorithm>
#include <ctime>
#include <list>
#include <set>
#include <vector>

#include "device.h"

namespace emulator {

struct Operation {
	Stream *stream; // null: the default stream, which waits for the others and they for it
	std::function<int()> run;
	Event *wait; // with this event's recording
	uint64_t recording;
};

static std::list<Operation> pending;
constexpr size_t most_pending = 4096;

static bool blocking(const Stream *s) { return !s || !s->non_blocking; }

// ready lists what may run: nothing before it in its stream, no barrier of the default stream between.
static std::vector<std::list<Operation>::iterator> ready() {
	std::vector<std::list<Operation>::iterator> found;
	std::set<Stream *> busy;
	bool default_busy = false, any_blocking = false;
	for (auto o = pending.begin(); o != pending.end(); ++o) {
		bool first = o->stream ? !busy.count(o->stream) && !(default_busy && blocking(o->stream)) : !default_busy && !any_blocking;
		if (first && (!o->wait || o->wait->completed >= o->recording)) found.push_back(o);
		if (o->stream) busy.insert(o->stream);
		else default_busy = true;
		any_blocking |= blocking(o->stream);
	}
	return found;
}

// step runs one operation.
static CUresult step() {
	if (sticky() != CUDA_SUCCESS) {
		pending.clear();
		return sticky();
	}
	auto candidates = ready();
	if (candidates.empty()) return pending.empty() ? CUDA_SUCCESS : CUDA_ERROR_LAUNCH_TIMEOUT; // streams that wait for one another
	auto chosen = candidates[pick(candidates.size())];
	Operation operation = std::move(*chosen);
	pending.erase(chosen);
	return operation.run ? (CUresult)operation.run() : CUDA_SUCCESS;
}

static CUresult run_until(const std::function<bool()> &over) {
	while (!over())
		if (CUresult r = step()) return r;
	return sticky();
}

static CUresult append(Operation o) {
	pending.push_back(std::move(o));
	return run_until([] { return pending.size() <= most_pending; });
}

CUresult enqueue(Stream *stream, std::function<int()> run) { return append({stream, std::move(run), nullptr, 0}); }

CUresult enqueue_wait(Stream *stream, Event *event) { return append({stream, nullptr, event, event->recorded}); }

CUresult record(Stream *stream, Event *event) {
	uint64_t recording = ++event->recorded;
	return enqueue(stream, [event, recording] {
		event->completed = recording;
		clock_gettime(CLOCK_MONOTONIC, &event->time);
		return CUDA_SUCCESS;
	});
}

CUresult wait_all() { return run_until([] { return pending.empty(); }); }

bool idle(Stream *stream) {
	return std::none_of(pending.begin(), pending.end(), [&](const Operation &o) { return o.stream == stream; });
}

// A wait for the default stream is one for all that it waits for.
CUresult wait_stream(Stream *stream) {
	return run_until([&] {
		return std::none_of(pending.begin(), pending.end(),
		                    [&](const Operation &o) { return o.stream == stream || (!stream && blocking(o.stream)); });
	});
}

CUresult wait_event(Event *event) {
	return run_until([&] { return event->completed >= event->recorded; });
}

// A look at a stream or an event lets the device do something, so that polling ends.
CUresult poll() { return pending.empty() ? sticky() : step(); }

} // namespace emulator
