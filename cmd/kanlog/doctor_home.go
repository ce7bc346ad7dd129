package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"kanlog/eventlog"
	"kanlog/projection"
)

// places are the directories and files of a board that are there, apart from
// what belongs to single cards.
func (d *doctor) places() (dirs, files []string) {
	for _, name := range []string{"", "boards"} {
		dirs = append(dirs, filepath.Join(d.a.home, name))
	}
	for _, name := range []string{"", "runs", "workspaces"} {
		dirs = append(dirs, filepath.Join(d.a.boardDir, name))
	}
	files = []string{
		filepath.Join(d.a.home, "home.lock"), d.storePath(), filepath.Join(d.a.boardDir, "board.lock"), d.a.files().dispatchLock(),
	}
	there := func(paths []string) (list []string) {
		for _, path := range paths {
			if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
				list = append(list, path)
			}
		}
		return list
	}
	return there(dirs), there(files)
}

// checkCurrent finds a file current that names no board.
func (d *doctor) checkCurrent() ([]finding, error) {
	if _, err := os.Stat(d.a.currentFile()); d.current == nil || errors.Is(err, fs.ErrPermission) {
		return nil, nil // what may not be looked at is the matter of owners
	}
	return []finding{found(sevError, d.a.currentFile(), d.current.Error(),
		"every call that names no board fails; here "+defaultBoard+" was looked at instead", d.run("boards", "switch", defaultBoard))}, nil
}

// checkModes finds what others may read or write. Workers' output and prompts
// hold secrets, and a profile is a command that somebody executes.
func (d *doctor) checkModes() ([]finding, error) {
	var list []finding
	dirs, files := d.places()
	add := func(path string, loose fs.FileMode, why, change string) {
		if st, err := os.Stat(path); err == nil && st.Mode().Perm()&loose != 0 {
			list = append(list, found(sevWarning, path, fmt.Sprintf("%s has mode %04o", path, st.Mode().Perm()), why, "chmod "+change+" "+shellWord(path)))
		}
	}
	for _, path := range dirs {
		add(path, 0o077, "others can look into the board: cards, outputs of workers", "700")
	}
	for _, path := range files {
		add(path, 0o077, "others can open it, and hold its lock or change the board", "600")
	}
	for _, path := range d.settingsFiles() {
		add(path, 0o022, "others can change which commands are executed in your name", "go-w")
	}
	return list, nil
}

// chown is the command that gives the home to a user.
func chown(owner int, home string) string {
	return asOwner(os.Geteuid(), fmt.Sprintf("chown -R %d %s", owner, shellWord(home)))
}

// shut says why the caller cannot read and change what is at a path, nil if he can.
func shut(path string) error {
	need := uint32(unix.R_OK | unix.W_OK)
	if st, err := os.Stat(path); err == nil && st.IsDir() {
		need |= unix.X_OK
	}
	return unix.Faccessat(unix.AT_FDCWD, path, need, unix.AT_EACCESS)
}

// opens is the command after which the caller can open a path: what is his own needs
// other modes and no other owner. The first directory on the way that is shut decides,
// since what is in it cannot be seen.
func (d *doctor) opens(path string) string {
	for _, at := range []string{d.a.home, filepath.Join(d.a.home, "boards"), d.a.boardDir, path} {
		switch owner := ownerOf(at); {
		case owner == -1 || shut(at) == nil:
		case owner == os.Geteuid():
			return "chmod u+rwX " + shellWord(at)
		default:
			return chown(os.Geteuid(), d.a.home)
		}
	}
	return chown(os.Geteuid(), d.a.home)
}

// ownerOf is the user a file belongs to, -1 if that cannot be told.
func ownerOf(path string) int {
	if st, err := os.Stat(path); err == nil {
		if sys, ok := st.Sys().(*syscall.Stat_t); ok {
			return int(sys.Uid)
		}
	}
	return -1
}

// checkOwners finds what a command under sudo has left: files that their owner's
// commands and workers cannot open.
func (d *doctor) checkOwners() ([]finding, error) {
	var list []finding
	dirs, files := d.places()
	home := ownerOf(d.a.home)
	for _, path := range append(dirs, files...) {
		err := shut(path)
		switch owner := ownerOf(path); {
		case err != nil:
			list = append(list, found(sevError, path, fmt.Sprintf("%s, of user %d, cannot be opened by you (user %d): %v", path, owner, os.Geteuid(), err),
				"every command that needs it fails", d.opens(path)))
			if path == d.a.home {
				return list, nil // what is in it cannot be seen
			}
		case owner != home:
			list = append(list, found(sevWarning, path, fmt.Sprintf("%s belongs to user %d, the home to user %d", path, owner, home),
				"a command of that user (under sudo?) made it; commands and workers of the other cannot open it", chown(home, d.a.home)))
		}
	}
	return list, nil
}

