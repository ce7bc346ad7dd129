package proc

import "syscall"

// System is a machine that is simulated: what a prober asks of the real one,
// answered by values. It is for tests of what stands above this package.
type System interface {
	// Self is the number of the process that asks.
	Self() int
	// MachineID, BootID and PIDNamespace are its surroundings.
	MachineID() (string, error)
	BootID() (string, error)
	PIDNamespace() (string, error)
	// PIDs lists the processes that can be seen.
	PIDs() ([]int, error)
	// Stat and Environ are the raw texts of /proc; ENOENT if there is no such
	// process.
	Stat(pid int) ([]byte, error)
	Environ(pid int) ([]byte, error)
	// Locks lists the inodes of the files on which a process holds a run lock.
	Locks(pid int) ([]string, error)
	// Open takes hold of a process: ESRCH if there is none.
	Open(pid int) (Handle, error)
	// RunLock says whether somebody holds the run lock on a file. known is false
	// if that can never be told: the file is gone or another one.
	RunLock(path, inode string) (held, known bool, err error)
}

// Handle is a process of a System that keeps its meaning when its number is
// given away.
type Handle interface {
	// Exited reports whether it has ended.
	Exited() (bool, error)
	Signal(syscall.Signal) error
}

// NewProberOn returns a prober for a process of a simulated machine.
func NewProberOn(s System) *Prober { return &Prober{world: simulated{s}} }

// IdentifyOn is [Self] for a process of a simulated machine.
func IdentifyOn(s System) Identity { return identify(simulated{s}) }

// simulated is a System as a world.
type simulated struct{ s System }

func (w simulated) self() int                       { return w.s.Self() }
func (w simulated) machine() (string, error)        { return w.s.MachineID() }
func (w simulated) bootID() (string, error)         { return w.s.BootID() }
func (w simulated) pidNS() (string, error)          { return w.s.PIDNamespace() }
func (w simulated) pids() ([]int, error)            { return w.s.PIDs() }
func (w simulated) stat(pid int) ([]byte, error)    { return w.s.Stat(pid) }
func (w simulated) environ(pid int) ([]byte, error) { return w.s.Environ(pid) }

func (w simulated) files(pid int) ([]openFile, error) {
	inodes, err := w.s.Locks(pid)
	var list []openFile
	for fd, inode := range inodes {
		list = append(list, openFile{fd, inode})
	}
	return list, err
}

func (simulated) holdsShared(int, int) (bool, error) { return true, nil }

func (w simulated) open(pid int) (handle, error) {
	h, err := w.s.Open(pid)
	if err != nil {
		return nil, err
	}
	return simulatedHandle{h}, nil
}

func (w simulated) askLock(path, inode string) (lockState, error) {
	held, known, err := w.s.RunLock(path, inode)
	switch {
	case err != nil || !known:
		return lockUnknown, err
	case held:
		return lockHeld, nil
	}
	return lockFree, nil
}

type simulatedHandle struct{ Handle }

func (h simulatedHandle) exited() (bool, error)           { return h.Exited() }
func (h simulatedHandle) signal(sig syscall.Signal) error { return h.Signal(sig) }
func (h simulatedHandle) close()                          {}
