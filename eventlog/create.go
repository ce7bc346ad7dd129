package eventlog

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// maxSlug is the longest name of a board, in bytes.
const maxSlug = 64

// CheckSlug says why s cannot name a board, nil if it can: 1 to 64 of a-z, 0-9,
// - and _, the first a letter or digit.
func CheckSlug(s string) error {
	if s == "" || len(s) > maxSlug {
		return fmt.Errorf("board name %q: 1 to %d characters are allowed", s, maxSlug)
	}
	for i, r := range s {
		letter := r >= 'a' && r <= 'z' || r >= '0' && r <= '9'
		if !letter && (i == 0 || r != '-' && r != '_') {
			return fmt.Errorf("board name %q: a-z, 0-9, - and _ are allowed, the first a letter or digit", s)
		}
	}
	return nil
}

// BoardDir is the directory of a board.
func BoardDir(home, slug string) string { return filepath.Join(home, "boards", slug) }

// Create makes the board slug in home, and home itself if it is not there, and
// reports whether it did: false if the board was there and whole. A creation
// that was cut off is finished, with its own uuid if the store was made already.
// A board without its store is refused as Missing, and a store that is not good
// is refused like anywhere else; neither is ever replaced.
//
// uuid and at are recorded in a new store. Any number of processes may create at
// once; one of them does.
func Create(home, slug string, uuid [16]byte, at Time, o Options) (created bool, err error) {
	if err := CheckSlug(slug); err != nil {
		return false, err
	}
	home, err = filepath.Abs(home)
	if err != nil {
		return false, fmt.Errorf("create board: %w", err)
	}
	if err := checkFS(nearest(home), o); err != nil {
		return false, err
	}
	if err := makeDirs(home); err != nil {
		return false, err
	}
	atStep("home made")
	lock, err := LockHome(home, o.wait())
	if err != nil {
		return false, err
	}
	defer lock.Unlock()

	f := Open(BoardDir(home, slug), o)
	switch err := checkPlace(f.dir); {
	case err == nil:
		// Whoever made it may have failed, or died, in the last sync.
		if err := syncDir(f.dir); err != nil {
			return false, err
		}
		return false, f.noteID()
	case !errors.Is(err, ErrNoBoard):
		return false, err
	}
	if err := makeDirs(f.dir); err != nil {
		return false, err
	}
	// Also what a creation that was cut off made and did not sync.
	if err := syncUp(f.dir, home); err != nil {
		return false, err
	}
	atStep("board made")
	return true, f.finish(uuid, at)
}

// finish brings a creation to its end from wherever it stands.
func (f *File) finish(uuid [16]byte, at Time) error {
	lock, err := LockWait(filepath.Join(f.dir, lockName), f.o.wait())
	if err != nil {
		return err
	}
	defer lock.Unlock()
	atStep("lock made")
	_, err = os.Lstat(f.store())
	switch {
	case errors.Is(err, fs.ErrNotExist):
		aside := filepath.Join(f.dir, asideName)
		if err := writeAside(aside, identity{uuid: uuid, created: at}, func(batches) error { return nil }); err != nil {
			return fmt.Errorf("create board: %w", err)
		}
		if err := replace(f.dir, aside); err != nil {
			return fmt.Errorf("create board: %w", err)
		}
	case err != nil:
		return fmt.Errorf("create board: %w", err)
	default:
		s, err := begin(f.store(), false, f.o.wait())
		if err != nil {
			return err
		}
		uuid = s.tx.uuid
		s.end()
		// It may have been renamed by a process that died before this.
		if err := syncDir(f.dir); err != nil {
			return err
		}
	}
	atStep("store made")
	return f.makeRuns(uuid)
}

// makeRuns makes runs/ with its board-id at once: from then on the board is
// whole, and without its store it is damaged.
func (f *File) makeRuns(uuid [16]byte) error {
	aside := filepath.Join(f.dir, runsName+".new")
	if err := os.RemoveAll(aside); err != nil {
		return fmt.Errorf("create board: %w", err)
	}
	if err := os.Mkdir(aside, 0o700); err != nil {
		return fmt.Errorf("create board: %w", err)
	}
	atStep("runs made")
	if err := writeSynced(filepath.Join(aside, idName), idText(uuid)); err != nil {
		return fmt.Errorf("create board: %w", err)
	}
	atStep("id written")
	if err := syncDir(aside); err != nil {
		return err
	}
	if err := os.Rename(aside, filepath.Join(f.dir, runsName)); err != nil {
		return fmt.Errorf("create board: %w", err)
	}
	atStep("runs renamed")
	if err := syncDir(f.dir); err != nil {
		return fmt.Errorf("%w: %w", ErrUnknownOutcome, err)
	}
	return nil
}

// noteID writes whose board this is where somebody threw that away with what else was in
// runs/: without it nothing but the store itself says which store belongs here.
func (f *File) noteID() error {
	var uuid [16]byte
	if err := f.View(func(t *Tx) error { uuid = t.uuid; return nil }); err != nil {
		return err
	}
	path := filepath.Join(f.dir, runsName, idName)
	if there, err := exists(path); there || err != nil {
		return err
	}
	return ReplaceFile(path, idText(uuid))
}

// syncUp makes the names of a board's directory and of all up to home durable.
func syncUp(dir, home string) error {
	for _, d := range []string{filepath.Dir(dir), home, filepath.Dir(home)} {
		if err := syncDir(d); err != nil {
			return err
		}
	}
	return nil
}

// MakeDir makes a directory that files of a board's are to be put in, and what is
// missing above it, durably: also where somebody made it and died before the sync.
func MakeDir(dir string) error {
	if err := makeDirs(dir); err != nil {
		return err
	}
	return syncDir(filepath.Dir(dir))
}

// makeDirs is MkdirAll with mode 0700 whose new names are durable.
func makeDirs(dir string) error {
	old := nearest(dir)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("make directory: %w", err)
	}
	for dir != old {
		dir = filepath.Dir(dir)
		if err := syncDir(dir); err != nil {
			return err
		}
	}
	return nil
}

// nearest is the closest directory at or above path that exists.
func nearest(path string) string {
	for {
		if _, err := os.Stat(path); err == nil || path == filepath.Dir(path) {
			return path
		}
		path = filepath.Dir(path)
	}
}

func writeSynced(path string, b []byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(b)
	return errors.Join(err, f.Sync(), f.Close())
}

func trimmed(b []byte) string { return string(bytes.TrimSpace(b)) }
