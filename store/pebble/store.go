// Package pebble keeps the store of one process in one directory, on
// github.com/cockroachdb/pebble. docs/formats/store.md states the format.
//
// Writes go through two goroutines: the committer plans and applies one write
// after the other, the syncer waits for the log to be on disk and answers. While
// the syncer waits, the committer goes on, so that concurrent writes share a sync.
package pebble

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"sync"
	"syscall"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/bloom"
	"github.com/cockroachdb/pebble/v2/vfs"

	"sluice/store"
	"sluice/store/encode"
)

// Sizes of pebble's memory, in bytes. Memtables, of which two are usual, come out
// of the cache.
const (
	cacheSize    = 96 << 20
	memTableSize = 16 << 20
)

// maxUnsynced is how many applied writes may wait for the log to be synced.
const maxUnsynced = 1024

// Options of Open. The zero value is what a daemon wants.
type Options struct {
	ReadOnly bool         // for checking: nothing is written, writes give store.ErrReadOnly
	Logger   *slog.Logger // takes what pebble has to say; nil: nowhere
	FS       vfs.FS       // nil: the operating system's

	memTableSize uint64 // 0: the constant; tests want small ones
}

// Store is a store.Store and a store.Checker.
type Store struct {
	db       *pebble.DB
	guard    *guard
	lock     io.Closer
	codec    encode.Codec
	readOnly bool

	use    sync.RWMutex // held for reading by every call under way
	closed bool         // guarded by use
	ending chan struct{}

	writes  chan *write
	applied chan *write
	workers sync.WaitGroup
	state   state // of the committer
	records *recordCache

	feed feed
}

var (
	_ store.Store   = (*Store)(nil)
	_ store.Checker = (*Store)(nil)
)

// Open opens the store in dir, and creates it if there is none (unless read-only:
// store.ErrNotFound). A directory in use gives store.ErrLocked, one of a newer
// format store.ErrNewerFormat and is left as it is. Close the store.
func Open(dir string, options Options) (*Store, error) {
	if options.FS == nil {
		options.FS = vfs.Default
	}
	if options.Logger == nil {
		options.Logger = slog.New(slog.DiscardHandler)
	}
	lock, err := claim(dir, options)
	if err != nil {
		return nil, err
	}
	s, err := openClaimed(dir, options, lock)
	if err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	return s, nil
}

// claim makes sure that dir is a store of a format that we know, and locks it.
func claim(dir string, options Options) (io.Closer, error) {
	version, err := readFormat(options.FS, dir)
	if err != nil {
		return nil, err
	}
	if version == 0 && options.ReadOnly {
		return nil, fmt.Errorf("%w: there is no store in %s", store.ErrNotFound, dir)
	}
	if err := makeDir(options.FS, dir); err != nil {
		return nil, fmt.Errorf("creating the store's directory: %w", err)
	}
	lock, err := lockDir(options.FS, dir)
	if err != nil {
		return nil, err
	}
	if version < formatVersion && !options.ReadOnly {
		err = writeFormat(options.FS, dir)
	}
	if err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	return lock, nil
}

func makeDir(files vfs.FS, dir string) error {
	if _, err := files.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := files.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	return syncDir(files, files.PathDir(dir))
}

// lockDir takes the lock that pebble would take.
func lockDir(files vfs.FS, dir string) (io.Closer, error) {
	lock, err := files.Lock(files.PathJoin(dir, "LOCK"))
	if err == nil {
		return lock, nil
	}
	var errno syscall.Errno
	var onFile *fs.PathError
	if errors.As(err, &onFile) || errors.As(err, &errno) && errno != syscall.EAGAIN && errno != syscall.EACCES {
		return nil, fmt.Errorf("locking the store's directory: %w", err)
	}
	return nil, fmt.Errorf("%w: %s; stop the other process or choose another directory", store.ErrLocked, dir)
}

