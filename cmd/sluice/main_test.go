package main

import (
	"bytes"
	"os"
	"os/exec"
	"regexp"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sluice/needs"
	"sluice/store/postgres/postgrestest"
)

// beSluice makes the test binary be the program: the tests run the real thing,
// in processes that can be killed.
const beSluice = "TEST_BE_SLUICE"

func TestMain(m *testing.M) {
	if os.Getenv(beSluice) != "" {
		main()
	}
	postgrestest.Main(m)
}

const (
	modelName = needs.ModelName
	patience  = 2 * time.Minute // for what takes a second on a machine that is not busy
)

// process is the program under way.
type process struct {
	t        testing.TB
	command  *exec.Cmd
	out, err transcript
	ended    chan struct{}
}

// launch starts the program. It is killed when the test ends, if it still runs.
func launch(t testing.TB, args ...string) *process {
	t.Helper()
	return launchWith(t, nil, args...)
}

// launchWith adds to the environment.
func launchWith(t testing.TB, environment []string, args ...string) *process {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	p := &process{t: t, command: exec.Command(self, args...), ended: make(chan struct{})}
	p.command.Env = append(append(os.Environ(), beSluice+"=1"), environment...)
	p.command.Stdout, p.command.Stderr = &p.out, &p.err
	require.NoError(t, p.command.Start())
	go func() {
		defer close(p.ended)
		_ = p.command.Wait() // the exit status is in ProcessState
		p.out.end()
		p.err.end()
	}()
	t.Cleanup(p.kill)
	return p
}

// signal sends a signal; a process that has ended already is left alone.
func (p *process) signal(s os.Signal) { _ = p.command.Process.Signal(s) }

// kill is kill -9.
func (p *process) kill() {
	p.signal(syscall.SIGKILL)
	<-p.ended
}

// wait returns the exit status; -1 after a signal.
func (p *process) wait() int {
	p.t.Helper()
	select {
	case <-p.ended:
		return p.command.ProcessState.ExitCode()
	case <-time.After(patience):
		p.t.Fatalf("%v does not end; it said:\n%s%s", p.command.Args[1:], p.out.text(), p.err.text())
		return -1
	}
}

// result is what a program that has ended left.
type result struct {
	code     int
	out, err string
}

// sluice runs the program to its end.
func sluice(t testing.TB, args ...string) result {
	t.Helper()
	return launch(t, args...).result()
}

// result waits for the end.
func (p *process) result() result {
	p.t.Helper()
	code := p.wait()
	return result{code, p.out.text(), p.err.text()}
}

func (r result) String() string { return r.out + r.err }

// transcript is what a process writes, for one to wait on.
type transcript struct {
	mu     sync.Mutex
	buffer bytes.Buffer
	grown  chan struct{} // closed when the next bytes arrive; nil while nobody waits
	noMore bool
}

func (t *transcript) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.wake()
	return t.buffer.Write(p)
}

func (t *transcript) end() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.noMore = true
	t.wake()
}

func (t *transcript) wake() {
	if t.grown != nil {
		close(t.grown)
		t.grown = nil
	}
}

func (t *transcript) text() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.buffer.String()
}

// look returns the text so far, whether more may come, and what to wait on for it.
func (t *transcript) look() (text string, grown <-chan struct{}, noMore bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.grown == nil {
		t.grown = make(chan struct{})
	}
	return t.buffer.String(), t.grown, t.noMore
}

// await waits for the pattern in a transcript of the process and returns its last group.
func (p *process) await(t *transcript, pattern string) string {
	p.t.Helper()
	expression, deadline := regexp.MustCompile(pattern), time.After(patience)
	for {
		text, grown, noMore := t.look()
		if found := expression.FindStringSubmatch(text); found != nil {
			return found[len(found)-1]
		}
		if noMore {
			p.t.Fatalf("%v ended without saying %s; it said:\n%s", p.command.Args[1:], pattern, text)
		}
		select {
		case <-grown:
		case <-deadline:
			p.t.Fatalf("%v does not say %s; it said:\n%s", p.command.Args[1:], pattern, text)
		}
	}
}
