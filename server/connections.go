package server

import "syscall"

// connections lowers the limit to half of the files that the process may open:
// the store and the indexes need theirs, and the store stops for good when it
// cannot open one.
func connections(limit int) int {
	var files syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &files); err != nil {
		return limit
	}
	return int(min(uint64(limit), files.Cur/2))
}
