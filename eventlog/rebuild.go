package eventlog

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	bolt "go.etcd.io/bbolt"
)

// atStep is called with the name of each point at which a process may die while
// it makes or remakes a store. Tests die there.
var atStep = func(string) {}

// newPageSize is the page size of new stores, 0 for the system's.
var newPageSize = 0

// rebuildBatch is how many commits are folded in one transaction: enough that
// the tree is not rewritten for each, few enough to fit in memory.
const rebuildBatch = 1024

// Rebuild writes the store anew from its log: the log is copied as it is after
// its chain was checked, every table is dropped, and fold is called for each
// commit on a Tx of the new store, whose log ends with that commit. The
// format becomes Format, since the tables are written by this program; the
// tables' format is kept unless fold sets it.
//
// Others go on meanwhile: they wait for a batch of reading at a time, and at the
// end while what they appended is copied too. One Rebuild at a time; the next one
// waits for it. A kill at any moment leaves either store whole, and an error of
// fold or of the disk leaves the old one.
func (f *File) Rebuild(fold func(*Tx, Commit) error) error {
	return f.RebuildIf(func(*Tx) (bool, error) { return true, nil }, fold)
}

// RebuildIf is Rebuild if need says so once the turn has come: after an upgrade
// everybody waits for the one who is first, and the others have nothing left to do.
func (f *File) RebuildIf(need func(*Tx) (bool, error), fold func(*Tx, Commit) error) error {
	if f.copy != "" {
		return errCopy
	}
	// The lock's file is made only where a store is.
	if err := f.View(func(*Tx) error { return nil }); err != nil {
		return err
	}
	turn, err := f.turn()
	if err != nil {
		return err
	}
	defer turn.Unlock()
	// Not before: a restore may have had the turn.
	var id identity
	var head Head
	needed := false
	err = f.View(func(t *Tx) (err error) {
		id = t.identity
		if head, err = t.Head(); err == nil {
			needed, err = need(t)
		}
		return err
	})
	if err != nil || !needed {
		return err
	}
	aside := filepath.Join(f.dir, asideName)
	var side *Lock
	err = writeAside(aside, id, func(b batches) error {
		if err := f.copyTo(b, head, fold); err != nil {
			return err
		}
		// Most of it, so that the sync for which others wait is short.
		if err := b.db.Sync(); err != nil {
			return err
		}
		atStep("most is copied")
		if side, err = f.lock(); err != nil {
			return err
		}
		return f.catchUp(b, head, fold)
	})
	if side != nil {
		defer side.Unlock()
	}
	if err != nil {
		os.Remove(aside)
		return fmt.Errorf("rebuild: %w", err)
	}
	err = replace(f.dir, aside)
	if errors.Is(err, ErrUnknownOutcome) {
		poison(f.store())
	}
	return err
}

// turn takes the lock of who writes a store aside, of the board that is at f.dir when
// it has it: another one may have come there while it waited, and who has the lock of a
// board that was moved would write into the file of somebody else.
func (f *File) turn() (*Lock, error) {
	return LockInPlace(func() (*Lock, error) {
		if err := checkPlace(f.dir); err != nil {
			return nil, err
		}
		return LockWait(filepath.Join(f.dir, asideLockName), f.o.wait())
	})
}

// catchUp copies what came behind head into b. The caller has the side lock.
func (f *File) catchUp(b batches, head Head, fold func(*Tx, Commit) error) error {
	if isPoisoned(f.store()) {
		return ErrUnknownOutcome
	}
	old, err := begin(f.store(), false, f.o.wait())
	if err != nil {
		return err
	}
	defer old.end()
	if err := f.checkID(old.tx.uuid); err != nil {
		return err
	}
	return old.run(func(from *Tx) error {
		// Another store may have come to this place meanwhile.
		if err := from.GoesOnFrom(head); err != nil {
			return err
		}
		return copyLog(from, head.Commit+1, b, fold)
	})
}

