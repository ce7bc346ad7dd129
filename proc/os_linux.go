package proc

import (
	"math"
	"os"
	"path/filepath"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// ownProgram names the file that we run, even after it was replaced on disk: a
// supervisor must be of the version that starts it.
func ownProgram() (string, error) { return "/proc/self/exe", nil }

// anonymousFile returns a file without a name that holds text, at its start.
func anonymousFile(text []byte) (*os.File, error) {
	fd, err := unix.MemfdCreate("kanlog-spec", unix.MFD_CLOEXEC)
	if err != nil {
		return unlinkedFile(text)
	}
	return filled(os.NewFile(uintptr(fd), "kanlog-spec"), text)
}

// closeOnExecFrom makes every descriptor from first up close-on-exec.
func closeOnExecFrom(first int) {
	if unix.CloseRange(uint(first), math.MaxUint32, unix.CLOSE_RANGE_CLOEXEC) == nil {
		return
	}
	// Before Linux 5.11.
	names, err := filepath.Glob("/proc/self/fd/*")
	if err != nil {
		return
	}
	for _, name := range names {
		if fd, err := strconv.Atoi(filepath.Base(name)); err == nil && fd >= first {
			syscall.CloseOnExec(fd)
		}
	}
}

// nameProcess is for people with ps or top: the kernel named us after the link
// through which we were started, "exe".
func nameProcess() { _ = os.WriteFile("/proc/self/comm", []byte("kanlog"), 0) }

// adoptOrphans makes us the parent of every descendant whose own parent ends.
func adoptOrphans() error { return unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) }

// unblockSignals clears the signal mask of the calling thread, which whatever
// it forks inherits. Whoever started us may have left signals blocked.
func unblockSignals() error {
	var none unix.Sigset_t
	return unix.PthreadSigmask(unix.SIG_SETMASK, &none, nil)
}

// workerAttr: a process group of its own, or a session of its own, which has one;
// and SIGKILL when the thread that forks it ends, hence the main thread.
func workerAttr(session bool) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: !session, Setsid: session, Pdeathsig: syscall.SIGKILL}
}

// onMainThread: the main thread ends with the process, any other may end before
// it and take the worker along.
func onMainThread() bool { return unix.Gettid() == os.Getpid() }

func mayExecute(file string) bool { return unix.Access(file, unix.X_OK) == nil }

func signalName(sig syscall.Signal) string { return unix.SignalName(sig) }

// overwriteEnviron changes what /proc shows of our environment, from a place in it. What
// Go has of it is a copy and stays.
func overwriteEnviron(at int64, text []byte) error {
	line, err := os.ReadFile("/proc/self/stat")
	if err != nil {
		return err
	}
	start, err := environStart(line)
	if err != nil {
		return err
	}
	mem, err := os.OpenFile("/proc/self/mem", os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer mem.Close()
	_, err = mem.WriteAt(text, start+at)
	return err
}

// dupOnto makes fd another descriptor of f.
func dupOnto(f *os.File, fd int) error { return unix.Dup3(int(f.Fd()), fd, 0) }
