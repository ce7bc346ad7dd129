package proc

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Become replaces this process by a supervisor, which stays the same process to
// everybody: number, start tick and terminal. Only its environment is another, with
// the run's token in it, and it forks from its main thread. It returns only if that
// could not be done.
//
// Signals that end a supervisor wait until it asks for them; see [EndSignals] for
// those that came before.
func Become(h Handover) error {
	program, err := ownProgram()
	if err != nil {
		return fmt.Errorf("supervise: %w", err)
	}
	spec, err := anonymousFile(h.Spec)
	if err != nil {
		return fmt.Errorf("supervise: spec: %w", err)
	}
	defer spec.Close()
	if err := os.Chdir("/"); err != nil {
		return fmt.Errorf("supervise: %w", err)
	}
	if err := unix.Dup3(int(spec.Fd()), 0, 0); err != nil {
		return fmt.Errorf("supervise: spec: %w", err)
	}
	closeOnExecFrom(ReportFD)
	lock := h.Lock.file.Fd()
	if _, err := unix.FcntlInt(lock, unix.F_SETFD, 0); err != nil {
		return fmt.Errorf("supervise: run lock: %w", err)
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	// TTOU too: who writes to a terminal that stops writers in the background is
	// stopped, or never gets through if it catches that.
	var wait, was unix.Sigset_t
	for _, sig := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGTTOU} {
		wait.Val[(sig-1)/64] |= 1 << ((sig - 1) % 64)
	}
	if err := unix.PthreadSigmask(unix.SIG_BLOCK, &wait, &was); err != nil {
		return fmt.Errorf("supervise: signals: %w", err)
	}
	// What came before is on its way to who was notified; what comes from here on
	// waits for the supervisor, but for what another thread still takes.
	time.Sleep(toldPause)
	if h.Told() {
		_ = unix.PthreadSigmask(unix.SIG_SETMASK, &was, nil)
		return errors.New("told to end")
	}
	err = syscall.Exec(program, h.Args, h.Env)
	_ = unix.PthreadSigmask(unix.SIG_SETMASK, &was, nil)
	runtime.KeepAlive(h.Lock)
	return fmt.Errorf("supervise: %w", err)
}
