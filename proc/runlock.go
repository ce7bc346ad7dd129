package proc

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"syscall"
)

// runLock is the lock that everything of a run shares: a shared flock on the
// run's output file. A descriptor keeps it through fork and exec until the
// last copy is closed, so the kernel counts the descendants for us.
type runLock struct {
	// private is the supervisor's own: it holds the lock while the supervisor
	// lives, whatever happens to the other.
	private *os.File
	// output is what the worker gets as stdout and stderr.
	output *os.File
	inode  string
}

// takeRunLock creates the output file if need be and takes its lock twice, on
// two open files. It waits for a prober that asks at this instant.
func takeRunLock(path string) (*runLock, error) {
	output, err := openOutput(path)
	if err != nil {
		return nil, err
	}
	private, err := os.OpenFile(path, os.O_RDWR|os.O_APPEND, 0)
	if err != nil {
		output.Close()
		return nil, fmt.Errorf("run lock: %w", err)
	}
	l := &runLock{private: private, output: output}
	for _, f := range []*os.File{private, output} {
		if err := flock(f, syscall.LOCK_SH); err != nil {
			l.close()
			return nil, fmt.Errorf("run lock: %w", err)
		}
	}
	var a, b syscall.Stat_t
	if err := errors.Join(syscall.Fstat(int(private.Fd()), &a), syscall.Fstat(int(output.Fd()), &b)); err != nil {
		l.close()
		return nil, fmt.Errorf("run lock: %w", err)
	}
	l.inode = inodeName(uint64(a.Dev), a.Ino)
	if l.inode != inodeName(uint64(b.Dev), b.Ino) {
		l.close()
		return nil, fmt.Errorf("run lock: %s was replaced while it was opened", path)
	}
	return l, nil
}

func (l *runLock) close() {
	l.private.Close()
	l.output.Close()
}

// openOutput opens a run's output file for appending, 0600. Its directory is there:
// who starts the supervisor makes it. A supervisor that comes late must not make it
// anew where the board has been moved away since, or what is left there would pass
// for a damaged board.
func openOutput(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("output file: %w", err)
	}
	return f, nil
}

// askRunLock asks on a descriptor of its own whether anybody holds the lock.
// The lock is had for an instant if it was free; see takeRunLock.
func askRunLock(path, inode string) (lockState, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
		return lockUnknown, nil
	}
	if err != nil {
		return lockUnknown, err
	}
	defer f.Close()
	var st syscall.Stat_t
	if err := syscall.Fstat(int(f.Fd()), &st); err != nil {
		return lockUnknown, err
	}
	if inodeName(uint64(st.Dev), st.Ino) != inode {
		return lockUnknown, nil
	}
	switch err := flock(f, syscall.LOCK_EX|syscall.LOCK_NB); err {
	case nil:
		return lockFree, nil
	case syscall.EWOULDBLOCK:
		return lockHeld, nil
	default:
		return lockUnknown, err
	}
}

// OutputHeld tells whether anything of a run has its output file open, of whatever
// run it is.
func OutputHeld(path string) (bool, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer f.Close()
	err = flock(f, syscall.LOCK_EX|syscall.LOCK_NB)
	if err == syscall.EWOULDBLOCK {
		return true, nil
	}
	return false, err
}

func flock(f *os.File, how int) error {
	for {
		err := syscall.Flock(int(f.Fd()), how)
		if err != syscall.EINTR {
			return err
		}
	}
}

// inodeName names a file on this machine until it is removed. The device is
// part of it: a process may be ended for holding this file.
func inodeName(dev, ino uint64) string {
	return strconv.FormatUint(dev, 10) + ":" + strconv.FormatUint(ino, 10)
}
