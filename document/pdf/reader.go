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
	"sync"
	"time"

	"github.com/klippa-app/go-pdfium"
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

// Reader reads PDFs, so many at a time. Safe for concurrent use. PDFium is compiled when the first file is read: that takes seconds,
// unless the cache has it. Where that fails, the next file tries again.
type Reader struct {
	cache  string
	files  int // at a time
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

// NewReader returns a Reader of so many files at a time that keeps compiled code
// in a directory, which it makes; "": in none.
func NewReader(cache string, files int) *Reader {
	return &Reader{cache: cache, files: files, limits: standard}
}

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
		MaxTotal: r.files, RuntimeConfig: config, FSConfig: wazero.NewFSConfig(),
		Stdout: io.Discard, Stderr: io.Discard,
	})
	if err != nil {
		return nil, errors.Join(err, code.Close(context.Background()))
	}
	e := &engine{pool, code}
	if err := e.check(); err != nil {
		return nil, errors.Join(err, e.Close(), code.Close(context.Background()))
	}
	return e, nil
}

// check looks once for what is taken from every instance.
func (e *engine) check() error {
	instance, err := e.GetInstance(time.Minute)
	if err != nil {
		return err
	}
	return errors.Join(checkEngine(instance, functions), instance.Close())
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
	pages, err := readPages(ctx, engine, raw, r.limits)
	_ = engine.Close() // of the instance alone; what it says of a broken file is known
	if err != nil {
		if ctx.Err() != nil {
			err = ctx.Err()
		}
		return document.Document{}, err
	}
	doc, err := assemble(ctx, pages)
	doc.Format = "pdf"
	for _, p := range pages {
		doc.Pages = append(doc.Pages, document.Page{Width: p.width, Height: p.height})
		doc.Furniture = append(doc.Furniture, p.furniture...)
	}
	return doc, err
}

// panicked makes a panic of who reads an error of the file, or of the context.
func panicked(err *error, who string) {
	switch p := recover().(type) {
	case nil:
	case stopped:
		*err = p.error
	default:
		*err = fmt.Errorf("%w: %s failed on it: %v", document.ErrMalformed, who, p)
	}
}

// assemble makes a document of its pages. A panic is an error of the file.
func assemble(ctx context.Context, pages []*page) (doc document.Document, err error) {
	defer panicked(&err, "the reader")
	elements := layout(&work{ctx: ctx}, pages)
	if err := ctx.Err(); err != nil {
		return document.Document{}, err
	}
	return document.Assemble(elements)
}

// readPages reads what stands on every page. A panic of the engine is an error
// of the file.
func readPages(ctx context.Context, engine pdfium.Pdfium, raw []byte, left limits) (pages []*page, err error) {
	defer panicked(&err, "the PDF engine")
	m := moduleOf(ctx, engine)
	doc, err := m.open(raw)
	if err != nil {
		return nil, err
	}
	count := m.int32("FPDF_GetPageCount", doc)
	if count > MaxPages {
		return nil, fmt.Errorf("%w: it has %d pages", ErrTooLarge, count)
	}
	for i := range count {
		p, err := m.page(doc, i, &left)
		if err != nil {
			return nil, pageError(i+1, err)
		}
		pages = append(pages, p)
	}
	return pages, m.failure()
}

func pageError(number int, err error) error {
	if errors.Is(err, ErrTooLarge) || errors.Is(err, document.ErrMalformed) {
		return err
	}
	return fmt.Errorf("%w: page %d: %w", document.ErrMalformed, number, err)
}

// check reports a file that has brought more than there was left.
func (l *limits) check(page int) error {
	if l.chars < 0 || l.pieces < 0 {
		return fmt.Errorf("%w: that was reached on page %d", ErrTooLarge, page)
	}
	return nil
}
