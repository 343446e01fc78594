// Package pdf reads PDF: lines from geometry, blocks from lines. The PDF engine
// is PDFium, compiled to WebAssembly: no C runs in the process, and what a file
// does to it stays inside its memory.
package pdf

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"

	"github.com/klippa-app/go-pdfium"
	"github.com/klippa-app/go-pdfium/references"
	"github.com/klippa-app/go-pdfium/requests"
	"github.com/klippa-app/go-pdfium/webassembly"
	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"

	"sluice/document"
)

// Bounds on what is read; docs/formats/text.md states them. A file beyond one is
// refused with an error that says so: nothing of a file is left out for its size.
const (
	MaxPages    = 2000
	memoryPages = 8192 // 64 KiB each: 512 MiB for one file
)

// limits bound what is kept of one file, and what one page may bring at a time.
type limits struct {
	chars, pieces                    int // of the file; a piece is a run of text, a line or a picture
	pageChars, pageRuns, pageObjects int
}

var standard = limits{chars: 16_000_000, pieces: 2_000_000, pageChars: 250_000, pageRuns: 100_000, pageObjects: 200_000}

// Errors that a caller may tell apart.
var (
	ErrEncrypted = errors.New("the PDF is encrypted; save it without a password")
	ErrTooLarge  = fmt.Errorf("the PDF is too large: at most %d pages, %d characters, %d pieces of text, lines and pictures, and %d MiB of memory are spent on one file; split it",
		MaxPages, standard.chars, standard.pieces, memoryPages/16)
	errClosed = errors.New("the reader is closed")
)

// Reader reads PDFs, as many at a time as there are cores. Safe for concurrent
// use. PDFium is compiled when the first file is read: that takes seconds,
// unless the cache has it. Where that fails, the next file tries again.
type Reader struct {
	cache  string
	limits limits

	mu       sync.Mutex
	starting *starting // nil: not yet, or it failed
	closed   bool
}

// starting is an engine that is being made; done is closed when it is, or cannot be.
type starting struct {
	done   chan struct{}
	engine *engine
	err    error
}

// engine is PDFium, with the code that it shares with later processes.
type engine struct {
	pdfium.Pool
	code wazero.CompilationCache
}

// NewReader returns a Reader that keeps compiled code in a directory, which it
// makes; "": in none.
func NewReader(cache string) *Reader { return &Reader{cache: cache, limits: standard} }

// Prepare begins to compile PDFium if that was not done on this machine, and
// reports whether: the first file need not wait for it.
func (r *Reader) Prepare() bool {
	if code, err := os.ReadDir(r.code()); err == nil && len(code) > 0 {
		return false
	}
	_, err := r.start()
	return err == nil
}

// start begins to make the engine, unless that was begun. It goes on when those
// who wait for it give up: the next one finds it made.
func (r *Reader) start() (*starting, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return nil, errClosed
	}
	if r.starting == nil {
		s := &starting{done: make(chan struct{})}
		r.starting = s
		go r.make(s)
	}
	return r.starting, nil
}

func (r *Reader) make(s *starting) {
	defer close(s.done)
	if s.engine, s.err = r.newEngine(); s.err != nil {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.starting = nil
	}
}

