//go:build nvidia

// Command sluice-gpu is the GPU worker: the daemon starts one for each device,
// with a socket as file descriptor 3, and supervises it.
//
//	sluice-gpu list                      the devices, as JSON
//	sluice-gpu measure [--json FILE] N   the figures of device N
//	sluice-gpu run N                     serves device N; the daemon calls it
//	sluice-gpu try N                     tries kernels on device N; the daemon calls it
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/signal"
	"strconv"
	"syscall"

	"sluice/gpu/cuda/wire"
	"sluice/gpu/cuda/worker"
)

// socket is the file descriptor that the daemon hands over.
const socket = 3

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "sluice-gpu:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	switch {
	case len(args) == 1 && args[0] == "list":
		return list()
	case len(args) > 0 && args[0] == "measure":
		return measureDevice(args[1:])
	case len(args) == 2 && (args[0] == "run" || args[0] == "try"):
		ordinal, err := strconv.Atoi(args[1])
		if err != nil {
			return fmt.Errorf("device %q is no number", args[1])
		}
		if args[0] == "try" {
			return try(ordinal)
		}
		return serve(ordinal)
	}
	return errors.New("usage: sluice-gpu list | measure [--json FILE] DEVICE | run DEVICE | try DEVICE (the daemon calls the last two)")
}

func list() error {
	devices, err := worker.Devices()
	if err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(devices)
}

// serve ends with the daemon, which goes on for a while after a signal to both.
func serve(ordinal int) error {
	signal.Ignore(os.Interrupt, syscall.SIGTERM)
	file := os.NewFile(socket, "daemon")
	connection, err := net.FileConn(file)
	if err != nil {
		return fmt.Errorf("no daemon is at file descriptor %d: %w", socket, err)
	}
	if err := file.Close(); err != nil {
		return err
	}
	return worker.Serve(connection, ordinal)
}

// try takes a wire.Trial from the standard input. Each wire.Tried is written
// before the next kernel is started: none may be left to tell of it afterwards.
func try(ordinal int) error {
	var trial wire.Trial
	if err := json.NewDecoder(os.Stdin).Decode(&trial); err != nil {
		return fmt.Errorf("reading what to try: %w", err)
	}
	out := json.NewEncoder(os.Stdout)
	return worker.Try(ordinal, trial, func(t wire.Tried) error { return out.Encode(t) })
}
