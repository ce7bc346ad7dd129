package main

import (
	"cmp"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"kanlog/eventlog"
	"kanlog/projection"
)

// backupsName is the directory in the home where backups go if nobody says where.
const backupsName = "backups"

// What is written and not yet whole stands beside the name that it will get, under one
// that no person chooses: it is removed without a question. Who writes it holds a lock
// on another such file, since two homes may have backups in one directory.
const (
	asideStart      = "."
	asideEnding     = ".kanlog.new"
	asideLockEnding = ".kanlog.lock"
)

func besides(path, ending string) string {
	return filepath.Join(filepath.Dir(path), asideStart+filepath.Base(path)+ending)
}

func asideOf(path string) string     { return besides(path, asideEnding) }
func asideLockOf(path string) string { return besides(path, asideLockEnding) }

// lockAside waits for the turn to write a backup to path. free ends it, and leaves no
// lock behind: unlike a board's directory, this one is the user's.
func lockAside(path string, wait time.Duration) (free func(), err error) {
	name := asideLockOf(path)
	lock, err := eventlog.LockInPlace(func() (*eventlog.Lock, error) { return eventlog.LockWait(name, wait) })
	if err != nil {
		return nil, err
	}
	return func() { dropLock(lock, name) }, nil
}

// dropLock ends a lock whose file is removed with it. First the name, while nobody
// else can have it; what cannot be removed is a file that the next one uses.
func dropLock(lock *eventlog.Lock, name string) {
	_ = os.Remove(name)
	lock.Unlock()
}

// backups are the copies of one board in one directory, as backup names them.
type backups struct {
	dir     string
	slug    string
	pattern *regexp.Regexp
	options eventlog.Options
	board   *[16]byte // whose they have to be, nil for anybody's
}

const backupTime = "20060102T150405Z"

func (a *app) backups(dir string) backups {
	b := backups{dir: dir, slug: a.slug, pattern: regexp.MustCompile(`^` + regexp.QuoteMeta(a.slug) + `-(\d{8}T\d{6}Z)-(\d+)\.db$`)}
	if set := a.set; set != nil {
		b.options = eventlog.Options{LockTimeout: set.lockTimeout, AllowNetwork: set.allowNetwork}
	}
	return b
}

// name is that of a new one.
func (b backups) name(at eventlog.Time, commit uint64) string {
	return b.slug + "-" + at.Std().Format(backupTime) + "-" + strconv.FormatUint(commit, 10) + ".db"
}

// backupFile is one that can be opened; what is in it was not verified.
type backupFile struct {
	path  string
	store *projection.Store
	head  eventlog.Head
}

// open looks at the end of a copy, nil if there is none that can be read, or if it is of
// another board.
func (b backups) open(path string) *backupFile {
	f := &backupFile{path: path, store: projection.OpenCopy(path, b.options)}
	var err error
	if f.head, err = f.store.NewestCommit(); err != nil {
		return nil
	}
	if b.board != nil {
		if id, err := f.store.UUID(); err != nil || id != *b.board {
			return nil
		}
	}
	return f
}

// newest is the latest one that can be opened, nil if there is none; of those with
// this head if one is given.
func (b backups) newest(head *eventlog.Head) (*backupFile, error) {
	names, err := b.names("", "")
	if err != nil {
		return nil, err
	}
	slices.SortFunc(names, func(x, y string) int { return b.order(y, x) })
	for _, name := range names {
		commit := b.pattern.FindStringSubmatch(name)[2]
		if head != nil && commit != strconv.FormatUint(head.Commit, 10) {
			continue
		}
		if f := b.open(filepath.Join(b.dir, name)); f != nil && (head == nil || f.head == *head) {
			return f, nil
		}
	}
	return nil, nil
}

// order compares two names by when they were made; those of one second by their last
// commit, which has as many digits as it needs.
func (b backups) order(x, y string) int {
	was, now := b.pattern.FindStringSubmatch(x), b.pattern.FindStringSubmatch(y)
	return cmp.Or(strings.Compare(was[1], now[1]), cmp.Compare(len(was[2]), len(now[2])), strings.Compare(was[2], now[2]))
}

// names lists the files that are called like backups with something around it.
func (b backups) names(start, ending string) (names []string, err error) {
	entries, err := os.ReadDir(b.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	for _, e := range entries {
		name, begins := strings.CutPrefix(e.Name(), start)
		name, ends := strings.CutSuffix(name, ending)
		if begins && ends && b.pattern.MatchString(name) {
			names = append(names, name)
		}
	}
	return names, err
}

// tidy removes what killed backups of this board have left. What somebody is still
// writing, for a board of this name in another home, is left alone.
func (b backups) tidy() error {
	begun, err1 := b.names(asideStart, asideEnding)
	locks, err2 := b.names(asideStart, asideLockEnding)
	err := errors.Join(err1, err2)
	names := append(begun, locks...)
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		err = errors.Join(err, tidyOne(filepath.Join(b.dir, name)))
	}
	return err
}

// tidyOne removes what was begun of the backup at path if nobody is at it.
func tidyOne(path string) error {
	lock, err := eventlog.TryLock(asideLockOf(path))
	if errors.Is(err, eventlog.ErrBusy) || errors.Is(err, fs.ErrPermission) {
		return nil // another user's: whether he is at it cannot be told
	}
	if err != nil {
		return err
	}
	if ok, err := lock.InPlace(); !ok {
		lock.Unlock()
		return err // nil: who had it has ended, and removed it
	}
	defer dropLock(lock, asideLockOf(path))
	if err := os.Remove(asideOf(path)); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// restoreCommand is what puts the newest backup of this board in the place of a
// store that cannot be used, "" if there is none. It is for words.
func (a *app) restoreCommand() (command string, of *backupFile) {
	if a.slug == "" {
		return "", nil
	}
	b := a.backups(filepath.Join(a.home, backupsName))
	// A board of this name may have stood here before: restore would refuse its backups.
	if id, ok := eventlog.BoardID(a.boardDir); ok {
		b.board = &id
	}
	f, err := b.newest(nil)
	if err != nil || f == nil {
		return "", nil
	}
	return "kanlog restore --force " + shellWord(f.path) + a.callFlags(), f
}

// callFlags are the flags without which a call would go to another board.
func (a *app) callFlags() (flags string) {
	plain := new(app)
	if plain.ambient() != nil || plain.home != a.home {
		flags = " --home " + shellWord(a.home)
		plain.home = a.home
	}
	if plain.chooseBoard() != nil || plain.slug != a.slug {
		flags += " --board " + shellWord(a.slug)
	}
	return flags
}