// started waits for the engine.
func (r *Reader) started(ctx context.Context) (*engine, error) {
	s, err := r.start()
	if err != nil {
		return nil, err
	}
	select {
	case <-s.done:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if s.err != nil {
		return nil, fmt.Errorf("starting the PDF engine: %w", s.err)
	}
	return s.engine, nil
}

func (r *Reader) code() string { return filepath.Join(r.cache, "pdfium") }

// newEngine compiles PDFium or takes it from the cache. The module sees no files.
func (r *Reader) newEngine() (*engine, error) {
	code, err := r.openCode()
	if err != nil {
		return nil, err
	}
	config := wazero.NewRuntimeConfig().WithMemoryLimitPages(memoryPages).WithCloseOnContextDone(true).
		WithCoreFeatures(api.CoreFeaturesV2 | experimental.CoreFeaturesExceptionHandling).WithCompilationCache(code)
	pool, err := webassembly.Init(webassembly.Config{
		MaxTotal: runtime.GOMAXPROCS(0), RuntimeConfig: config, FSConfig: wazero.NewFSConfig(),
		Stdout: io.Discard, Stderr: io.Discard,
	})
	if err != nil {
		return nil, errors.Join(err, code.Close(context.Background()))
	}
	return &engine{pool, code}, nil
}

func (r *Reader) openCode() (wazero.CompilationCache, error) {
	if r.cache == "" {
		return wazero.NewCompilationCache(), nil
	}
	if err := os.MkdirAll(r.cache, 0o755); err != nil {
		return nil, err
	}
	code, err := wazero.NewCompilationCacheWithDir(r.code())
	if err != nil {
		return nil, fmt.Errorf("cache of compiled code: %w", err)
	}
	return code, nil
}

// Close frees what the Reader holds, when it is made. No file may be read any more.
func (r *Reader) Close() error {
	r.mu.Lock()
	s := r.starting
	r.closed = true
	r.mu.Unlock()
	if s == nil {
		return nil
	}
	<-s.done
	if s.err != nil {
		return nil // those who waited were told
	}
	return errors.Join(s.engine.Close(), s.engine.code.Close(context.Background()))
}

// Parse reads one file. It fails with ErrEncrypted, ErrTooLarge, an error that
// wraps document.ErrMalformed, or that of the context.
func (r *Reader) Parse(ctx context.Context, raw []byte) (document.Document, error) {
	pool, err := r.started(ctx)
	if err != nil {
		return document.Document{}, err
	}
	engine, err := pool.GetInstanceWithContext(ctx)
	if err != nil {
		return document.Document{}, fmt.Errorf("waiting for the PDF engine: %w", err)
	}
	stop := context.AfterFunc(ctx, func() { _ = engine.Kill() })
	pages, err := readPages(ctx, engine, raw, r.limits)
	if stop() {
		_ = engine.Close() // of the instance alone; what it says of a broken file is known
	}
	if err != nil {
		if ctx.Err() != nil {
			err = ctx.Err()
		}
		return document.Document{}, err
	}
	doc, err := document.Assemble(layout(pages))
	doc.Format = "pdf"
	for _, p := range pages {
		doc.Pages = append(doc.Pages, document.Page{Width: p.width, Height: p.height})
		doc.Furniture = append(doc.Furniture, p.furniture...)
	}
	return doc, err
}

// readPages reads what stands on every page. A panic of the engine is an error
// of the file.
func readPages(ctx context.Context, engine pdfium.Pdfium, raw []byte, left limits) (pages []*page, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%w: the PDF engine failed on it: %v", document.ErrMalformed, p)
		}
	}()
	opened, err := engine.OpenDocument(&requests.OpenDocument{File: &raw})
	if err != nil {
		return nil, openError(err)
	}
	defer func() { _, _ = engine.FPDF_CloseDocument(&requests.FPDF_CloseDocument{Document: opened.Document}) }()
	count, err := engine.FPDF_GetPageCount(&requests.FPDF_GetPageCount{Document: opened.Document})
	if err != nil {
		return nil, pageError(0, err)
	}
	if count.PageCount > MaxPages {
		return nil, fmt.Errorf("%w: it has %d pages", ErrTooLarge, count.PageCount)
	}
	for i := range count.PageCount {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		p, err := readPage(engine, opened.Document, i, &left)
		if err != nil {
			return nil, pageError(i+1, err)
		}
		pages = append(pages, p)
	}
	return pages, nil
}

func openError(err error) error {
	if s := strings.ToLower(err.Error()); strings.Contains(s, "password") || strings.Contains(s, "security") {
		return ErrEncrypted
	}
	return fmt.Errorf("%w: %w", document.ErrMalformed, err)
}

func pageError(number int, err error) error {
	if errors.Is(err, ErrTooLarge) || errors.Is(err, document.ErrMalformed) {
		return err
	}
	return fmt.Errorf("%w: page %d: %w", document.ErrMalformed, number, err)
}

