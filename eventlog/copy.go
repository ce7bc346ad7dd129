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

var errCopy = errors.New("a store that stands alone is only read")

// Copy writes the log up to its present end into a new store at path, which is
// durable but for its name when Copy returns nil; what stands at path is
// replaced. fold is called as in Rebuild, and may append nothing.
//
// Others wait for one batch at a time only, as with Read: what they append
// meanwhile is not copied. On an error nothing is left at path.
func (f *File) Copy(path string, fold func(*Tx, Commit) error) (head Head, err error) {
	var id identity
	err = f.View(func(t *Tx) (err error) {
		id = t.identity
		head, err = t.Head()
		return err
	})
	if err != nil {
		return Head{}, err
	}
	id.tablesFormat = 0 // until fold says otherwise
	err = writeAside(path, id, func(b batches) error { return f.copyTo(b, head, fold) })
	if err != nil {
		os.Remove(path)
		return Head{}, fmt.Errorf("copy: %w", err)
	}
	return head, nil
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
		return &RefusedError{Path: f.store(), Kind: Damaged,
			Detail: fmt.Sprintf("log: commit %d changed while it was copied", head.Commit)}
	}
	return nil
}

// Place gives the finished file aside its name, durably. Without over an error
// that is fs.ErrExist if something has that name; with it that is replaced in one
// step.
func Place(aside, path string, over bool) error {
	if err := place(aside, path, over); err != nil {
		os.Remove(aside)
		return err
	}
	atStep("placed")
	return syncDir(filepath.Dir(path))
}

func place(aside, path string, over bool) error {
	if !over {
		// A link, since a rename would replace what came there meanwhile.
		err := os.Link(aside, path)
		if err == nil {
			atStep("linked")
			return os.Remove(aside)
		}
		if errors.Is(err, fs.ErrExist) {
			return err
		}
		// A file system without links: the look and the rename are two steps.
		if _, err := os.Lstat(path); err == nil {
			return &fs.PathError{Op: "place", Path: path, Err: fs.ErrExist}
		}
	}
	return os.Rename(aside, path)
}
