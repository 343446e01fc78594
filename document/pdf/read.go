package pdf

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"strings"
	"unicode/utf16"

	"github.com/klippa-app/go-pdfium/enums"

	"sluice/document"
)

// What FPDF_GetLastError says of a file that is encrypted.
const (
	errPassword = 4
	errSecurity = 5
)

// char is a character and where it stands on the page.
type char struct {
	rune rune
	box  document.Box
}

// open opens a file in the engine's memory, which keeps it until the engine goes.
func (m *module) open(raw []byte) (doc uint64, err error) {
	at := m.alloc(max(len(raw), 1))
	copy(m.bytes(at, len(raw)), raw)
	if doc = m.call("FPDF_LoadMemDocument", at, uint64(len(raw)), 0); doc != 0 {
		return doc, nil
	}
	switch code := m.int32("FPDF_GetLastError"); {
	case m.err != nil:
		return 0, m.failure()
	case code == errPassword || code == errSecurity:
		return 0, ErrEncrypted
	}
	return 0, fmt.Errorf("%w: it cannot be opened as a PDF; see whether a viewer opens it, and save it anew from there", document.ErrMalformed)
}

// failure is why the engine stopped, as an error of the file.
func (m *module) failure() error {
	if m.err == nil || errors.Is(m.err, errEngine) || errors.Is(m.err, ErrTooLarge) || errors.Is(m.err, document.ErrMalformed) {
		return m.err
	}
	return fmt.Errorf("%w: the PDF engine failed on it: %w", document.ErrMalformed, m.err)
}

// page reads the text, the lines and the pictures of one page, and takes them
// off what is left for the file.
func (m *module) page(doc uint64, index int, left *limits) (*page, error) {
	loaded := m.call("FPDF_LoadPage", doc, uint64(index))
	if loaded == 0 && m.err == nil {
		return nil, errors.New("it cannot be loaded")
	}
	defer m.call("FPDF_ClosePage", loaded)
	p := &page{number: index + 1, width: m.float32("FPDF_GetPageWidthF", loaded), height: m.float32("FPDF_GetPageHeightF", loaded)}
	if err := m.readText(p, loaded, left); err != nil {
		return nil, err
	}
	if err := m.readObjects(p, loaded, left); err != nil {
		return nil, err
	}
	left.pieces -= len(p.runs) + len(p.rules) + len(p.pictures)
	return p, errors.Join(left.check(p.number), m.failure())
}

// readText counts the characters before it takes any.
func (m *module) readText(p *page, loaded uint64, left *limits) error {
	text := m.call("FPDFText_LoadPage", loaded)
	if text == 0 && m.err == nil {
		return errors.New("its text cannot be read")
	}
	defer m.call("FPDFText_ClosePage", text)
	count := m.int32("FPDFText_CountChars", text)
	if count > left.pageChars {
		return fmt.Errorf("%w: page %d has %d characters, at most %d are possible on one", ErrTooLarge, p.number, count, left.pageChars)
	}
	left.chars -= count
	if err := left.check(p.number); err != nil {
		return err
	}
	stretches := m.int32("FPDFText_CountRects", text, 0, uint64(count))
	if stretches > left.pageRuns {
		return fmt.Errorf("%w: page %d has %d pieces of text, at most %d are possible on one", ErrTooLarge, p.number, stretches, left.pageRuns)
	}
	chars := m.chars(p, text, max(count, 0))
	p.addRuns(chars, m.stretches(p, text, stretches), func(at int) run { return m.style(text, at) })
	return m.failure()
}

// chars are the characters of a page in the order in which it draws them.
func (m *module) chars(p *page, text uint64, count int) []char {
	chars := make([]char, 0, count)
	runes := m.runes(text, count)
	for i := range count {
		m.call("FPDFText_GetCharBox", text, uint64(i), m.scratch, m.scratch+8, m.scratch+16, m.scratch+24)
		b := m.bytes(m.scratch, 32)
		chars = append(chars, char{runes[i], document.Box{
			Left: float64At(b, 0), Top: p.height - float64At(b, 3), Right: float64At(b, 1), Bottom: p.height - float64At(b, 2),
		}})
	}
	return chars
}

