package proc

import (
	"bytes"
	"errors"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
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
	f := strings.Fields(string(line[bytes.LastIndexByte(line, ')')+1:]))
	const envStart = 47 // field 50, counted from field 3
	if len(f) <= envStart {
		return errHalfStat
	}
	start, err := strconv.ParseInt(f[envStart], 10, 64)
	if err != nil || start == 0 {
		return errHalfStat
	}
	mem, err := os.OpenFile("/proc/self/mem", os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer mem.Close()
	_, err = mem.WriteAt(text, start+at)
	return err
}

// TakeOutput makes a run's output file the stdout and stderr of this process, a spare.
func TakeOutput(path string) error {
	f, err := openOutput(path)
	if err != nil {
		return err
	}
	defer f.Close()
	return errors.Join(unix.Dup3(int(f.Fd()), 1, 0), unix.Dup3(int(f.Fd()), 2, 0))
}
