package proc

import "syscall"

// world is everything a prober asks of the machine it runs on. Tests answer
// for machines that are broken, rebooted or elsewhere.
type world interface {
	self() int
	machine() (string, error)
	bootID() (string, error)
	pidNS() (string, error)

	// pids lists the processes that can be seen.
	pids() ([]int, error)
	// stat and environ return the raw text; ENOENT or ESRCH if there is none. It is
	// valid until the same one is asked again.
	stat(pid int) ([]byte, error)
	environ(pid int) ([]byte, error)
	// files lists the regular files a process has open.
	files(pid int) ([]openFile, error)
	// holdsShared reports whether this very descriptor carries a shared flock.
	// Having a file open (a reader that follows the output) is no witness.
	holdsShared(pid, fd int) (bool, error)

	// open takes hold of a process: ESRCH if there is none, errNoLeader if the
	// number is that of a thread.
	open(pid int) (handle, error)

	// askLock says who may be left of a run by its lock. lockUnknown without
	// an error means that it can never tell: the file is gone or another one.
	askLock(path, inode string) (lockState, error)
}

// handle is a process that keeps its meaning when its number is given away.
type handle interface {
	// exited reports whether every thread of it has ended.
	exited() (bool, error)
	signal(syscall.Signal) error
	close()
}

type openFile struct {
	fd    int
	inode string
}

type lockState int

const (
	lockUnknown lockState = iota
	lockFree
	lockHeld
)
