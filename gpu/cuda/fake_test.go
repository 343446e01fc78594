package cuda

import (
	"fmt"
	"net"
	"os"
	"strings"
	"testing"

	"sluice/gpu/cuda/wire"
)

// TestMain is the worker where a test started this program as one.
func TestMain(m *testing.M) {
	fakes := map[string]func(told string) error{"run": fakeWorker, "try": fakeTrial}
	if len(os.Args) == 3 && fakes[os.Args[1]] != nil {
		if err := fakes[os.Args[1]](os.Getenv(behaviour)); err != nil {
			fmt.Fprintln(os.Stderr, "fake worker:", err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// behaviour tells a fake worker what to do wrong.
const behaviour = "FAKE_WORKER"

// fakeWorker answers a sequence by the number of its tokens in place 0, and by
// its norm, and does what it is told to.
func fakeWorker(told string) error {
	file := os.NewFile(3, "daemon")
	connection, err := net.FileConn(file)
	if err != nil {
		return err
	}
	switch told {
	case "does not start":
		return fmt.Errorf("no CUDA device")
	case "says nothing":
		_, err := connection.Read(make([]byte, 1))
		return err
	case "talks nonsense":
		_, err := connection.Write([]byte(strings.Repeat("nonsense", 10)))
		return err
	case "has loads of text":
		fmt.Fprintln(os.Stderr, strings.Repeat("x", 3*longestLine))
	}
	hello, err := wire.AppendJSON(nil, wire.KindHello, 0, wire.Hello{Device: wire.Device{Name: "fake"}, Process: os.Getpid()})
	if err != nil {
		return err
	}
	if _, err := connection.Write(hello); err != nil {
		return err
	}
	for reader := wire.NewReader(connection); ; {
		f, err := reader.Read()
		if err != nil {
			return nil
		}
		reply, err := fakeReply(told, f)
		if err != nil {
			return err
		}
		if _, err := connection.Write(reply); err != nil {
			return err
		}
	}
}

func fakeReply(told string, f wire.Frame) ([]byte, error) {
	if f.Kind == wire.KindLoad {
		return fakeLoaded(told, f)
	}
	if f.Kind == wire.KindHold || f.Kind == wire.KindDrop {
		return fakeHold(told, f)
	}
	if f.Kind == wire.KindStatus && told != "hangs" {
		return wire.AppendJSON(nil, wire.KindHello, f.ID, wire.Hello{Device: wire.Device{Name: "fake", Free: 7}})
	}
	switch told {
	case "dies":
		return nil, fmt.Errorf("out of ideas")
	case "hangs":
		return nil, nil
	case "answers too little":
		return wire.AppendAnswer(nil, f.ID, wire.Answer{})
	case "has no memory":
		return wire.AppendFailure(nil, f.ID, wire.Failure{Code: wire.CodeMemory, Text: "memory does not suffice"})
	case "flips a bit":
		reply, err := fakeAnswer(told, f)
		reply[len(reply)-1] ^= 1
		return reply, err
	}
	if f.Kind == wire.KindSearch {
		return fakeFound(told, f)
	}
	return fakeAnswer(told, f)
}

func fakeLoaded(told string, f wire.Frame) ([]byte, error) {
	var l wire.Load
	if err := wire.DecodeJSON(f, &l); err != nil {
		return nil, err
	}
	if told == "loads no model" || told == "wants kernels" && len(l.Kernels) == 0 {
		return wire.AppendFailure(nil, f.ID, wire.Failure{Code: wire.CodeModel, Text: "too wide"})
	}
	return wire.AppendJSON(nil, wire.KindLoaded, f.ID, wire.Loaded{})
}

func fakeHold(told string, f wire.Frame) ([]byte, error) {
	switch {
	case f.Kind == wire.KindDrop:
		return nil, nil
	case told == "has no room":
		return wire.AppendFailure(nil, f.ID, wire.Failure{Code: wire.CodeMemory, Text: "memory does not suffice"})
	}
	return wire.AppendJSON(nil, wire.KindLoaded, f.ID, wire.Loaded{})
}

// fakeFound finds for every query its number in the search, times 1000 and on.
func fakeFound(told string, f wire.Frame) ([]byte, error) {
	var s wire.Search
	if err := s.Decode(f.Payload); err != nil {
		return nil, err
	}
	found := wire.Found{Rows: make([]int32, s.K*len(s.Bitmaps)), Products: make([]float32, s.K*len(s.Bitmaps))}
	for i := range found.Rows {
		found.Rows[i] = int32(s.Queries[2*s.Width*(i/s.K)+1])*1000 + int32(i%s.K)
		if i%s.K == 100 {
			found.Rows[i] = -1
		}
	}
	if told == "finds too little" {
		found = wire.Found{}
	}
	return wire.AppendFound(nil, f.ID, found)
}

func fakeAnswer(told string, f wire.Frame) ([]byte, error) {
	var r wire.Run
	if err := r.Decode(f.Payload); err != nil {
		return nil, err
	}
	a := wire.Answer{Pooled: make([]float32, 32*r.Batch.Len()), Norms: make([]float32, r.Batch.Len())}
	for i := range a.Norms {
		a.Norms[i] = float32(r.Batch.Offsets[i+1] - r.Batch.Offsets[i])
		a.Pooled[32*i] = a.Norms[i]
		if told == "gives NaN" || told == "dislikes 13" && a.Norms[i] == 13 {
			for j := range 32 {
				a.Pooled[32*i+j] = float32(nan())
			}
		}
	}
	return wire.AppendAnswer(nil, f.ID, a)
}

func nan() float64 {
	zero := 0.0
	return zero / zero
}