// runes takes the text in one call where each character is one unit of it; there
// a hyphen at the end of a line is no character.
func (m *module) runes(text uint64, count int) []rune {
	runes := make([]rune, count)
	at := m.alloc(2 * (count + 1))
	written := m.int32("FPDFText_GetText", text, 0, uint64(count), at)
	units := m.bytes(at, 2*count)
	plain := written == count+1
	for i := range runes {
		runes[i] = rune(binary.LittleEndian.Uint16(units[2*i:]))
		plain = plain && !utf16.IsSurrogate(runes[i])
	}
	m.call("free", at)
	for i := range runes {
		if !plain || runes[i] == '\uFFFE' {
			runes[i] = rune(m.int32("FPDFText_GetUnicode", text, uint64(i)))
		}
	}
	return runes
}

func (m *module) stretches(p *page, text uint64, count int) []document.Box {
	boxes := make([]document.Box, 0, max(count, 0))
	for i := range count {
		m.call("FPDFText_GetRect", text, uint64(i), m.scratch, m.scratch+8, m.scratch+16, m.scratch+24)
		b := m.bytes(m.scratch, 32)
		boxes = append(boxes, document.Box{Left: float64At(b, 0), Top: p.height - float64At(b, 1), Right: float64At(b, 2), Bottom: p.height - float64At(b, 3)})
	}
	return boxes
}

// style is a run without its text: that of the object which a character belongs to.
func (m *module) style(text uint64, at int) run {
	i := uint64(at)
	r := run{size: m.float64("FPDFText_GetFontSize", text, i), turned: math.Abs(math.Sin(m.float32("FPDFText_GetCharAngle", text, i))) > 0.1}
	if m.call("FPDFText_GetMatrix", text, i, m.scratch) != 0 {
		b := m.bytes(m.scratch, 24)
		r.size *= math.Hypot(float32At(b, 2), float32At(b, 3))
	}
	weight := m.int32("FPDFText_GetFontWeight", text, i)
	length := m.int32("FPDFText_GetFontInfo", text, i, m.scratch+4, scratchSize-4, m.scratch)
	b := m.bytes(m.scratch, scratchSize)
	flags := binary.LittleEndian.Uint32(b)
	name := strings.ToLower(string(bytes.TrimRight(b[4:4+min(max(length, 0), scratchSize-4)], "\x00")))
	r.bold = weight >= 600 || strings.Contains(name, "bold") || strings.Contains(name, "black")
	r.mono = flags&1 != 0 || strings.Contains(name, "mono") || strings.Contains(name, "courier")
	return r
}

// readObjects takes straight lines, as tables are ruled with, and pictures.
func (m *module) readObjects(p *page, loaded uint64, left *limits) error {
	count := m.int32("FPDFPage_CountObjects", loaded)
	if count > left.pageObjects {
		return fmt.Errorf("%w: page %d has %d objects, at most %d are possible on one", ErrTooLarge, p.number, count, left.pageObjects)
	}
	for i := range count {
		object := m.call("FPDFPage_GetObject", loaded, uint64(i))
		kind := enums.FPDF_PAGEOBJ(m.int32("FPDFPageObj_GetType", object))
		if kind != enums.FPDF_PAGEOBJ_PATH && kind != enums.FPDF_PAGEOBJ_IMAGE {
			continue
		}
		if m.call("FPDFPageObj_GetBounds", object, m.scratch, m.scratch+4, m.scratch+8, m.scratch+12) == 0 {
			continue // an object without extent
		}
		b := m.bytes(m.scratch, 16)
		p.addObject(kind == enums.FPDF_PAGEOBJ_IMAGE, document.Box{
			Left: float32At(b, 0), Top: p.height - float32At(b, 3), Right: float32At(b, 2), Bottom: p.height - float32At(b, 1),
		})
	}
	return m.failure()
}
