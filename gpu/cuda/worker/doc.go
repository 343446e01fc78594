// Package worker runs models on one NVIDIA device and answers a daemon's
// requests: what the process sluice-gpu does. It stands alone in a process, as
// a fault of the device spoils its process for good. With the build tag nvidia
// it needs what package driver needs; without, it is empty.
package worker
