package load

import (
	"fmt"
	"time"

	"github.com/prometheus/procfs"
)

// Usage is what a process has used.
type Usage struct {
	CPU      time.Duration // of all cores, since it began
	Resident int           // bytes of memory now
}

// UsageOf reads it for a process of this machine.
func UsageOf(pid int) (Usage, error) {
	p, err := procfs.NewProc(pid)
	if err != nil {
		return Usage{}, fmt.Errorf("reading what process %d uses: %w", pid, err)
	}
	s, err := p.Stat()
	if err != nil {
		return Usage{}, fmt.Errorf("reading what process %d uses: %w", pid, err)
	}
	return Usage{CPU: time.Duration(s.CPUTime() * float64(time.Second)), Resident: s.ResidentMemory()}, nil
}
