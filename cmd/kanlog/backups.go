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

	"kanlog/eventlog"
	"kanlog/projection"
)

// backupsName is the directory in the home where backups go if nobody says where.
const backupsName = "backups"

// asideEnding marks what is written and not yet whole.
const asideEnding = ".new"

// backups are the copies of one board in one directory, as backup names them.
type backups struct {
	dir     string
	slug    string
	pattern *regexp.Regexp
	options eventlog.Options
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

// open looks at the end of a copy, nil if there is none that can be read.
func (b backups) open(path string) *backupFile {
	f := &backupFile{path: path, store: projection.OpenCopy(path, b.options)}
	var err error
	if f.head, err = f.store.NewestCommit(); err != nil {
		return nil
	}
	return f
}

// newest is the latest one that can be opened, nil if there is none; of those with
// this head if one is given.
func (b backups) newest(head *eventlog.Head) (*backupFile, error) {
	names, err := b.names("")
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

// names lists the files that are called like backups with an ending behind it.
func (b backups) names(ending string) (names []string, err error) {
	entries, err := os.ReadDir(b.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	for _, e := range entries {
		if name, ok := strings.CutSuffix(e.Name(), ending); ok && b.pattern.MatchString(name) {
			names = append(names, name)
		}
	}
	return names, err
}

// tidy removes what killed backups of this board have left. The caller holds the
// lock under which they are written.
func (b backups) tidy() error {
	names, err := b.names(asideEnding)
	for _, name := range names {
		err = errors.Join(err, os.Remove(filepath.Join(b.dir, name+asideEnding)))
	}
	return err
}

// restoreCommand is what puts the newest backup of this board in the place of a
// store that cannot be used, "" if there is none. It is for words.
func (a *app) restoreCommand() (command string, of *backupFile) {
	if a.slug == "" {
		return "", nil
	}
	f, err := a.backups(filepath.Join(a.home, backupsName)).newest(nil)
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