func openClaimed(dir string, options Options, lock io.Closer) (*Store, error) {
	codec, err := encode.NewCodec()
	if err != nil {
		return nil, err
	}
	s := &Store{
		guard:    newGuard(options.FS, dir),
		lock:     lock,
		codec:    codec,
		readOnly: options.ReadOnly,
		ending:   make(chan struct{}),
		writes:   make(chan *write),
		applied:  make(chan *write, maxUnsynced),
		records:  newRecordCache(recordCacheSize),
	}
	if err := s.openDB(dir, options); err != nil {
		return nil, errors.Join(err, codec.Close())
	}
	if err := s.start(); err != nil {
		return nil, errors.Join(err, s.guard.run(s.db.Close), codec.Close())
	}
	return s, nil
}

func (s *Store) openDB(dir string, options Options) error {
	err := s.guard.run(func() (err error) {
		s.db, err = pebble.Open(dir, pebbleOptions(options, s.guard))
		return err
	})
	if errors.Is(err, pebble.ErrDBDoesNotExist) {
		return fmt.Errorf("%w: the store in %s was never opened for writing", store.ErrNotFound, dir)
	}
	if err != nil {
		return fmt.Errorf("opening the store in %s: %w", dir, err)
	}
	return nil
}

func pebbleOptions(options Options, guard *guard) *pebble.Options {
	logger := logger{options.Logger, guard}
	o := &pebble.Options{
		CacheSize:          cacheSize,
		FormatMajorVersion: pebbleFormat,
		FS:                 guard,
		Logger:             logger,
		MemTableSize:       memTableSize,
		ReadOnly:           options.ReadOnly,
		EventListener:      &pebble.EventListener{DataCorruption: logger.corruption},
	}
	if options.memTableSize > 0 {
		o.MemTableSize = options.memTableSize
	}
	for i := range o.Levels {
		o.Levels[i].FilterPolicy = bloom.FilterPolicy(10)
	}
	return o
}

// start reads the counters and starts the workers.
func (s *Store) start() error {
	m, err := readMeta(s.db)
	if err != nil {
		return err
	}
	s.state = state{meta: m, counters: map[uint32]counters{}}
	s.feed.start(m.epoch)
	if !s.readOnly {
		s.workers.Go(s.commitWrites)
		s.workers.Go(s.syncWrites)
	}
	return nil
}

// Close waits for the calls under way and closes the directory.
func (s *Store) Close() error {
	s.use.Lock()
	defer s.use.Unlock()
	if s.closed {
		return store.ErrClosed
	}
	s.closed = true
	close(s.ending)
	close(s.writes)
	err := s.guard.run(func() error {
		s.workers.Wait()
		return errors.Join(s.flush(), s.db.Close(), s.codec.Close())
	})
	if err = errors.Join(err, s.lock.Close()); err != nil {
		return fmt.Errorf("closing the store: %w", err)
	}
	return nil
}

// flush moves what is only in the log into tables. Damage of a table is always
// noticed; a log that is damaged near its end looks like one that a crash cut short.
func (s *Store) flush() error {
	if s.readOnly {
		return nil
	}
	return s.db.Flush()
}

// enter begins a call; if it returns nil, end it with s.use.RUnlock.
func (s *Store) enter() error {
	s.use.RLock()
	err := s.guard.failure()
	if s.closed {
		err = store.ErrClosed
	}
	if err != nil {
		s.use.RUnlock()
	}
	return err
}

// now is the time that records carry.
func now() time.Time { return store.NormalTime(time.Now()) }

// logger passes on what pebble says. Pebble expects Fatalf not to return.
type logger struct {
	log   *slog.Logger
	guard *guard
}

func (l logger) Infof(format string, args ...any)  { l.log.Debug(fmt.Sprintf(format, args...)) }
func (l logger) Errorf(format string, args ...any) { l.log.Error(fmt.Sprintf(format, args...)) }

func (l logger) Fatalf(format string, args ...any) {
	err := fmt.Errorf(format, args...)
	l.log.Error(err.Error())
	l.guard.fail(err)
}

// corruption only logs: the call that met the damage returns it as its error.
func (l logger) corruption(info pebble.DataCorruptionInfo) { l.log.Error(info.String()) }
