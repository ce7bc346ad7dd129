package eventlog

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// OpenCopy names a store that stands alone: a file at path and no board around
// it. It is only read, and nobody is expected to write to it, so no lock is taken
// and no identity is compared.
func OpenCopy(path string, o Options) *File {
	f := Open(path, o)
	f.dir, f.copy = "", f.dir
	return f
}

// IsCopy tells whether the store stands alone.
func (f *File) IsCopy() bool { return f.copy != "" }

var errCopy = errors.New("a store that stands alone is only read")

// checkCopy looks at a copy before it is opened: to open a FIFO waits, maybe for ever,
// for who writes to it, and to open a device may do anything.
func checkCopy(path string) error {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return &RefusedError{Path: path, Kind: Missing, Detail: "there is no such file"}
	case err != nil:
		return fmt.Errorf("open store: %w", err)
	case !info.Mode().IsRegular():
		return &RefusedError{Path: path, Kind: Foreign, Detail: "it is no plain file"}
	}
	return nil
}

// Copy writes the log up to its present end into a new store at path, by way of the
// file aside. fold is called as in Rebuild, and may append nothing; check looks at
// the finished store, which gets its name only if it returns nil. Without over an
// error that is fs.ErrExist if something has that name; with it that is replaced in
// one step, but ErrNotPlain if it is no plain file. The copy is durable once Copy
// returns nil; on an error none is left, but for ErrNotSynced: it is there.
//
// Others wait for one batch at a time only, as with Read: what they append
// meanwhile is not copied. One Copy at a time uses aside; what a killed one left
// there is removed.
func (f *File) Copy(aside, path string, over bool, fold func(*Tx, Commit) error, check func(*File) error) (err error) {
	var id identity
	var head Head
	err = f.View(func(t *Tx) (err error) {
		id = t.identity
		head, err = t.Head()
		return err
	})
	if err != nil {
		return err
	}
	id.tablesFormat = 0 // until fold says otherwise
	err = writeAside(aside, id, func(b batches) error { return f.copyTo(b, head, fold) })
	if err == nil {
		err = check(OpenCopy(aside, f.o))
	}
	if err == nil {
		atStep("copy checked")
		err = place(aside, path, over)
	}
	if err != nil {
		os.Remove(aside)
		return err
	}
	atStep("copy placed")
	if err := syncDir(filepath.Dir(path)); err != nil {
		return fmt.Errorf("%w: %w", ErrNotSynced, err)
	}
	return nil
}

// copyTo copies the log through head into b.
func (f *File) copyTo(b batches, head Head, fold func(*Tx, Commit) error) error {
	if head.Commit == 0 {
		return nil
	}
	var last Commit
	err := f.batches(1, func(batch []Commit, entries [][]byte) error {
		atStep("copy batch")
		err := b.update(func(to *Tx) error {
			for i, c := range batch {
				if c.Number > head.Commit {
					break
				}
				if err := to.take(c, entries[i], fold); err != nil {
					return err
				}
				last = c
			}
			return nil
		})
		if err == nil && last.Number == head.Commit {
			err = errBatchFull // the rest came in meanwhile
		}
		return err
	})
	if err != nil && err != errBatchFull {
		return err
	}
	if headOf(last) != head {
		return ErrReplaced
	}
	return nil
}

// place gives the file aside its name.
func place(aside, path string, over bool) error {
	if over {
		// A rename would replace a link and not what it names, and a device too.
		if info, err := os.Lstat(path); err == nil && !info.Mode().IsRegular() {
			return fmt.Errorf("%w: %s", ErrNotPlain, path)
		}
		return os.Rename(aside, path)
	}
	// A link, since a rename would replace what came there meanwhile.
	err := os.Link(aside, path)
	if err == nil {
		atStep("linked")
		// It has its name: a second one that stays is a leftover and no failure.
		_ = os.Remove(aside)
		return nil
	}
	if errors.Is(err, fs.ErrExist) {
		return err
	}
	// A file system without links: the look and the rename are two steps.
	if _, err := os.Lstat(path); err == nil {
		return &fs.PathError{Op: "place", Path: path, Err: fs.ErrExist}
	}
	return os.Rename(aside, path)
}