// copyLog folds the commits of from into b, a batch a transaction.
func copyLog(from *Tx, next uint64, b batches, fold func(*Tx, Commit) error) error {
	head, err := from.Head()
	if err != nil {
		return err
	}
	for next <= head.Commit {
		atStep("rebuild batch")
		end := min(next+rebuildBatch, head.Commit+1)
		err := b.update(func(to *Tx) error {
			err := from.entries(next, func(c Commit, entry []byte) error {
				if c.Number == end {
					return errBatchFull
				}
				return to.take(c, entry, fold)
			})
			if err == errBatchFull {
				return nil
			}
			return err
		})
		if err != nil {
			return err
		}
		next = end
	}
	return nil
}

// take stores an entry of another store's log as it is, and folds it.
func (t *Tx) take(c Commit, entry []byte, fold func(*Tx, Commit) error) error {
	if err := t.appendEntry(c, entry); err != nil {
		return err
	}
	return fold(t, c)
}

// batches is a store being written aside, which nobody else can see.
type batches struct {
	db   *bolt.DB
	path string
}

// update runs fn in a transaction that takes over what another log holds and may
// append nothing of its own.
func (b batches) update(fn func(*Tx) error) error {
	return b.extend(func(t *Tx) error {
		t.frozen = "a rebuild may not append to the log"
		return fn(t)
	})
}

func (b batches) extend(fn func(*Tx) error) error {
	return b.db.Update(func(btx *bolt.Tx) error {
		t, err := loadTx(btx, pages{path: b.path}, metaPage{})
		if err != nil {
			return err
		}
		if err := fn(t); err != nil {
			return err
		}
		return t.err
	})
}

// writeAside makes a store at path, which is durable when it returns nil. What
// a killed predecessor left there is removed first.
func writeAside(path string, id identity, fill func(batches) error) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	atStep("aside removed")
	db, err := bolt.Open(path, 0o600, &bolt.Options{
		Timeout:      time.Second,
		FreelistType: bolt.FreelistMapType,
		NoStatistics: true,
		PageSize:     newPageSize,
		// Nothing of it counts before the rename, so one sync at the end does.
		NoSync: true,
	})
	if err != nil {
		return asideErr(err)
	}
	atStep("aside made")
	defer db.Close()
	made, err := os.Lstat(path)
	if err != nil {
		return err
	}
	if err = db.Update(id.write); err == nil {
		err = fill(batches{db: db, path: path})
	}
	if err == nil {
		err = db.Sync()
	}
	if err == nil {
		err = db.Close()
	}
	if err == nil {
		err = trim(path, made)
	}
	atStep("aside written")
	return asideErr(err)
}

// trim cuts what bbolt laid out behind the last page in use: it grows a file by
// doubling it, later by 16 MiB, and does so again when it needs to. made is the file
// that was written: a directory that was moved by hand meanwhile left its name to another.
func trim(path string, made os.FileInfo) error {
	file, err := openFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer file.Close()
	is, err := file.Stat()
	if err != nil {
		return err
	}
	if !os.SameFile(is, made) {
		return fmt.Errorf("%s is not the file that was written: %w", path, ErrReplaced)
	}
	meta, err := checkPages(file)
	if err != nil {
		return err
	}
	if err := file.Truncate(int64(meta.high) * int64(meta.pageSize)); err != nil {
		return err
	}
	return file.Sync()
}

func asideErr(err error) error {
	if err != nil && noSpace(err) {
		return fmt.Errorf("%w: %w", ErrDiskFull, err)
	}
	return err
}

// replace puts a finished store in its place. ErrUnknownOutcome: it is there, but
// may be gone after a crash, and with it all that is appended to it.
func replace(dir, aside string) error {
	if err := os.Rename(aside, filepath.Join(dir, StoreName)); err != nil {
		return fmt.Errorf("put store in place: %w", err)
	}
	atStep("store renamed")
	if err := syncDir(dir); err != nil {
		return fmt.Errorf("%w: %w", ErrUnknownOutcome, err)
	}
	return nil
}
