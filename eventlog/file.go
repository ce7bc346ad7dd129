package eventlog

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// DefaultLockTimeout is the bound of a wait for a lock if Options names none.
const DefaultLockTimeout = 30 * time.Second

// Options are the same for every access to a store; the zero value is good.
type Options struct {
	// LockTimeout bounds the wait for the side lock; 0 means DefaultLockTimeout.
	LockTimeout time.Duration
	// AllowNetwork accepts a store on a network or FUSE file system.
	AllowNetwork bool
}

func (o Options) wait() time.Duration {
	if o.LockTimeout <= 0 {
		return DefaultLockTimeout
	}
	return o.LockTimeout
}

// File is a board's store on disk. It holds nothing open: each method takes the
// side lock, opens, does one transaction and closes. Any number of Files in any
// number of processes may be used at once, from any goroutine.
//
// A method must not be called inside the function given to another one on the
// same store: it waits for the lock that its caller holds, and after the lock
// timeout returns a BusyError that names this very process. Likewise nothing
// slow belongs there, and no process may be started.
//
// Beside the errors named at each, every method returns ErrNoBoard, a
// *RefusedError (the store was not touched), a *BusyError, and
// ErrUnknownOutcome once a commit of this process to this store has failed in
// an unknown state.
type File struct {
	dir string
	o   Options
	// copy is the path of a store that stands alone, "" for a board's; see OpenCopy.
	copy string
}

var _ Log = (*File)(nil)

// Open names the store in a board's directory, boards/<slug>. It does no I/O.
func Open(dir string, o Options) *File {
	if abs, err := filepath.Abs(dir); err == nil {
		dir = abs
	}
	return &File{dir: dir, o: o}
}

// Dir is the board's directory, absolute.
func (f *File) Dir() string { return f.dir }

func (f *File) store() string {
	if f.copy != "" {
		return f.copy
	}
	return filepath.Join(f.dir, StoreName)
}

// Update runs fn in one read-write transaction. If fn returns nil and changed
// something, that is durable once Update returns nil. If fn returns an error,
// nothing is changed and the error is returned as it is. ErrDiskFull: nothing
// is recorded, try again when there is room. ErrUnknownOutcome: it may or may
// not be recorded, and this process cannot use the store any more.
func (f *File) Update(fn func(*Tx) error) error {
	return f.hold(func() error { return f.transact(true, fn) })
}

// View runs fn in one read-only transaction and returns its error as it is.
// Others wait meanwhile, readers too: what may be long is read with Read.
func (f *File) View(fn func(*Tx) error) error {
	return f.hold(func() error { return f.transact(false, fn) })
}

// Head returns the end of the log.
func (f *File) Head() (h Head, err error) {
	err = f.View(func(t *Tx) error {
		h, err = t.Head()
		return err
	})
	return h, err
}

// Append stores one commit; see Log.
func (f *File) Append(after uint64, c Commit) (done Commit, err error) {
	err = f.Update(func(t *Tx) error {
		done, err = t.Append(after, c)
		return err
	})
	if err != nil {
		return Commit{}, err
	}
	return done, nil
}

// Bounds of what Read holds in memory and how long it keeps others waiting.
const (
	readCommits = 256
	readEvents  = 1024
)

var errBatchFull = errors.New("batch full")

// Read calls fn for each commit; see Log. The store is free while fn runs, so
// fn may use it, and commits appended meanwhile are read too. If the log is
// damaged fn sees every commit before the damage.
func (f *File) Read(from uint64, fn func(Commit) error) error {
	return f.batches(from, func(batch []Commit, _ [][]byte) error {
		for _, c := range batch {
			if err := fn(c); err != nil {
				return err
			}
		}
		return nil
	})
}

// batches is Read, a batch a call, with the bytes of each entry.
func (f *File) batches(from uint64, fn func(batch []Commit, entries [][]byte) error) error {
	from = max(from, 1)
	var last *Commit
	for {
		var batch []Commit
		var entries [][]byte
		events := 0
		err := f.View(func(t *Tx) error {
			if last != nil {
				if err := t.GoesOnFrom(headOf(*last)); err != nil {
					return err
				}
			}
			return t.entries(from, func(c Commit, entry []byte) error {
				batch, entries = append(batch, c), append(entries, bytes.Clone(entry))
				if events += len(c.Events); len(batch) >= readCommits || events >= readEvents {
					return errBatchFull
				}
				return nil
			})
		})
		if len(batch) > 0 {
			if err := fn(batch, entries); err != nil {
				return err
			}
		}
		if err != errBatchFull {
			return err
		}
		last = &batch[len(batch)-1]
		from = last.Number + 1
	}
}

