//go:build !linux

package proc

import (
	"errors"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

func ownProgram() (string, error) { return os.Executable() }

func anonymousFile(text []byte) (*os.File, error) { return unlinkedFile(text) }

// closeOnExecFrom has no cheap form here; Go opens everything close-on-exec.
func closeOnExecFrom(int) {}

// adoptOrphans: no such thing here. What leaves the worker's process group is
// lost to the supervisor.
func adoptOrphans() error { return nil }

func unblockSignals() error { return nil }

func workerAttr(bool) *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

// onMainThread does not matter here: there is no parent-death signal.
func onMainThread() bool { return true }

func mayExecute(file string) bool { return unix.Access(file, unix.X_OK) == nil }

func signalName(sig syscall.Signal) string { return unix.SignalName(sig) }

// nameProcess: nothing to mend here.
func nameProcess() {}

// overwriteEnviron: nobody reads it here.
func overwriteEnviron(int64, []byte) error { return errors.ErrUnsupported }

// dupOnto makes fd another descriptor of f.
func dupOnto(f *os.File, fd int) error { return syscall.Dup2(int(f.Fd()), fd) }
