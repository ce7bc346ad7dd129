package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"kanlog/eventlog"
)

// defaultBoard is the board of a home where nobody chose one.
const defaultBoard = "default"

// chooseBoard finds the board of this call: --board, KANLOG_BOARD, what the file
// current names, default.
func (a *app) chooseBoard() error {
	slug := a.slug
	if env := os.Getenv("KANLOG_BOARD"); slug == "" && env != "" {
		if err := eventlog.CheckSlug(env); err != nil {
			return usage("KANLOG_BOARD: %v", err)
		}
		slug = env
	}
	if slug == "" {
		var err error
		if slug, err = a.current(); err != nil {
			return err
		}
	}
	return a.use(slug)
}

// use makes slug the board of this call.
func (a *app) use(slug string) error {
	if err := eventlog.CheckSlug(slug); err != nil {
		return usage("%v", err)
	}
	a.slug, a.boardDir = slug, eventlog.BoardDir(a.home, slug)
	a.set, a.store, a.uuid = nil, nil, nil
	return nil
}

// current is the board of calls that name none. A file current that is wrong is
// an error and never passed over: the cards of whoever believes to be on one
// board would land on another.
func (a *app) current() (string, error) {
	slug, err := a.pointer()
	if err != nil || slug == "" {
		return defaultBoard, err
	}
	there, err := a.boardThere(slug)
	if err == nil && !there {
		err = notFound("%s names the board %q, which is not there (renamed, archived or removed); kanlog boards switch SLUG chooses another, kanlog boards create %s makes it anew", a.currentFile(), slug, slug)
	}
	return slug, err
}

// pointer is what the file current names, "" if there is no such file.
func (a *app) pointer() (string, error) {
	path := a.currentFile()
	f, err := os.Open(path)
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR):
		return "", nil // also a home that is none: said where it is used
	case err != nil:
		return "", unreadable(unreadablePointer, err)
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, 4096))
	if err != nil {
		return "", unreadable(unreadablePointer, err)
	}
	slug := strings.TrimSpace(string(b))
	if err := eventlog.CheckSlug(slug); err != nil {
		return "", usage("%s is wrong: %v; kanlog boards switch SLUG writes it anew", path, err)
	}
	return slug, nil
}

const unreadablePointer = "which board is the current one cannot be read (if nothing else helps remove the file, then kanlog boards switch SLUG)"

// setPointer makes slug what the file current names; "" removes the file. The
// caller holds the home's lock.
func (a *app) setPointer(slug string) error {
	text := []byte(slug + "\n")
	if slug == "" {
		text = nil
	}
	if err := eventlog.ReplaceFile(a.currentFile(), text); err != nil {
		return fmt.Errorf("the current board: %w", err)
	}
	return nil
}

// boardThere tells whether there is a board of this name, good or not; see
// docs/format.md.
func (a *app) boardThere(slug string) (bool, error) {
	return holdsBoard(eventlog.BoardDir(a.home, slug))
}

func holdsBoard(dir string) (bool, error) {
	_, err := os.Lstat(filepath.Join(dir, "runs"))
	switch {
	case err == nil:
		return true, nil
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR):
		return false, nil
	}
	return false, fmt.Errorf("look for boards: %w", err)
}

// freshHome tells whether the home holds no board at all, and never did: where
// the last one was archived, the next is made on purpose or not at all.
func (a *app) freshHome() (bool, error) {
	_, err := os.Lstat(a.boardsDir())
	if errors.Is(err, fs.ErrNotExist) {
		return true, nil
	}
	if err != nil {
		return false, fmt.Errorf("look for boards: %w", err)
	}
	// A board that is being renamed would be seen under neither name.
	o, err := a.options()
	if err != nil {
		return false, err
	}
	lock, err := eventlog.LockHome(a.home, o.LockTimeout)
	if err != nil {
		return false, err
	}
	defer lock.Unlock()
	entries, err := os.ReadDir(a.boardsDir())
	if err != nil {
		return false, fmt.Errorf("look for boards: %w", err)
	}
	for _, e := range entries {
		there, err := a.boardThere(e.Name())
		if err != nil {
			return false, err
		}
		if there || e.Name() == archivedDir {
			return false, nil
		}
	}
	return true, nil
}

func (a *app) mustBeThere() error {
	there, err := a.boardThere(a.slug)
	if err == nil && !there {
		err = unknownBoard(a.slug)
	}
	return err
}

func unknownBoard(slug string) error {
	return notFound("no such board: %q (kanlog boards list shows all)", slug)
}

