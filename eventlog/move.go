package eventlog

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// LockHome takes the lock under which boards are made and moved and home's
// pointer files are written. Order, for who needs several: a board's dispatch
// lock, this one, a board's side lock. home must be there.
func LockHome(home string, timeout time.Duration) (*Lock, error) {
	return LockWait(filepath.Join(home, "home.lock"), timeout)
}

// Move gives the board's directory another name on the same file system, and makes
// the parent of that if need be. An error that is fs.ErrExist: something has the
// name. The caller holds LockHome of the home that both names are in.
//
// check looks at the store first, as in View, and may still say no. Nobody is in
// the store from there to the rename, and whoever waited for its lock finds no
// board here afterwards (see lock). ErrUnknownOutcome: the board is moved, but
// may be back after a crash. Afterwards f names a board that is not there.
func (f *File) Move(to string, check func(*Tx) error) error {
	turn, err := f.turn() // who writes a store aside writes it here
	if err != nil {
		return err
	}
	defer turn.Unlock()
	return f.hold(func() error {
		// Onto an empty directory the kernel would rename too.
		if _, err := os.Lstat(to); err == nil {
			return &fs.PathError{Op: "move board", Path: to, Err: fs.ErrExist}
		}
		if err := f.transact(false, check); err != nil {
			return err
		}
		if err := makeDirs(filepath.Dir(to)); err != nil {
			return err
		}
		if err := os.Rename(f.dir, to); err != nil {
			return fmt.Errorf("move board: %w", err)
		}
		for _, dir := range []string{filepath.Dir(to), filepath.Dir(f.dir)} {
			if err := syncDir(dir); err != nil {
				return fmt.Errorf("%w: %w", ErrUnknownOutcome, err)
			}
		}
		return nil
	})
}

// ReplaceFile makes text the durable content of the small file at path, all of it
// or nothing; nil removes the file. One writer at a time: the caller has a lock.
func ReplaceFile(path string, text []byte) error {
	aside := path + ".new"
	// What a killed predecessor left there.
	if err := os.Remove(aside); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	var err error
	if text == nil {
		if err = os.Remove(path); errors.Is(err, fs.ErrNotExist) {
			err = nil
		}
	} else if err = writeSynced(aside, text); err == nil {
		err = os.Rename(aside, path)
	}
	if err != nil {
		os.Remove(aside)
		return err
	}
	return syncDir(filepath.Dir(path))
}

// LockInPlace takes a lock whose file may be moved or removed while one waits for it: take
// is called again until what it took is in place.
func LockInPlace(take func() (*Lock, error)) (*Lock, error) {
	for {
		lock, err := take()
		if err != nil {
			return nil, err
		}
		ok, err := lock.InPlace()
		if ok {
			return lock, nil
		}
		lock.Unlock()
		if err != nil {
			return nil, err
		}
	}
}

// InPlace tells whether the lock is on the file that its path names now. If it is
// not, a directory was moved while this process waited, and whoever comes to the
// path now has another lock.
func (l *Lock) InPlace() (bool, error) {
	mine, err := l.file.Stat()
	if err != nil {
		return false, fmt.Errorf("lock: %w", err)
	}
	there, err := os.Stat(l.file.Name())
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("lock: %w", err)
	}
	return os.SameFile(mine, there), nil
}
