package pdf

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"reflect"

	"github.com/klippa-app/go-pdfium"
	"github.com/tetratelabs/wazero/api"

	"sluice/document"
)

// module is an instance of PDFium. Its functions are called as they are: those
// of go-pdfium cross the border several times for each character. After the
// first call that fails nothing is called any more, and err says why.
type module struct {
	ctx     context.Context
	exports reflect.Value // of go-pdfium's implementation: it exports its functions, but its type has no name here
	memory  api.Memory
	known   map[string]api.Function
	stack   [8]uint64
	scratch uint64 // address of scratchSize bytes for results
	err     error
}

const scratchSize = 256

var errEngine = errors.New("the PDF engine is not the one that is known")

// moduleOf is the instance below go-pdfium's. It ends its calls when the context ends.
func moduleOf(ctx context.Context, instance pdfium.Pdfium) *module {
	m := &module{ctx: ctx, known: map[string]api.Function{}}
	within, ok := instance.(interface{ GetImplementation() any })
	if !ok {
		m.err = errEngine
		return m
	}
	m.exports = reflect.ValueOf(within.GetImplementation())
	memory := m.exports.Elem().FieldByName("Module").MethodByName("Memory").Call(nil)[0].Interface()
	if m.memory, ok = memory.(api.Memory); !ok {
		m.err = errEngine
		return m
	}
	m.scratch = m.alloc(scratchSize)
	return m
}

// call calls a function of PDFium; 0 where it or one before it failed.
func (m *module) call(name string, params ...uint64) uint64 {
	if m.err != nil {
		return 0
	}
	f := m.known[name]
	if f == nil {
		if f, m.err = m.export(name); m.err != nil {
			return 0
		}
		m.known[name] = f
	}
	copy(m.stack[:], params)
	m.err = f.CallWithStack(m.ctx, m.stack[:])
	return m.stack[0]
}

func (m *module) export(name string) (api.Function, error) {
	found := m.exports.MethodByName("Fn").Call([]reflect.Value{reflect.ValueOf(name)})[0]
	if f, ok := found.Interface().(api.Function); ok {
		return f, nil
	}
	return nil, fmt.Errorf("%w: it has no %s", errEngine, name)
}

// alloc takes bytes of the engine's memory, which live as long as it does or
// until they are freed.
func (m *module) alloc(size int) uint64 {
	at := m.call("malloc", uint64(size))
	if at == 0 && m.err == nil {
		m.err = ErrTooLarge
	}
	return at
}

// bytes are those at an address. They are valid until the next call.
func (m *module) bytes(at uint64, size int) []byte {
	if m.err != nil {
		return make([]byte, size)
	}
	b, ok := m.memory.Read(uint32(at), uint32(size))
	if !ok {
		m.err = fmt.Errorf("%w: the PDF engine points outside of its memory", document.ErrMalformed)
		return make([]byte, size)
	}
	return b
}

func (m *module) int32(name string, params ...uint64) int {
	return int(int32(m.call(name, params...)))
}

func (m *module) float32(name string, params ...uint64) float64 {
	return float64(math.Float32frombits(uint32(m.call(name, params...))))
}

func (m *module) float64(name string, params ...uint64) float64 {
	return math.Float64frombits(m.call(name, params...))
}

func float32At(b []byte, i int) float64 {
	return float64(math.Float32frombits(binary.LittleEndian.Uint32(b[4*i:])))
}

func float64At(b []byte, i int) float64 {
	return math.Float64frombits(binary.LittleEndian.Uint64(b[8*i:]))
}
