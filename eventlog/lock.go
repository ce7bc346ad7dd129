package eventlog

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// Lock is an exclusive flock on a file that exists for nothing else. It ends
// with Unlock or with the process. The file is not removed or replaced: two processes
// would then hold "the" lock on two files. Where it may be, use LockInPlace.
type Lock struct {
	file *os.File
	done func()
}

// TryLock takes the lock on path at once or returns a *BusyError; any other
// error means that the lock cannot be had at all. It makes the file, 0600.
func TryLock(path string) (*Lock, error) {
	file, err := openLock(path)
	if err != nil {
		return nil, err
	}
	err = flock(file, syscall.LOCK_EX|syscall.LOCK_NB)
	if err == nil {
		return &Lock{file: file, done: func() {}}, nil
	}
	defer file.Close()
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return nil, &BusyError{Path: path, Holder: holder(file)}
	}
	return nil, fmt.Errorf("lock %s: %w", path, err)
}

// LockWait takes the lock on path, waiting at most timeout; after that it
// returns a *BusyError that names the holder, which may be this process itself
// if a caller nests. It makes the file, 0600.
func LockWait(path string, timeout time.Duration) (*Lock, error) {
	file, err := openLock(path)
	if err != nil {
		return nil, err
	}
	return lockWait(file, path, timeout)
}

// lockWait owns file: it is closed unless the lock is returned.
func lockWait(file *os.File, path string, timeout time.Duration) (*Lock, error) {
	timer := time.NewTimer(timeout)
	defer timer.Stop()
	busy := func() error { return &BusyError{Path: path, Holder: holder(file)} }

	turn := turnFor(path)
	select {
	case turn <- struct{}{}:
	case <-timer.C:
		defer file.Close()
		return nil, busy()
	}
	leave := func() { <-turn }

	err := flock(file, syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		// A blocking call and not polling: a poller loses against everybody
		// who happens to ask at the right moment. The call cannot be ended
		// from outside, so a waiter that gives up leaves it behind; it then
		// lets go of the lock as soon as it has it.
		var over atomic.Bool
		got := make(chan error, 1)
		go func() {
			err := flock(file, syscall.LOCK_EX)
			if over.CompareAndSwap(false, true) {
				got <- err
				return
			}
			file.Close()
			leave()
		}()
		select {
		case err = <-got:
		case <-timer.C:
			e := busy()
			if over.CompareAndSwap(false, true) {
				return nil, e
			}
			err = <-got
		}
	}
	if err != nil {
		file.Close()
		leave()
		return nil, fmt.Errorf("lock %s: %w", path, err)
	}
	return &Lock{file: file, done: leave}, nil
}

// Unlock lets go. A second call does nothing.
func (l *Lock) Unlock() {
	// Closing is what releases: no copy of the descriptor exists, since it is
	// close-on-exec and nobody forks while holding a lock of ours.
	// A close that fails has let go all the same, so the next one here may ask.
	if err := l.file.Close(); !errors.Is(err, os.ErrClosed) {
		l.done()
	}
}

// File is the descriptor that carries the lock, for a child that must keep it
// when we are gone: whoever has a copy has the lock. Unlock then ends it only
// here.
func (l *Lock) File() *os.File { return l.file }

// SetInfo replaces the lock file's content, which is for people only: nobody
// decides anything by it.
func (l *Lock) SetInfo(s string) error {
	if err := l.file.Truncate(0); err != nil {
		return fmt.Errorf("lock info: %w", err)
	}
	if _, err := l.file.WriteAt([]byte(s), 0); err != nil {
		return fmt.Errorf("lock info: %w", err)
	}
	return nil
}

func openLock(path string) (*os.File, error) {
	file, err := openFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("lock: %w", err)
	}
	return file, nil
}

func flock(file *os.File, how int) error {
	for {
		err := syscall.Flock(int(file.Fd()), how)
		if err != syscall.EINTR {
			return err
		}
	}
}

// turns lets one goroutine of this process at a time ask for a lock, so that
// waiters that gave up never leave more than one blocked thread a lock behind.
var turns struct {
	sync.Mutex
	byPath map[string]chan struct{}
}

func turnFor(path string) chan struct{} {
	if abs, err := filepath.Abs(path); err == nil {
		path = abs
	}
	turns.Lock()
	defer turns.Unlock()
	if turns.byPath == nil {
		turns.byPath = make(map[string]chan struct{})
	}
	turn, ok := turns.byPath[path]
	if !ok {
		turn = make(chan struct{}, 1)
		turns.byPath[path] = turn
	}
	return turn
}