// ReadAhead is Read, with another goroutine that reads and checks while fn works: for
// long logs. What it has read ahead when fn ends it is dropped.
func (f *File) ReadAhead(from uint64, fn func(Commit) error) error {
	batches, stop := make(chan []Commit, 4), make(chan struct{})
	defer close(stop)
	var failed error // read when batches is closed
	go func() {
		defer close(batches)
		var batch []Commit
		give := func() error {
			select {
			case batches <- batch:
				batch = make([]Commit, 0, readCommits)
				return nil
			case <-stop:
				return errBatchFull
			}
		}
		failed = f.Read(from, func(c Commit) error {
			if batch = append(batch, c); len(batch) < readCommits {
				return nil
			}
			return give()
		})
		// What was read before an error too. Who has gone away does not ask.
		if failed != errBatchFull && give() != nil {
			failed = errBatchFull
		}
	}()
	for batch := range batches {
		for _, c := range batch {
			if err := fn(c); err != nil {
				return err
			}
		}
	}
	return failed
}

// readTimes is how many commits ReadTimes looks at in one transaction.
const readTimes = 8192

// ReadTimes calls fn with the number and the time of each commit, in order and in
// bounded batches. It is for who looks for a place in the log: nothing is checked
// against the chain.
func (f *File) ReadTimes(fn func(n uint64, at Time)) error {
	for next, more := uint64(1), true; more; {
		more = false
		err := f.View(func(t *Tx) (err error) {
			left := readTimes
			t.scan(t.log, uint64(t.log.Root()), number(next), func(k, v []byte) bool {
				if left == 0 {
					more = true
					return false
				}
				left--
				var at Time
				if at, err = timeOfEntry(v); err != nil || len(k) != 8 {
					err = t.damaged("log: key %x: %v", k, err)
					return false
				}
				next = binary.BigEndian.Uint64(k) + 1
				fn(next-1, at)
				return true
			})
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// hold runs fn under the side lock of a board that is there.
func (f *File) hold(fn func() error) error {
	if isPoisoned(f.store()) {
		return ErrUnknownOutcome
	}
	if f.copy != "" {
		return fn()
	}
	lock, err := f.lock()
	if err != nil {
		return err
	}
	defer lock.Unlock()
	// Asked again: another goroutine may have failed while this one waited.
	if isPoisoned(f.store()) {
		return ErrUnknownOutcome
	}
	if err := checkPlace(f.dir); err != nil {
		return err
	}
	if err = checkFS(f.dir, f.o); err == nil {
		err = fn()
	}
	return f.gone(err)
}

// gone is err, or ErrNoBoard where something was not found since the whole board went
// (was moved by hand, or removed) while it was looked at.
func (f *File) gone(err error) error {
	if errors.Is(err, fs.ErrNotExist) && !errors.Is(err, ErrUnknownOutcome) {
		if place := checkPlace(f.dir); errors.Is(place, ErrNoBoard) {
			return place
		}
	}
	return err
}

// lock takes the side lock of the board that is at f.dir when it has it.
func (f *File) lock() (*Lock, error) {
	path := filepath.Join(f.dir, lockName)
	return LockInPlace(func() (*Lock, error) { return f.lockAt(path) })
}

func (f *File) lockAt(path string) (*Lock, error) {
	file, err := openFile(path, os.O_RDWR, 0)
	if errors.Is(err, fs.ErrNotExist) {
		// Made only where a board is: a mistyped name must leave no trace.
		if err := checkPlace(f.dir); err != nil {
			return nil, err
		}
		return LockWait(path, f.o.wait())
	}
	if err != nil {
		return nil, fmt.Errorf("lock: %w", err)
	}
	return lockWait(file, path, f.o.wait())
}

func (f *File) transact(write bool, fn func(*Tx) error) error {
	if write && f.copy != "" {
		return errCopy
	}
	if f.copy != "" {
		if err := checkCopy(f.copy); err != nil {
			return err
		}
	}
	s, err := begin(f.store(), write, f.o.wait())
	if err != nil {
		return err
	}
	defer s.end()
	if err := f.checkID(s.tx.uuid); err != nil {
		return err
	}
	if err := s.run(fn); err != nil || !s.tx.changed {
		return err
	}
	err = s.commit()
	if errors.Is(err, ErrUnknownOutcome) {
		poison(f.store())
	}
	return err
}

// checkID compares the store with the identity that the board's directory
// keeps, so that a store copied over another is found.
func (f *File) checkID(uuid [16]byte) error {
	if f.copy != "" {
		return nil
	}
	return f.checkIDOf(f.store(), uuid)
}

func (f *File) checkIDOf(path string, uuid [16]byte) error {
	text, err := readSmall(filepath.Join(f.dir, runsName, idName), 64)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read board id: %w", err)
	}
	if !sameID(text, uuid) {
		return &RefusedError{Path: path, Kind: Foreign, Detail: fmt.Sprintf(
			"another board's store: it has id %x, this directory is of board %q", uuid, trimmed(text))}
	}
	return nil
}

// BoardID is the identity that a board's directory keeps, also where its store cannot
// be read; false if it keeps none that can.
func BoardID(dir string) (id [16]byte, ok bool) {
	text, err := readSmall(filepath.Join(dir, runsName, idName), 64)
	if err != nil {
		return id, false
	}
	b, err := hex.DecodeString(trimmed(text))
	if err != nil || len(b) != len(id) {
		return id, false
	}
	return [16]byte(b), true
}
