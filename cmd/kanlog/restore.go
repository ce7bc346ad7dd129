package main

import (
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"kanlog/eventlog"
	"kanlog/proc"
	"kanlog/projection"
)

// restoring is one restore over or beside what is there.
type restoring struct {
	a     *app
	at    string // the time, in names
	moved int    // files put aside
}

// keptMark stands in the names of what a restore keeps.
const keptMark = ".before-restore-"

// aside is where the files go of runs that the backup does not know.
func (r *restoring) aside() string { return filepath.Join(r.a.boardDir, "runs"+keptMark+r.at) }

// alone takes the locks of all that may be at work on the board, or says who is.
// free is to be called in any case.
func (r *restoring) alone() (free func(), err error) {
	var locks []func()
	free = func() {
		for _, unlock := range locks {
			unlock()
		}
	}
	f := r.a.files()
	for _, l := range []struct{ path, what string }{
		{f.daemonLock(), "its daemon is at work (kanlog stop ends it)"},
		{f.dispatchLock(), "a dispatch is at work"},
		{f.gcLock(), "a gc is at work"},
		{f.backupLock(), "a backup is being written"},
	} {
		lock, err := eventlog.TryLock(l.path)
		if errors.Is(err, eventlog.ErrBusy) {
			return free, fmt.Errorf("board %s: %s: %w", r.a.slug, l.what, err)
		}
		unlock, err := r.a.inPlace(lock, err)
		if err != nil {
			return free, err
		}
		locks = append(locks, unlock)
	}
	// Also of a board whose store cannot be read any more: what its workers do is
	// not known to the backup.
	return free, eachRunFile(filepath.Join(r.a.boardDir, "runs"), func(f runFile) error {
		if f.ending != outputEnding {
			return nil
		}
		held, err := proc.OutputHeld(f.path)
		if err != nil || !held {
			return err
		}
		return fmt.Errorf("board %s: a worker is at work, or something that it has left (run %d of %s; kanlog stop --kill ends all): %w",
			r.a.slug, f.run, f.task, &eventlog.BusyError{Path: f.path, Holder: holderWords(f.path)})
	})
}

func holderWords(path string) string {
	pid, command := eventlog.Holder(path)
	if pid == 0 {
		return ""
	}
	return fmt.Sprintf("pid %d (%s)", pid, command)
}

// others says why a board that is made from a backup may start nothing yet, "" if it
// may: a board with its id is there, or processes of one are at work, and the same cards
// would be worked on twice, also in the same worktrees.
func (r *restoring) others(from *projection.Store) (string, error) {
	uuid, err := from.UUID()
	if err != nil {
		return "", err
	}
	slugs, err := r.a.slugs()
	if err != nil {
		return "", err
	}
	for _, slug := range slugs {
		// By what its directory says, so that no store is waited for.
		if id, ok := eventlog.BoardID(eventlog.BoardDir(r.a.home, slug)); ok && id == uuid && slug != r.a.slug {
			return fmt.Sprintf("the board %s has the same id, and the same cards", slug), nil
		}
	}
	marked, err := proc.NewProber().Marked(hex.EncodeToString(uuid[:]))
	if err != nil || len(marked) == 0 {
		return "", nil // where nobody can tell there may be none
	}
	r.a.warn("process %d carries the token of run %s of a board with this id (%s in all): if that board stood here and was removed, end them before kanlog resume, or cards have two workers",
		marked[0].PID, marked[0].Run, plural(len(marked), "process", "processes"))
	return "workers of a board with the same id are at work", nil
}

// putAside moves the files of runs that the restored board does not know, since its
// next runs may get their numbers, and makes the next gc begin anew.
func (r *restoring) putAside(s *projection.Store) error {
	if err := os.Remove(filepath.Join(r.a.boardDir, gcStateName)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	dirs := map[string]bool{}
	err := s.View(func(v projection.View) error {
		return eachRunFile(filepath.Join(r.a.boardDir, "runs"), func(f runFile) error {
			run, err := v.Run(f.run)
			if err != nil || run != nil && run.Task == f.task {
				return err
			}
			to := filepath.Join(r.aside(), f.task)
			if err := os.MkdirAll(to, 0o700); err != nil {
				return err
			}
			if err := os.Rename(f.path, filepath.Join(to, filepath.Base(f.path))); err != nil {
				return err
			}
			dirs[filepath.Dir(f.path)], dirs[to] = true, true
			r.moved++
			return nil
		})
	})
	if err != nil || len(dirs) == 0 {
		return err
	}
	dirs[r.aside()], dirs[r.a.boardDir] = true, true
	for dir := range dirs {
		err = errors.Join(err, syncDir(dir))
	}
	return err
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// runFile is a file under runs/ that is named as one of a run.
type runFile struct {
	task   string
	run    uint64
	ending string // as in .log
	path   string
}

// eachRunFile calls fn for every file of a run under dir, which may be not there.
func eachRunFile(dir string, fn func(runFile) error) error {
	cards, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, card := range cards {
		if !card.IsDir() {
			continue // board-id
		}
		entries, err := os.ReadDir(filepath.Join(dir, card.Name()))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		for _, e := range entries {
			number, ending, dotted := strings.Cut(e.Name(), ".")
			run, err := strconv.ParseUint(number, 10, 53)
			if !dotted || err != nil || run == 0 {
				continue // nothing of ours is named so
			}
			if err := fn(runFile{card.Name(), run, "." + ending, filepath.Join(dir, card.Name(), e.Name())}); err != nil {
				return err
			}
		}
	}
	return nil
}
