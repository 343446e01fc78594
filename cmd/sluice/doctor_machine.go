package main

import (
	"bufio"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"sluice/kernels/simd"
)

const (
	fewFiles = 4096
	built    = 2026 // no clock is right that shows an earlier year
)

// machine looks at what does not depend on the settings.
func (e *examination) machine() {
	e.kernels()
	e.openFiles()
	e.clock()
	if path, err := exec.LookPath("soffice"); err != nil {
		e.warn("office", "install LibreOffice, so that soffice is on the daemon's PATH, or send PDF", "office files cannot be read here; all other formats can")
	} else {
		e.ok("office", "office files are read by %s", path)
	}
}

func (e *examination) kernels() {
	level, cores := simd.Best().Level, runtime.GOMAXPROCS(0)
	if level == "go" {
		e.warn("cpu", "use an x86-64 CPU with AVX2, better AVX-512, or a GPU", "this CPU (%s, %d cores) has no vector instructions that the kernels know: plain Go runs the models, many times as slow", runtime.GOARCH, cores)
		return
	}
	e.ok("cpu", "%d cores, kernels for %s", cores, level)
}

func (e *examination) openFiles() {
	var files unix.Rlimit
	switch err := unix.Getrlimit(unix.RLIMIT_NOFILE, &files); {
	case err != nil:
		e.warn("files", "", "the limit of open files cannot be read: %v", err)
	case files.Cur < fewFiles:
		e.warn("files", "raise it: ulimit -n 65536, or LimitNOFILE=65536 in the unit", "%d files may be open, half of them connections: that is few", files.Cur)
	default:
		e.ok("files", "%d files may be open", files.Cur)
	}
}

func (e *examination) clock() {
	const do = "run a time service (chrony, systemd-timesyncd): tokens and documents begin and end by this clock"
	var kernel unix.Timex
	state, err := unix.Adjtimex(&kernel)
	switch now := time.Now(); {
	case now.Year() < built:
		e.fault("clock", do, "it shows %s", now.Format(time.RFC3339))
	case err != nil || state == unix.TIME_ERROR || kernel.Status&unix.STA_UNSYNC != 0:
		e.warn("clock", do, "it shows %s, and the kernel does not say that it is kept in step", now.Format(time.RFC3339))
	default:
		e.ok("clock", "%s, kept in step", now.Format(time.RFC3339))
	}
}

// memory compares what models and indexes take with what there is. The indexes
// are mapped: what finds no room is read from the disk again and again.
func (e *examination) memory() {
	available, ok := availableMemory()
	if !ok {
		e.warn("memory", "", "how much is available cannot be read from /proc/meminfo")
		return
	}
	models, indexes := int64(0), directorySize(indexDir(e.settings.Data))
	for _, name := range e.modelNames() {
		if dir, err := findModel(name); err == nil {
			models += directorySize(dir)
		}
	}
	switch {
	case e.running:
		e.ok("memory", "%s available beside the daemon that runs", gib(available))
	case models+int64(e.settings.Limits.TotalBytes)+minimum > available:
		e.fault("memory", "a smaller model, or more memory", "%s available, and the models alone take about %s", gib(available), gib(models+minimum))
	case models+indexes+minimum > available:
		e.warn("memory", "more memory; else searches read from the disk", "%s available; models take about %s, the indexes %s", gib(available), gib(models+minimum), gib(indexes))
	default:
		e.ok("memory", "%s available; models take about %s, the indexes %s", gib(available), gib(models+minimum), gib(indexes))
	}
}

// minimum is what a daemon takes beside models and indexes: caches, batches.
const minimum = 256 << 20

// availableMemory is what the kernel would give, or what is left of the control group's limit.
func availableMemory() (bytes int64, ok bool) {
	file, err := os.Open("/proc/meminfo")
	if err != nil {
		return 0, false
	}
	defer file.Close()
	for lines := bufio.NewScanner(file); lines.Scan(); {
		if fields := strings.Fields(lines.Text()); len(fields) > 1 && fields[0] == "MemAvailable:" {
			kib, err := strconv.ParseInt(fields[1], 10, 64)
			return min(kib<<10, groupMemory()), err == nil
		}
	}
	return 0, false
}

// groupMemory is what the control group leaves; without a limit, more than any machine has.
func groupMemory() int64 {
	limit, err := readNumber("/sys/fs/cgroup/memory.max")
	used, err2 := readNumber("/sys/fs/cgroup/memory.current")
	if err != nil || err2 != nil {
		return 1 << 62
	}
	return limit - used
}

func readNumber(file string) (int64, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return 0, err
	}
	return strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
}