// readPage reads the text, the lines and the pictures of one page, and takes them
// off what is left for the file.
func readPage(engine pdfium.Pdfium, doc references.FPDF_DOCUMENT, index int, left *limits) (*page, error) {
	loaded, err := engine.FPDF_LoadPage(&requests.FPDF_LoadPage{Document: doc, Index: index})
	if err != nil {
		return nil, err
	}
	defer func() { _, _ = engine.FPDF_ClosePage(&requests.FPDF_ClosePage{Page: loaded.Page}) }()
	at := requests.Page{ByReference: &loaded.Page}
	width, err := engine.FPDF_GetPageWidthF(&requests.FPDF_GetPageWidthF{Page: at})
	if err != nil {
		return nil, err
	}
	height, err := engine.FPDF_GetPageHeightF(&requests.FPDF_GetPageHeightF{Page: at})
	if err != nil {
		return nil, err
	}
	p := &page{number: index + 1, width: float64(width.PageWidth), height: float64(height.PageHeight)}
	if err := p.readText(engine, at, left); err != nil {
		return nil, err
	}
	if err := p.readObjects(engine, at, left); err != nil {
		return nil, err
	}
	left.pieces -= len(p.runs) + len(p.rules) + len(p.pictures)
	return p, left.check(p.number)
}

// check reports a file that has brought more than there was left.
func (l *limits) check(page int) error {
	if l.chars < 0 || l.pieces < 0 {
		return fmt.Errorf("%w: that was reached on page %d", ErrTooLarge, page)
	}
	return nil
}

// readText counts the characters before it takes any.
func (p *page) readText(engine pdfium.Pdfium, at requests.Page, left *limits) error {
	chars, err := countChars(engine, at)
	if err != nil {
		return err
	}
	if chars > left.pageChars {
		return fmt.Errorf("%w: page %d has %d characters, at most %d are possible on one", ErrTooLarge, p.number, chars, left.pageChars)
	}
	left.chars -= chars
	if err := left.check(p.number); err != nil {
		return err
	}
	text, err := engine.GetPageTextStructured(&requests.GetPageTextStructured{
		Page: at, Mode: requests.GetPageTextStructuredModeBoth, CollectFontInformation: true,
	})
	if err != nil {
		return err
	}
	if len(text.Rects) > left.pageRuns {
		return fmt.Errorf("%w: page %d has %d pieces of text, at most %d are possible on one", ErrTooLarge, p.number, len(text.Rects), left.pageRuns)
	}
	p.addRuns(text)
	return nil
}

func countChars(engine pdfium.Pdfium, at requests.Page) (int, error) {
	text, err := engine.FPDFText_LoadPage(&requests.FPDFText_LoadPage{Page: at})
	if err != nil {
		return 0, err
	}
	defer func() { _, _ = engine.FPDFText_ClosePage(&requests.FPDFText_ClosePage{TextPage: text.TextPage}) }()
	chars, err := engine.FPDFText_CountChars(&requests.FPDFText_CountChars{TextPage: text.TextPage})
	if err != nil {
		return 0, err
	}
	return chars.Count, nil
}

// readObjects takes straight lines, as tables are ruled with, and pictures.
func (p *page) readObjects(engine pdfium.Pdfium, at requests.Page, left *limits) error {
	count, err := engine.FPDFPage_CountObjects(&requests.FPDFPage_CountObjects{Page: at})
	if err != nil {
		return err
	}
	if count.Count > left.pageObjects {
		return fmt.Errorf("%w: page %d has %d objects, at most %d are possible on one", ErrTooLarge, p.number, count.Count, left.pageObjects)
	}
	for i := range count.Count {
		object, err := engine.FPDFPage_GetObject(&requests.FPDFPage_GetObject{Page: at, Index: i})
		if err != nil {
			return err
		}
		kind, err := engine.FPDFPageObj_GetType(&requests.FPDFPageObj_GetType{PageObject: object.PageObject})
		if err != nil {
			return err
		}
		if kind.Type != objectPath && kind.Type != objectImage {
			continue
		}
		b, err := engine.FPDFPageObj_GetBounds(&requests.FPDFPageObj_GetBounds{PageObject: object.PageObject})
		if err != nil {
			continue // an object without extent
		}
		p.addObject(kind.Type == objectImage, document.Box{
			Left: float64(b.Left), Top: p.height - float64(b.Top), Right: float64(b.Right), Bottom: p.height - float64(b.Bottom),
		})
	}
	return nil
}
