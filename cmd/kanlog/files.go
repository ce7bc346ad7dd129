package main

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"kanlog/eventlog"
)

// runFiles are the places of a board's files, apart from its store.
type runFiles struct{ dir string }

func (a *app) files() runFiles { return runFiles{a.boardDir} }

func (f runFiles) run(task string, run uint64, ending string) string {
	return filepath.Join(f.dir, "runs", task, strconv.FormatUint(run, 10)+ending)
}

// The endings of a run's files.
const (
	outputEnding  = ".log"
	contextEnding = ".context.md"
	recordEnding  = ".exit"
)

// output is where a run's stdout and stderr go; it carries the run lock.
func (f runFiles) output(task string, run uint64) string { return f.run(task, run, outputEnding) }

// record is where a supervisor writes how its run ended.
func (f runFiles) record(task string, run uint64) string { return f.run(task, run, recordEnding) }

// context is the file with everything known about the card.
func (f runFiles) context(task string, run uint64) string { return f.run(task, run, contextEnding) }

// tidy removes what was begun to be written aside for a run or an earlier one of
// the card and never got its name. Of an earlier run only a supervisor that was
// refused can still be at it, and what it has to say nobody waits for. What cannot
// be removed is in nobody's way.
func (f runFiles) tidy(task string, run uint64) {
	dir := filepath.Join(f.dir, "runs", task)
	entries, _ := os.ReadDir(dir)
	for _, e := range entries {
		number, rest, _ := strings.Cut(e.Name(), ".")
		if n, err := strconv.ParseUint(number, 10, 64); err == nil && n <= run && strings.HasSuffix(rest, ".new") {
			_ = os.Remove(filepath.Join(dir, e.Name()))
		}
	}
}

// scratch is the workspace of a card that brought none.
func (f runFiles) scratch(task string) string { return filepath.Join(f.dir, "workspaces", task) }

// worktreeLock is held while git makes a card's worktree.
func (f runFiles) worktreeLock(task string) string { return f.scratch(task) + ".lock" }

// daemonLock is held by the board's daemon while it is there; who it is stands in
// it, for people and for stop.
func (f runFiles) daemonLock() string { return filepath.Join(f.dir, "daemon.lock") }

// backupLock is held while a backup is written.
func (f runFiles) backupLock() string { return filepath.Join(f.dir, "backup.lock") }

// gcLock is held by a gc; gcStateName is what it leaves for the next one.
func (f runFiles) gcLock() string { return filepath.Join(f.dir, "gc.lock") }

const gcStateName = "gc.json"

func (f runFiles) dispatchLock() string { return filepath.Join(f.dir, "dispatch.lock") }

// boardsDir holds the boards of a home; archived ones are in archivedDir in it.
// No board can be called that: the first character of a slug is no underscore.
func (a *app) boardsDir() string   { return filepath.Dir(eventlog.BoardDir(a.home, archivedDir)) }
func (a *app) archivedDir() string { return eventlog.BoardDir(a.home, archivedDir) }

const archivedDir = "_archived"

// currentFile names the board of calls that name none.
func (a *app) currentFile() string { return filepath.Join(a.home, "current") }
