package eventlog

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// Restoring is what Restore is told beside the board and the copy.
type Restoring struct {
	// Fold is called as in Rebuild.
	Fold func(*Tx, Commit) error
	// Last runs in one transaction on the finished store and may append to it.
	Last func(*Tx) error
	// Check looks at the finished store before it takes its place.
	Check func(*File) error
	// Before looks at the store that is to be replaced, if it can be read, and may
	// say no. From there on nobody is in it.
	Before func(*Tx) error
	// Keep is the name in the board's directory under which the store that is
	// there stays.
	Keep string
	// Over: a board that is there may be replaced; else it is refused, fs.ErrExist.
	Over bool
}

// Restore makes the store of the board slug in home anew from the log of a store
// that stands alone, and the board if it is not there. The copy is read and the
// new store is finished and checked before anything of the board is touched; it
// takes the old one's place in one step. A kill at any moment leaves the one or
// the other, or no board where there was none.
//
// A board's directory belongs to one board for ever: the store of another one is
// refused as Foreign. The caller holds LockHome of home.
//
// kept tells whether there was a store to keep. ErrUnknownOutcome: the new store is
// in its place, but may be gone after a crash.
func Restore(home, slug string, from *File, o Options, r Restoring) (kept bool, err error) {
	f := Open(BoardDir(home, slug), o)
	// It is removed before the new one is written.
	aside := filepath.Join(f.dir, asideName)
	if same, err := sameFile(from.store(), aside); err != nil {
		return false, err
	} else if same {
		return false, fmt.Errorf("%s is where the new store is written; give the copy another name first", aside)
	}
	if err := checkFS(nearest(f.dir), o); err != nil {
		return false, err
	}
	if isPoisoned(f.store()) {
		return false, ErrUnknownOutcome
	}
	there, err := exists(filepath.Join(f.dir, runsName))
	switch {
	case err != nil:
		return false, err
	case there && !r.Over:
		return false, &fs.PathError{Op: "restore", Path: f.dir, Err: fs.ErrExist}
	case !there:
		if err := makeDirs(f.dir); err != nil {
			return false, err
		}
		// Also what a restore that was killed, or the caller, made and did not sync.
		if err := syncUp(f.dir, home); err != nil {
			return false, err
		}
	}
	for _, name := range []string{asideLockName, lockName} {
		lock, err := LockWait(filepath.Join(f.dir, name), o.wait())
		if err != nil {
			return false, err
		}
		defer lock.Unlock()
	}
	uuid, err := f.makeRestored(from, r)
	if err != nil {
		return false, err
	}
	// Also where no board is: a store without runs/ may be all that is left of one.
	if kept, err = f.keepStore(r.Keep); err == nil {
		atStep("old store kept")
		err = replace(f.dir, aside)
	}
	switch {
	case errors.Is(err, ErrUnknownOutcome):
		poison(f.store())
		return kept, err
	case err != nil:
		os.Remove(aside)
		return false, errors.Join(err, f.dropLinks())
	case there:
		return kept, nil
	}
	return kept, f.makeRuns(uuid)
}

// makeRestored finishes the new store aside, and says whose it is.
func (f *File) makeRestored(from *File, r Restoring) (uuid [16]byte, err error) {
	var id identity
	var head Head
	err = from.View(func(t *Tx) (err error) {
		id = t.identity
		head, err = t.Head()
		return err
	})
	if err != nil {
		return uuid, err
	}
	if err := f.checkIDOf(from.store(), id.uuid); err != nil {
		return uuid, err
	}
	// What cannot be read cannot say no: it is what is to be replaced. It is kept.
	var foreign error // where the directory's own note of whose it is was lost
	err = f.transact(false, func(t *Tx) error {
		if t.uuid != id.uuid {
			foreign = &RefusedError{Path: from.store(), Kind: Foreign, Detail: fmt.Sprintf(
				"another board's store: it has id %x, the store that is there has %x", id.uuid, t.uuid)}
			return foreign
		}
		return r.Before(t)
	})
	if foreign != nil || err != nil && !errors.Is(err, ErrRefused) && !errors.Is(err, fs.ErrNotExist) {
		return uuid, err
	}
	id.tablesFormat = 0
	aside := filepath.Join(f.dir, asideName)
	err = writeAside(aside, id, func(b batches) error {
		if err := from.copyTo(b, head, r.Fold); err != nil {
			return err
		}
		atStep("log restored")
		return b.extend(r.Last)
	})
	if err == nil {
		err = r.Check(OpenCopy(aside, f.o))
	}
	if err != nil {
		os.Remove(aside)
	}
	return id.uuid, err
}

// keepStore gives the store that is there a second name, durably, so that there is
// no moment without one. A kill before it is replaced leaves both names on one file.
func (f *File) keepStore(name string) (kept bool, err error) {
	if err := f.dropLinks(); err != nil {
		return false, err
	}
	path := filepath.Join(f.dir, name)
	err = os.Link(f.store(), path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return false, nil // it is missing: that is why somebody restores it
	case err != nil:
		return false, fmt.Errorf("keep the old store: %w", err)
	}
	return true, syncDir(f.dir)
}

// dropLinks removes the second names that a restore gave the store and was killed
// before it replaced it: what is written to the one changes the other.
func (f *File) dropLinks() error {
	// Of a link to the store: what it points to is no second name of it.
	store, err := os.Lstat(f.store())
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	entries, err2 := os.ReadDir(f.dir)
	if err := errors.Join(err, err2); err != nil {
		return fmt.Errorf("restore: %w", err)
	}
	for _, e := range entries {
		info, err := e.Info()
		if err == nil && e.Name() != StoreName && os.SameFile(store, info) {
			if err := os.Remove(filepath.Join(f.dir, e.Name())); err != nil {
				return fmt.Errorf("restore: %w", err)
			}
		}
	}
	return nil
}

// sameFile tells whether both names are of one file that is there.
func sameFile(a, b string) (bool, error) {
	x, err := os.Stat(a)
	if err == nil {
		var y os.FileInfo
		if y, err = os.Stat(b); err == nil {
			return os.SameFile(x, y), nil
		}
	}
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return false, err
}

func exists(path string) (bool, error) {
	_, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}
