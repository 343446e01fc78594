package pdf

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"reflect"

	"github.com/tetratelabs/wazero/api"

	"sluice/document"
)

// module is an instance of PDFium. Its functions are called as they are: those
// of go-pdfium cross the border several times for each character. After the
// first call that fails nothing is called any more, and err says why.
type module struct {
	ctx     context.Context
	exports reflect.Value // the method Fn of go-pdfium's implementation, whose type has no name here
	memory  api.Memory
	known   map[string]api.Function
	stack   [8]uint64
	scratch uint64 // address of scratchSize bytes for results
	err     error
}

const scratchSize = 256

// errEngine is no fault of a file: a build with another go-pdfium can read none.
var errEngine = errors.New("this program was built with a go-pdfium that it does not know; build it with the version in its go.mod")

// functions are those of PDFium that are called.
var functions = []string{
	"malloc", "free", "FPDF_LoadMemDocument", "FPDF_GetLastError", "FPDF_GetPageCount", "FPDF_LoadPage", "FPDF_ClosePage", "FPDF_GetPageWidthF", "FPDF_GetPageHeightF",
	"FPDFText_LoadPage", "FPDFText_ClosePage", "FPDFText_CountChars", "FPDFText_GetText", "FPDFText_GetUnicode", "FPDFText_GetCharBox", "FPDFText_CountRects", "FPDFText_GetRect",
	"FPDFText_GetFontSize", "FPDFText_GetFontWeight", "FPDFText_GetFontInfo", "FPDFText_GetCharAngle", "FPDFText_GetMatrix",
	"FPDFPage_CountObjects", "FPDFPage_GetObject", "FPDFPageObj_GetType", "FPDFPageObj_GetBounds",
}

// checkEngine reports, as errEngine, what an instance of go-pdfium lacks of what
// is taken from it behind its interface, and of these functions.
func checkEngine(instance any, functions []string) error {
	m := moduleOf(context.Background(), instance)
	for _, name := range functions {
		if m.err == nil {
			_, m.err = m.export(name)
		}
	}
	return m.err
}

// moduleOf is the instance below go-pdfium's. It ends its calls when the context ends.
func moduleOf(ctx context.Context, instance any) *module {
	m := &module{ctx: ctx, known: map[string]api.Function{}}
	within, ok := instance.(interface{ GetImplementation() any })
	if !ok {
		m.err = fmt.Errorf("%w (no GetImplementation)", errEngine)
		return m
	}
	implementation := reflect.ValueOf(within.GetImplementation())
	if m.memory, ok = memoryOf(reflect.Indirect(implementation)); !ok {
		m.err = fmt.Errorf("%w (no Module with a Memory)", errEngine)
		return m
	}
	if m.exports = implementation.MethodByName("Fn"); !isLookup(m.exports) {
		m.err = fmt.Errorf("%w (no Fn)", errEngine)
		return m
	}
	m.scratch = m.alloc(scratchSize)
	return m
}

// memoryOf is what the method Memory of the field Module returns.
func memoryOf(implementation reflect.Value) (api.Memory, bool) {
	if implementation.Kind() != reflect.Struct {
		return nil, false
	}
	field := implementation.FieldByName("Module")
	if !field.IsValid() {
		return nil, false
	}
	method := field.MethodByName("Memory")
	if !method.IsValid() || method.Type().NumIn() != 0 || method.Type().NumOut() != 1 {
		return nil, false
	}
	memory, ok := method.Call(nil)[0].Interface().(api.Memory)
	return memory, ok
}

// isLookup says whether a method returns one thing for a name.
func isLookup(method reflect.Value) bool {
	return method.IsValid() && method.Type().NumIn() == 1 && method.Type().In(0).Kind() == reflect.String && method.Type().NumOut() == 1
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
	found := m.exports.Call([]reflect.Value{reflect.ValueOf(name)})[0]
	if f, ok := found.Interface().(api.Function); ok {
		return f, nil
	}
	return nil, fmt.Errorf("%w (no %s)", errEngine, name)
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
