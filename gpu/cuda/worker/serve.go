//go:build nvidia

package worker

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"

	"sluice/gpu"
	"sluice/gpu/cuda/wire"
	"sluice/model"
)

// slots is how many batches are under way at once: one computes while another
// is copied.
const slots = 2

// server answers one daemon's requests.
type server struct {
	device *Device
	reader *wire.Reader
	models map[int]*Model // of the reading goroutine
	held   memories
	free   chan *lane

	writing sync.Mutex
	writer  io.Writer
	buffer  []byte

	failing sync.Once
	failed  chan error // what spoilt the device
}

// lane is a slot with its goroutine.
type lane struct {
	*Slot
	work    chan job
	request wire.Run
	search  search
	maxsim  wire.MaxSim
	buffer  []byte
}

// job is a request: a search is in its lane, of others there is the payload.
type job struct {
	kind    wire.Kind
	id      uint32
	model   *Model
	payload []byte
}

// Serve runs device ordinal for the daemon at the other end until that goes
// away (nil), or the device fails. What runs then is left: the process is to end.
func Serve(connection io.ReadWriter, ordinal int) error {
	d, err := Open(ordinal)
	if err != nil {
		return err
	}
	s := &server{
		device: d, reader: wire.NewReader(connection), writer: connection,
		models: map[int]*Model{}, held: memories{of: map[uint32]*memory{}}, free: make(chan *lane, slots), failed: make(chan error, 1),
	}
	if err := s.hello(0); err != nil {
		return err
	}
	for range slots {
		if err := s.startLane(); err != nil {
			return err
		}
	}
	read := make(chan error, 1)
	go func() { read <- s.read() }()
	select {
	case err = <-read:
	case err = <-s.failed:
	}
	return err
}

// hello says how the device is now.
func (s *server) hello(id uint32) error {
	described, err := s.device.Describe()
	if err != nil {
		return err
	}
	return s.send(func(dst []byte) ([]byte, error) {
		return wire.AppendJSON(dst, wire.KindHello, id, wire.Hello{Device: described, Process: os.Getpid()})
	})
}

func (s *server) startLane() error {
	slot, err := s.device.NewSlot()
	if err != nil {
		return err
	}
	l := &lane{Slot: slot, work: make(chan job, 1)}
	go s.run(l)
	s.free <- l
	return nil
}

// send writes one frame that appends to the buffer that is handed to it.
func (s *server) send(frame func(dst []byte) ([]byte, error)) error {
	s.writing.Lock()
	defer s.writing.Unlock()
	data, err := frame(s.buffer)
	if err != nil {
		return err
	}
	s.buffer = data
	_, err = s.writer.Write(data)
	return err
}

func (s *server) sendFailure(id uint32, code wire.Code, why error) error {
	return s.send(func(dst []byte) ([]byte, error) {
		return wire.AppendFailure(dst, id, wire.Failure{Code: code, Text: why.Error()})
	})
}

// read takes requests until the daemon goes away.
func (s *server) read() error {
	if err := s.device.Bind(); err != nil {
		return err
	}
	for {
		f, err := s.reader.Read()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err == nil {
			err = s.take(f)
		}
		if err != nil {
			return err
		}
	}
}

func (s *server) take(f wire.Frame) error {
	switch f.Kind {
	case wire.KindLoad:
		return s.load(f)
	case wire.KindRun, wire.KindMaxSim:
		return s.start(f)
	case wire.KindHold:
		return s.hold(f)
	case wire.KindDrop:
		number, err := wire.DecodeDrop(f.Payload)
		return errors.Join(err, s.held.drop(number))
	case wire.KindSearch:
		return s.startSearch(f)
	case wire.KindStatus:
		return s.hello(f.ID)
	}
	return fmt.Errorf("%w: of kind %d, which only a worker sends", wire.ErrFrame, f.Kind)
}

func (s *server) load(f wire.Frame) error {
	var l wire.Load
	if err := wire.DecodeJSON(f, &l); err != nil {
		return err
	}
	m, err := s.loadModel(l)
	if err != nil {
		return s.sendFailure(f.ID, wire.CodeModel, err)
	}
	s.models[l.Number] = m
	return s.send(func(dst []byte) ([]byte, error) {
		return wire.AppendJSON(dst, wire.KindLoaded, f.ID, wire.Loaded{Bytes: m.bytes})
	})
}

