package load

import (
	"fmt"
	"time"

	"github.com/prometheus/procfs"
)

// Usage is what a process has used.
type Usage struct {
	CPU       time.Duration // of all cores, since it began
	Resident  int           // bytes of memory now
	Anonymous int           // of those, what no file holds
}

// UsageOf reads it for a process of this machine.
func UsageOf(pid int) (Usage, error) {
	p, err := procfs.NewProc(pid)
	if err != nil {
		return Usage{}, fmt.Errorf("reading what process %d uses: %w", pid, err)
	}
	stat, err := p.Stat()
	if err != nil {
		return Usage{}, fmt.Errorf("reading what process %d uses: %w", pid, err)
	}
	status, err := p.NewStatus()
	if err != nil {
		return Usage{}, fmt.Errorf("reading what process %d uses: %w", pid, err)
	}
	return Usage{time.Duration(stat.CPUTime() * float64(time.Second)), stat.ResidentMemory(), int(status.RssAnon)}, nil
}
