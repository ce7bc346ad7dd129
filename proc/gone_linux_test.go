package proc

import (
	"os/exec"
	"syscall"
	"testing"
	"time"
)

// TestGone: the end of a process that is not our child is told when it comes, that
// of one which is gone or replaced at once, and nothing of one that cannot be told.
func TestGone(t *testing.T) {
	t.Parallel()
	r := newRun(t, `read x < $D/hook`)
	id := r.mustRegister()
	ended, stop := Gone(id)
	defer stop()
	select {
	case <-ended:
		t.Fatal("it lives, and its end is told")
	case <-time.After(50 * time.Millisecond):
	}
	r.atHook()()
	r.ended()
	told := func(what string, ended <-chan struct{}) {
		t.Helper()
		select {
		case <-ended:
		case <-time.After(patience):
			t.Errorf("%s: its end is not told", what)
		}
	}
	told("ended while it was watched", ended)
	again, stop := Gone(id)
	defer stop()
	told("gone before", again)

	other := exec.Command("sleep", "600")
	if err := other.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = other.Process.Kill(); _ = other.Wait() }()
	stranger := id
	stranger.PID = other.Process.Pid
	replaced, stop := Gone(stranger)
	defer stop()
	told("its number is another's", replaced)

	for what, change := range map[string]func(*Identity){
		"not proven":         func(id *Identity) { id.Fingerprint = Unverified },
		"on another machine": func(id *Identity) { id.Machine = "other" },
		"no number":          func(id *Identity) { id.PID = 0 },
	} {
		id := id
		change(&id)
		ended, stop := Gone(id)
		stop()
		if ended != nil {
			t.Errorf("%s: watched", what)
		}
	}

	// One that is given up says nothing any more and leaves nothing behind.
	self := Self()
	self.PID, self.Fingerprint = other.Process.Pid, capture(newWorld(), other.Process.Pid)
	ended, stop = Gone(self)
	stop()
	stop()
	_ = other.Process.Signal(syscall.SIGKILL)
	_ = other.Wait()
	select {
	case <-ended:
		t.Error("given up, and its end is told")
	case <-time.After(20 * time.Millisecond):
	}
}
