package proc

import (
	"os"
	"os/signal"
	"syscall"
)

// Handover is what a process that claimed a run and supervises it itself gives to
// [Become].
type Handover struct {
	// Args is the whole argument vector, with the name first.
	Args []string
	// Env is the whole environment, with the run's token; see [SpawnSpec].
	Env []string
	// Spec is what the supervisor reads on stdin.
	Spec []byte
	// Lock is the run lock that was taken before the run was registered. It is
	// held on, beside the supervisor's own.
	Lock *RunLock
	// Told says whether a signal that ends this process came before it gave them up.
	Told func() bool
}

// RunLock is the lock of a run, taken by who is about to register as its
// supervisor: from the registration on a free lock is proof that nothing is left.
type RunLock struct {
	file *os.File
	// Inode names the output file that carries it, see [Identity].
	Inode string
}

// TakeRunLock takes the lock of the run whose output is at path.
func TakeRunLock(path string) (*RunLock, error) {
	l, err := takeRunLock(path)
	if err != nil {
		return nil, err
	}
	l.output.Close()
	return &RunLock{l.private, l.inode}, nil
}

// Release gives the lock up.
func (l *RunLock) Release() { l.file.Close() }

// EndSignals are the signals that end a supervisor in a terminal; a hangup does not
// where whoever started this process said so (nohup). Ask before anybody is notified
// of it.
func EndSignals() []os.Signal {
	list := []os.Signal{syscall.SIGTERM, syscall.SIGINT}
	if !signal.Ignored(syscall.SIGHUP) {
		list = append(list, syscall.SIGHUP)
	}
	return list
}