// staleAside is how old something must be that is written aside: it then will
// not get its name any more.
const staleAside = time.Minute

// mostDirs bounds how many cards' directories are looked into without --deep.
const mostDirs = 5000

// checkLeftovers finds files that were begun to be written and never got their
// name.
func (d *doctor) checkLeftovers() ([]finding, error) {
	var paths []string
	add := func(dir string, e fs.DirEntry) {
		info, err := e.Info()
		if err == nil && strings.HasSuffix(e.Name(), ".new") && d.a.now.Since(eventlog.TimeOf(info.ModTime())) > staleAside {
			paths = append(paths, filepath.Join(dir, e.Name()))
		}
	}
	runs := filepath.Join(d.a.boardDir, "runs")
	// Who cannot look into a directory is told by checkOwners.
	top, _ := os.ReadDir(d.a.boardDir)
	for _, e := range top {
		add(d.a.boardDir, e)
	}
	copies := filepath.Join(d.a.home, backupsName)
	begun, _ := os.ReadDir(copies)
	for _, e := range begun {
		name := strings.TrimPrefix(strings.TrimSuffix(e.Name(), asideEnding), asideStart)
		if pid, _ := eventlog.Holder(asideLockOf(filepath.Join(copies, name))); pid == 0 {
			add(copies, e)
		}
	}
	cards, _ := os.ReadDir(runs)
	for i, card := range cards {
		add(runs, card)
		if !card.IsDir() || i >= mostDirs && !d.deep {
			continue
		}
		dir := filepath.Join(runs, card.Name())
		entries, _ := os.ReadDir(dir)
		for _, e := range entries {
			add(dir, e)
		}
	}
	var list []finding
	for _, path := range paths {
		list = append(list, found(sevNote, path, path+" was begun and never finished", "a process was killed while it wrote; nothing reads it", "rm -r "+shellWord(path)))
	}
	return append(list, d.secondNames(top)...), nil
}

// secondNames finds what a restore that was killed has left: a second name of the
// store that is there, which looks like an older one and changes with it.
func (d *doctor) secondNames(entries []fs.DirEntry) (list []finding) {
	store, err := os.Stat(d.storePath())
	if err != nil {
		return nil
	}
	for _, e := range entries {
		info, err := e.Info()
		if err == nil && strings.Contains(e.Name(), keptMark) && os.SameFile(store, info) {
			path := filepath.Join(d.a.boardDir, e.Name())
			list = append(list, found(sevNote, path, path+" is a second name of the store and no older one", "a restore was killed before it replaced the store", "rm "+shellWord(path)))
		}
	}
	return list
}

// largeScratch is when the workspaces of finished cards are worth a word.
const largeScratch = 64 << 20

// checkWorkspaces adds up what the scratch workspaces of finished cards hold.
// They may hold results, so it is a note, and gc removes them only after a while.
func (d *doctor) checkWorkspaces() ([]finding, error) {
	dir := filepath.Join(d.a.boardDir, "workspaces")
	entries, _ := os.ReadDir(dir)
	if len(entries) > mostDirs && !d.deep {
		entries = entries[:mostDirs]
	}
	var paths []string
	for len(entries) > 0 {
		batch := entries[:min(len(entries), listBatch)]
		entries = entries[len(batch):]
		err := d.view(func(v projection.View) error {
			for _, e := range batch {
				t, err := v.Task(e.Name())
				if err != nil {
					return err
				}
				if e.IsDir() && t != nil && t.Owner() == 0 && t.Over() {
					paths = append(paths, filepath.Join(dir, e.Name()))
				}
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	size, files, more := int64(0), 0, ""
	for _, path := range paths {
		_ = filepath.WalkDir(path, func(_ string, e fs.DirEntry, err error) error {
			if err != nil {
				return nil // what is not ours to see is not counted
			}
			if files++; files > mostFiles && !d.deep {
				more = "more than "
				return fs.SkipAll
			}
			if info, err := e.Info(); err == nil {
				size += allocated(info)
			}
			return nil
		})
	}
	if size < largeScratch {
		return nil, nil
	}
	return []finding{found(sevNote, dir, fmt.Sprintf("%d scratch workspaces of finished cards hold %s%d MiB", len(paths), more, size>>20),
		"they may hold results: kanlog gc removes them when keep_workspaces has passed, their children are over and nothing keeps it from that", d.run("gc", "--dry-run"))}, nil
}

// mostFiles bounds how many files are counted without --deep.
const mostFiles = 100_000

// allocated is what a file takes on the disk.
func allocated(info fs.FileInfo) int64 {
	if sys, ok := info.Sys().(*syscall.Stat_t); ok {
		return sys.Blocks * 512
	}
	return info.Size()
}
