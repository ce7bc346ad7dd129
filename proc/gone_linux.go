package proc

import (
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// Gone returns a channel that is closed when the supervisor with this identity has
// ended, at once if it is proven gone already. It is a hint when to look again and
// no evidence: only a probe says what is left. Where it cannot be watched (another
// machine or namespace, not proven) the channel is nil, and never says anything.
// stop gives up the watch.
//
// The kernel tells it through a pidfd: nothing is polled, and a thousand of them
// cost a thousand descriptors and no thread.
func Gone(id Identity) (ended <-chan struct{}, stop func()) {
	nothing := func() {}
	p := NewProber()
	if at, _, err := p.locate(id); err != nil || at != local || id.PID <= 0 || !parseFingerprint(id.Fingerprint).known {
		return nil, nothing
	}
	over := make(chan struct{})
	fd, err := unix.PidfdOpen(id.PID, 0)
	if err != nil {
		if isNoProcess(err) {
			close(over)
			return over, nothing
		}
		return nil, nothing
	}
	// Opened first, proven after it: the descriptor stays with the process that had
	// the number then.
	switch there, _ := p.look(id); there {
	case proven:
	case gone, replaced:
		unix.Close(fd)
		close(over)
		return over, nothing
	default:
		unix.Close(fd)
		return nil, nothing
	}
	if err := syscall.SetNonblock(fd, true); err != nil { // for the runtime's poller
		unix.Close(fd)
		return nil, nothing
	}
	f := os.NewFile(uintptr(fd), "pidfd")
	raw, err := f.SyscallConn()
	if err != nil {
		f.Close()
		return nil, nothing
	}
	go func() {
		defer f.Close()
		if raw.Read(hasEnded) == nil {
			close(over)
		}
	}()
	return over, func() { f.Close() }
}

// hasEnded asks a pidfd whether its process has ended.
func hasEnded(fd uintptr) bool {
	p := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
	n, err := unix.Poll(p, 0)
	return err == nil && n > 0
}
