package main

import (
	"errors"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"kanlog/eventlog"
	"kanlog/projection"
)

// lockPlace keeps a workspace to itself while git looks at it, or alone takes files out
// of it. git inherits the lock: one that a killed dispatcher has left behind is waited
// for, whichever card or board starts there next.
//
// A worktree has a lock of its own, see worktree. That of a directory is on the
// directory itself, so that nothing is left in it. Where the disk knows no such locks
// (NFS) there is none, and file is nil.
func (w *world) lockPlace(t *projection.Task, dir string, alone bool) (file *os.File, unlock func(), err error) {
	if t.WorkspaceKind == projection.Worktree {
		lock, err := w.lockWorktree(t.ID)
		if err != nil {
			return nil, nil, err
		}
		return lock.File(), lock.Unlock, nil
	}
	nothing := func() {}
	if file, err = os.Open(dir); err != nil {
		return nil, nothing, nil
	}
	how := unix.LOCK_SH
	if alone {
		how = unix.LOCK_EX
	}
	for end := time.Now().Add(gitTimeout); ; time.Sleep(20 * time.Millisecond) {
		switch err := unix.Flock(int(file.Fd()), how|unix.LOCK_NB); {
		case err == nil:
			return file, func() { file.Close() }, nil
		case errors.Is(err, unix.EINTR):
		case !errors.Is(err, unix.EWOULDBLOCK):
			file.Close()
			return nil, nothing, nil
		case time.Now().After(end):
			file.Close()
			return nil, nil, &eventlog.BusyError{Path: dir}
		}
	}
}
