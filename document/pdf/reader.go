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

// Bounds on what is read. A file beyond one is refused with an error that says so.
const (
	MaxPages    = 2000
	memoryPages = 8192    // 64 KiB each: 512 MiB for one file
	maxRuns     = 100_000 // pieces of text on a page
	maxObjects  = 20_000  // lines, pictures, … looked at on a page
)

// Errors that a caller may tell apart.
var (
	ErrEncrypted = errors.New("the PDF is encrypted; save it without a password")
	ErrTooLarge  = fmt.Errorf("the PDF is too large: at most %d pages and %d MiB of memory are spent on one file; split it", MaxPages, memoryPages/16)
)

// Reader reads PDFs, as many at a time as there are cores. Safe for concurrent
// use. PDFium is compiled when the first file is read: that takes seconds,
// unless the cache has it.
type Reader struct {
	cache string
	once  sync.Once
	pool  pdfium.Pool
	done  func() error
	err   error
}

// NewReader returns a Reader that keeps compiled code in a directory, which it
// makes; "": in none.
func NewReader(cache string) *Reader { return &Reader{cache: cache} }

// open compiles PDFium or takes it from the cache. The module sees no files.
func (r *Reader) open() {
	config := wazero.NewRuntimeConfig().WithMemoryLimitPages(memoryPages).WithCloseOnContextDone(true).
		WithCoreFeatures(api.CoreFeaturesV2 | experimental.CoreFeaturesExceptionHandling)
	r.done = func() error { return nil }
	if r.cache != "" {
		if r.err = os.MkdirAll(r.cache, 0o755); r.err != nil {
			return
		}
		cache, err := wazero.NewCompilationCacheWithDir(filepath.Join(r.cache, "pdfium"))
		if err != nil {
			r.err = fmt.Errorf("cache of compiled code: %w", err)
			return
		}
		config = config.WithCompilationCache(cache)
		r.done = func() error { return cache.Close(context.Background()) }
	}
	r.pool, r.err = webassembly.Init(webassembly.Config{
		MaxTotal: runtime.GOMAXPROCS(0), RuntimeConfig: config, FSConfig: wazero.NewFSConfig(),
		Stdout: io.Discard, Stderr: io.Discard,
	})
}

// Close frees what the Reader holds. No file may be read any more.
func (r *Reader) Close() error {
	r.once.Do(func() { r.err = errors.New("the reader is closed") })
	if r.pool == nil {
		return nil
	}
	return errors.Join(r.pool.Close(), r.done())
}

// Parse reads one file. It fails with ErrEncrypted, ErrTooLarge, an error that
// wraps document.ErrMalformed, or that of the context.
func (r *Reader) Parse(ctx context.Context, raw []byte) (document.Document, error) {
	if r.once.Do(r.open); r.err != nil {
		return document.Document{}, fmt.Errorf("starting the PDF engine: %w", r.err)
	}
	engine, err := r.pool.GetInstanceWithContext(ctx)
	if err != nil {
		return document.Document{}, fmt.Errorf("waiting for the PDF engine: %w", err)
	}
	stop := context.AfterFunc(ctx, func() { _ = engine.Kill() })
	pages, err := readPages(ctx, engine, raw)
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
func readPages(ctx context.Context, engine pdfium.Pdfium, raw []byte) (pages []*page, err error) {
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
		p, err := readPage(engine, opened.Document, i)
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

// readPage reads the text, the lines and the pictures of one page.
func readPage(engine pdfium.Pdfium, doc references.FPDF_DOCUMENT, index int) (*page, error) {
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
	if err := p.readText(engine, at); err != nil {
		return nil, err
	}
	return p, p.readObjects(engine, at)
}

func (p *page) readText(engine pdfium.Pdfium, at requests.Page) error {
	text, err := engine.GetPageTextStructured(&requests.GetPageTextStructured{
		Page: at, Mode: requests.GetPageTextStructuredModeBoth, CollectFontInformation: true,
	})
	if err != nil {
		return err
	}
	if len(text.Rects) > maxRuns {
		return fmt.Errorf("%w: page %d has %d pieces of text", ErrTooLarge, p.number, len(text.Rects))
	}
	p.addRuns(text)
	return nil
}

// readObjects takes straight lines, as tables are ruled with, and pictures.
func (p *page) readObjects(engine pdfium.Pdfium, at requests.Page) error {
	count, err := engine.FPDFPage_CountObjects(&requests.FPDFPage_CountObjects{Page: at})
	if err != nil {
		return err
	}
	for i := range min(count.Count, maxObjects) {
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