// inHome runs fn under the home's lock, with the chosen board there: no board is
// made, moved or chosen meanwhile. Without the board nothing is made, not even a
// lock file.
func (a *app) inHome(fn func() error) error {
	o, err := a.options()
	if err != nil {
		return err
	}
	if err := a.mustBeThere(); err != nil {
		return err
	}
	lock, err := eventlog.LockHome(a.home, o.LockTimeout)
	if err != nil {
		return err
	}
	defer lock.Unlock()
	if err := a.mustBeThere(); err != nil {
		return err
	}
	return fn()
}

// alone runs fn under the dispatch lock of the chosen board and the home's lock.
// In this order: a dispatcher may want the home while it has its board.
func (a *app) alone(fn func() error) error {
	set, err := a.settings()
	if err != nil {
		return err
	}
	if err := a.mustBeThere(); err != nil {
		return err
	}
	lock, err := eventlog.LockWait(a.files().dispatchLock(), set.lockTimeout)
	if errors.Is(err, fs.ErrNotExist) {
		return unknownBoard(a.slug) // moved between the look and the lock
	}
	if err != nil {
		return err
	}
	defer lock.Unlock()
	return a.inHome(func() error {
		// Another board may have come to the name while this waited.
		ok, err := lock.InPlace()
		if err == nil && !ok {
			err = unknownBoard(a.slug)
		}
		if err != nil {
			return err
		}
		return fn()
	})
}

// moveTo gives the chosen board another directory; before is called when nothing
// is in the way any more. verb is for words.
func (a *app) moveTo(dir, verb string, before func() error) error {
	store, err := a.board()
	if err != nil {
		return err
	}
	err = store.Move(dir, before)
	switch {
	case errors.Is(err, fs.ErrExist):
		return &refusedError{fmt.Sprintf("board %s: %s refused: %s is there already", a.slug, verb, dir)}
	case errors.Is(err, eventlog.ErrUnknownOutcome):
		return fmt.Errorf("board %s: moved to %s, but a crash of the machine may take that back: %w", a.slug, dir, err)
	case err != nil:
		return fmt.Errorf("board %s: not moved: %w", a.slug, err)
	}
	return nil
}

// renameBoard gives the chosen board another name. If calls that name no board go
// to it, they go on to do so, and the file current is written before the board is
// moved: whoever dies in between leaves a name of no board, which every call says
// and the same rename mends. The other way round the old name would be left, and
// nobody could tell what became of its board.
func (a *app) renameBoard(to string) error {
	dir := eventlog.BoardDir(a.home, to)
	return a.alone(func() error {
		// A file current that is wrong names this board as little as any other.
		was, wrong := a.pointer()
		follows := wrong == nil && (was == a.slug || was == "" && a.slug == defaultBoard)
		pointed := false
		err := a.moveTo(dir, "rename", func() error {
			if !follows {
				return nil
			}
			pointed = true
			if err := a.setPointer(to); err != nil {
				return err
			}
			a.fail.hit("boards.pointed")
			return nil
		})
		if err != nil && pointed && !errors.Is(err, eventlog.ErrUnknownOutcome) {
			err = errors.Join(err, a.setPointer(was))
		}
		return err
	})
}

// archiveBoard moves the chosen board among the archived ones and says where it
// is. A file current that names it goes after it: whoever dies in between leaves
// a name of no board, which every call says. The other way round calls would go
// to another board although this one was still there.
func (a *app) archiveBoard() (dir string, err error) {
	err = a.alone(func() error {
		at := a.now
		for {
			dir = filepath.Join(a.archivedDir(), archivedName(a.slug, at))
			if _, err := os.Lstat(dir); errors.Is(err, fs.ErrNotExist) {
				break
			} else if err != nil {
				return fmt.Errorf("board %s: not moved: %w", a.slug, err)
			}
			at = at.Add(time.Microsecond)
		}
		if err := a.moveTo(dir, "archive", func() error { return nil }); err != nil {
			return err
		}
		a.fail.hit("boards.moved")
		if was, wrong := a.pointer(); wrong != nil || was != a.slug {
			return nil
		}
		if err := a.setPointer(""); err != nil {
			return fmt.Errorf("board %s: archived as %s, but it is still the current one (kanlog boards switch SLUG chooses another): %w", a.slug, dir, err)
		}
		return nil
	})
	return dir, err
}

const archivedTime = "20060102T150405.000000Z"

func archivedName(slug string, at eventlog.Time) string {
	return slug + "-" + at.Std().Format(archivedTime)
}

// parseArchived undoes archivedName; a name that is none of its is all slug.
func parseArchived(name string) (slug string, at eventlog.Time) {
	if i := strings.LastIndexByte(name, '-'); i > 0 {
		if t, err := time.Parse(archivedTime, name[i+1:]); err == nil && eventlog.CheckSlug(name[:i]) == nil {
			return name[:i], eventlog.TimeOf(t)
		}
	}
	return name, 0
}
