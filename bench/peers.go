package bench

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"time"
)

// Peers says how to run other engines: a script of bench/peers by a Python that
// has its requirements.
type Peers struct {
	Python, Script string
	Names          []string // which of them, as in "openvino_bf16"; none: all
}

// chosen tells whether a peer is to run.
func (p Peers) chosen(name string) bool { return len(p.Names) == 0 || slices.Contains(p.Names, name) }

// peerProcess answers requests line by line.
type peerProcess struct {
	cmd   *exec.Cmd
	in    io.WriteCloser
	out   *bufio.Reader
	names []string
}

type peerRequest struct {
	Peer string    `json:"peer"`
	IDs  [][]int32 `json:"ids"`
	Runs int       `json:"runs"`
}

type peerAnswer struct {
	Seconds    float64     `json:"seconds"`
	CPUSeconds float64     `json:"cpu_seconds"`
	Times      []float64   `json:"times"`
	Vectors    [][]float32 `json:"vectors"`
}

// start runs a script that says first which engines it has; ctx ends it.
func (p Peers) start(ctx context.Context, args ...string) (*peerProcess, error) {
	var hello struct{ Peers []string }
	process, err := p.launch(ctx, &hello, args...)
	if err != nil {
		return nil, err
	}
	process.names = hello.Peers
	return process, nil
}

// launch runs the script, and reads the line that it says first.
func (p Peers) launch(ctx context.Context, hello any, args ...string) (*peerProcess, error) {
	cmd := exec.CommandContext(ctx, p.Python, append([]string{p.Script}, args...)...)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("starting the peers: %w", err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("starting the peers: %w", err)
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("starting the peers (see bench/peers/README.md): %w", err)
	}
	process := &peerProcess{cmd: cmd, in: in, out: bufio.NewReader(out)}
	if err := process.read(hello); err != nil {
		return nil, errors.Join(err, process.Close())
	}
	return process, nil
}

func (p *peerProcess) read(v any) error {
	line, err := p.out.ReadBytes('\n')
	if err != nil {
		return fmt.Errorf("reading the peers' answer: %w", err)
	}
	if err := json.Unmarshal(line, v); err != nil {
		return fmt.Errorf("the peers' answer: %w", err)
	}
	return nil
}

// ask sends a request and reads its answer.
func (p *peerProcess) ask(request, answer any) error {
	line, err := json.Marshal(request)
	if err != nil {
		return fmt.Errorf("asking the peers: %w", err)
	}
	if _, err := p.in.Write(append(line, '\n')); err != nil {
		return fmt.Errorf("asking the peers: %w", err)
	}
	return p.read(answer)
}

// Close ends the process.
func (p *peerProcess) Close() error {
	if err := errors.Join(p.in.Close(), p.cmd.Wait()); err != nil {
		return fmt.Errorf("ending the peers: %w", err)
	}
	return nil
}

// peer is one engine of the process.
type peer struct {
	process *peerProcess
	engine  string
}

func (p peer) name() string { return p.engine }

// Close leaves the process, which its peers share, to its owner.
func (p peer) Close() error { return nil }

func (p peer) run(_ context.Context, ids [][]int32, runs int) (turn, error) {
	var a peerAnswer
	if err := p.process.ask(peerRequest{p.engine, ids, runs}, &a); err != nil {
		return turn{}, fmt.Errorf("%s: %w", p.engine, err)
	}
	t := turn{wall: seconds(a.Seconds), cpu: seconds(a.CPUSeconds), vectors: a.Vectors}
	for _, s := range a.Times {
		t.times = append(t.times, seconds(s))
	}
	return t, nil
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }
