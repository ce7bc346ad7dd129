package eventlog

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"
	"time"

	bolt "go.etcd.io/bbolt"
	berrors "go.etcd.io/bbolt/errors"
)

// session is one opening of a store for one transaction. Its owner holds the
// side lock and calls end, whatever happened.
type session struct {
	path  string
	file  *os.File
	meta  metaPage
	db    *bolt.DB
	btx   *bolt.Tx
	tx    *Tx
	quiet bool // bbolt is not inside a call, so its locks are what we know them to be
}

// commitTx is a variable so that a test can make it fail.
var commitTx = func(tx *bolt.Tx) error { return tx.Commit() }

// begin opens the store at path, checks it and begins a transaction. It never
// makes a file.
func begin(path string, write bool, wait time.Duration) (*session, error) {
	s := &session{path: path}
	flag := os.O_RDONLY
	if write {
		flag = os.O_RDWR
	}
	var err error
	if s.file, err = openFile(path, flag, 0); err != nil {
		return nil, fmt.Errorf("open store: %w", err)
	}
	if s.meta, err = checkPages(s.file); err == nil && write {
		_, _, err = readFreelist(s.file, path, s.meta)
	}
	if err == nil {
		err = guarded(path, func() error { return s.open(write, wait) })
	}
	if err != nil {
		s.end()
		return nil, err
	}
	return s, nil
}

func (s *session) open(write bool, wait time.Duration) (err error) {
	s.db, err = bolt.Open(s.path, 0o600, &bolt.Options{
		ReadOnly: !write,
		// bbolt polls this lock; it is there against programs that know
		// nothing of the side lock, and free whenever we come here.
		Timeout:      max(wait, time.Millisecond),
		FreelistType: bolt.FreelistMapType,
		NoStatistics: true,
		// The file that was checked, and the one to close if bbolt is stuck.
		OpenFile: func(string, int, os.FileMode) (*os.File, error) { return s.file, nil },
	})
	switch {
	case errors.Is(err, berrors.ErrTimeout):
		return &BusyError{Path: s.path, Holder: holderOf(s.path)}
	case errors.Is(err, berrors.ErrInvalid), errors.Is(err, berrors.ErrVersionMismatch), errors.Is(err, berrors.ErrChecksum):
		return &RefusedError{Path: s.path, Kind: Damaged, Detail: err.Error()}
	case err != nil:
		return fmt.Errorf("open store: %w", err)
	}
	if s.btx, err = s.db.Begin(write); err != nil {
		return fmt.Errorf("begin: %w", err)
	}
	s.quiet = true
	s.tx, err = loadTx(s.btx, viewPages(s.db, s.path, s.meta), s.meta)
	return err
}

// run calls fn on the transaction.
func (s *session) run(fn func(*Tx) error) error {
	err := guarded(s.path, func() error { return fn(s.tx) })
	if s.tx.err != nil {
		return s.tx.err
	}
	return err
}

// commit makes the transaction durable, or returns ErrDiskFull or a
// RefusedError if nothing was recorded, or ErrUnknownOutcome.
func (s *session) commit() error {
	s.quiet = false
	err := guarded(s.path, func() error { return commitTx(s.btx) })
	if err == nil {
		s.btx, s.quiet = nil, true
		return nil
	}
	// The meta page is the last thing a commit writes, so a commit of which no
	// meta page is there was not recorded.
	now, readErr := readMetas(s.file, s.meta.pageSize)
	unmoved := readErr == nil && now.txid == s.meta.txid
	switch {
	case unmoved && noSpace(err) && !syncFailed(err):
		return fmt.Errorf("%w: %w", ErrDiskFull, err)
	case unmoved && errors.Is(err, ErrRefused):
		return err
	}
	return fmt.Errorf("%w: %w", ErrUnknownOutcome, err)
}

// end lets go of the file. It never blocks: bbolt's Close waits for locks that
// a panic inside of bbolt left taken, so then only the file is let go, and the
// mapping stays until the process ends.
func (s *session) end() {
	defer func() {
		// A mapping keeps the open file, and with it the flock, beyond Close.
		// If bbolt has closed it already, this fails and nothing is locked.
		_ = flock(s.file, syscall.LOCK_UN)
		s.file.Close()
	}()
	if s.db == nil || !s.quiet {
		return
	}
	// Damage that is met only here changes nothing any more.
	_ = guarded(s.path, func() error {
		if s.btx != nil {
			if err := s.btx.Rollback(); err != nil {
				return err
			}
		}
		return s.db.Close()
	})
}

// noSpace reports whether there was no room. bbolt formats the causes of a
// failed growth into text, so errors.Is alone does not see them.
func noSpace(err error) bool {
	for _, e := range []syscall.Errno{syscall.ENOSPC, syscall.EDQUOT} {
		if errors.Is(err, e) || strings.Contains(err.Error(), e.Error()) {
			return true
		}
	}
	return false
}

// syncFailed reports whether it was a sync that failed, for whatever reason: the
// kernel may have dropped what it could not write and calls it clean, so that
// this process must not go on. bbolt hands on what fdatasync says as a bare
// number, and what fsync says after a growth as text; a write says the file.
func syncFailed(err error) bool {
	_, bare := err.(syscall.Errno)
	return bare || strings.Contains(err.Error(), "file sync error")
}

// holderOf names who holds a flock on the file at path.
func holderOf(path string) string {
	f, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer f.Close()
	return holder(f)
}

// syncDir makes the names in a directory durable.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return fmt.Errorf("sync directory: %w", err)
	}
	return errors.Join(d.Sync(), d.Close())
}

// readSmall reads a file that is expected to be tiny, at most limit bytes of it.
func readSmall(path string, limit int64) ([]byte, error) {
	f, err := openFile(path, os.O_RDONLY, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, limit))
}