func (s *server) loadModel(l wire.Load) (*Model, error) {
	m, err := model.Load(l.Directory)
	if err != nil {
		return nil, err
	}
	if m.Digest != l.Digest {
		return nil, fmt.Errorf("%s has changed since the daemon read it: restart the daemon", filepath.Base(l.Directory))
	}
	return s.device.Load(m, l.Kernels...)
}

func (s *server) hold(f wire.Frame) error {
	h, err := wire.DecodeHold(f.Payload)
	if err != nil {
		return err
	}
	if err := s.held.hold(h); err != nil {
		return s.fail(f.ID, err)
	}
	return s.send(func(dst []byte) ([]byte, error) {
		return wire.AppendJSON(dst, wire.KindLoaded, f.ID, wire.Loaded{Bytes: int64(h.Size)})
	})
}

// startSearch hands a search to a slot, with the memory that it names at this
// place in the order of requests.
func (s *server) startSearch(f wire.Frame) error {
	l := <-s.free
	if err := l.search.Decode(f.Payload); err != nil {
		return err
	}
	if err := l.search.borrow(&s.held); err != nil {
		err = errors.Join(s.fail(f.ID, err), l.search.giveBack(&s.held))
		s.free <- l
		return err
	}
	l.work <- job{kind: f.Kind, id: f.ID}
	return nil
}

// start hands a request to a slot, as soon as one is free.
func (s *server) start(f wire.Frame) error {
	l := <-s.free
	l.buffer = append(l.buffer[:0], f.Payload...)
	j := job{kind: f.Kind, id: f.ID, payload: l.buffer}
	if f.Kind == wire.KindRun {
		number, err := wire.RunModel(f.Payload)
		if err != nil {
			return err
		}
		j.model = s.models[number]
	}
	l.work <- j
	return nil
}

// run has a lane do what it is handed, as long as the device does.
func (s *server) run(l *lane) {
	err := s.device.Bind()
	for err == nil {
		err = s.do(l, <-l.work)
		s.free <- l
	}
	s.failing.Do(func() { s.failed <- err })
}

func (s *server) do(l *lane, j job) error {
	switch j.kind {
	case wire.KindSearch:
		return s.doSearch(l, j.id)
	case wire.KindMaxSim:
		return s.doMaxSim(l, j)
	}
	if err := l.request.Decode(j.payload); err != nil {
		return err
	}
	if j.model == nil {
		return s.sendFailure(j.id, wire.CodeInput, fmt.Errorf("there is no model %d", l.request.Model))
	}
	answer, err := l.Run(j.model, &l.request)
	return s.answer(j.id, answer, err)
}

func (s *server) doMaxSim(l *lane, j job) error {
	if err := l.maxsim.Decode(j.payload); err != nil {
		return err
	}
	answer, err := l.maxSim(&l.maxsim)
	return s.answer(j.id, answer, err)
}

func (s *server) answer(id uint32, answer wire.Answer, err error) error {
	if err != nil {
		return s.fail(id, err)
	}
	return s.send(func(dst []byte) ([]byte, error) { return wire.AppendAnswer(dst, id, answer) })
}

func (s *server) doSearch(l *lane, id uint32) error {
	found, err := l.Slot.search(&l.search)
	if err := errors.Join(err, l.search.giveBack(&s.held)); err != nil {
		return s.fail(id, err)
	}
	return s.send(func(dst []byte) ([]byte, error) { return wire.AppendFound(dst, id, found) })
}

// fail tells the daemon why a request has no answer. It returns what concerns
// the device, and so ends the worker.
func (s *server) fail(id uint32, why error) error {
	switch {
	case errors.Is(why, gpu.ErrInput):
		return s.sendFailure(id, wire.CodeInput, why)
	case errors.Is(why, errMemory):
		return s.sendFailure(id, wire.CodeMemory, why)
	}
	return errors.Join(why, s.sendFailure(id, wire.CodeDevice, why))
}
