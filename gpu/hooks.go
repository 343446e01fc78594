package gpu

import "time"

// Hooks tell how a scheduler fares. They are called often, some of them under
// a lock: they must be quick and must not call the scheduler. Any may be nil.
type Hooks struct {
	// Queue is called with the tokens that wait, whenever they change.
	Queue func(model string, p Priority, tokens int)
	// Wait is called with each text's time from Embed to the start of its batch.
	Wait func(model string, p Priority, waited time.Duration)
	// Batch is called after each batch that a device ran.
	Batch func(model string, p Priority, texts, tokens int, took time.Duration)
	// Health is called with nil for each device at the start, with the reason
	// when it is taken out of use, and with nil when it works again.
	Health func(model string, device int, why error)
	// Failure is called when a device fails a batch.
	Failure func(model string, device int, why error)
}

// filled has no nil hooks.
func (h Hooks) filled() Hooks {
	if h.Queue == nil {
		h.Queue = func(string, Priority, int) {}
	}
	if h.Wait == nil {
		h.Wait = func(string, Priority, time.Duration) {}
	}
	if h.Batch == nil {
		h.Batch = func(string, Priority, int, int, time.Duration) {}
	}
	if h.Health == nil {
		h.Health = func(string, int, error) {}
	}
	if h.Failure == nil {
		h.Failure = func(string, int, error) {}
	}
	return h
}
