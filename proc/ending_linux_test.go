package proc

import (
	"strings"
	"syscall"
	"testing"
)

// A worker that does not hear SIGTERM is killed with everything below it, also
// what went to another session.
func TestSuperviseDeafTree(t *testing.T) {
	t.Parallel()
	r := newRun(t, `trap '' TERM
		setsid sh -c 'trap "" TERM; echo $$ > $D/far; while :; do sleep 100; done' &
		sh -c 'trap "" TERM; echo $$ > $D/near; while :; do sleep 100; done' &
		echo $$ > $D/self; while :; do sleep 100; done`)
	id := r.mustRegister()
	pids := []int{r.pid("self"), r.pid("near"), r.pid("far")}
	for range 3 { // repeated, it changes nothing
		if err := NewProber().SignalSupervisor(id, syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
	}
	rec := r.ended()
	if rec.Cause != CauseTerminated || rec.Signal != "SIGKILL" || rec.Started == "" {
		t.Errorf("record %+v", rec)
	}
	for _, pid := range pids {
		if lives(pid) {
			t.Errorf("process %d lives", pid)
		}
	}
	if e := settled(t, id); e.Answer != Dead {
		t.Errorf("evidence %+v", e)
	}
	if !strings.Contains(r.output(), "signal SIGKILL, ended by kanlog") {
		t.Errorf("output %q", r.output())
	}
}

// A worker may use its grace: what it says at SIGTERM is kept.
func TestSupervisePoliteWorker(t *testing.T) {
	t.Parallel()
	r := newRun(t, `trap 'echo bye; exit 7' TERM; echo $$ > $D/self; while :; do sleep 100 & wait $!; done`)
	// A sleep that the shell is just forking may lose its SIGTERM: the grace ends
	// that one before our patience does.
	r.spec.KillGrace = patience / 4
	r.mustRegister()
	r.pid("self")
	if err := syscall.Kill(r.child.PID, syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	rec := r.ended()
	if rec.Cause != CauseTerminated || rec.ExitCode == nil || *rec.ExitCode != 7 || !strings.Contains(r.output(), "bye\n") {
		t.Errorf("record %+v, output %q", rec, r.output())
	}
}

func TestSuperviseStoppedWorker(t *testing.T) {
	t.Parallel()
	r := newRun(t, `echo $$ > $D/self; kill -STOP $$`)
	r.spec.KillGrace = patience // SIGCONT, not SIGKILL, must end it
	r.mustRegister()
	pid := r.pid("self")
	await(t, "the worker stops", func() bool {
		line, err := newWorld().stat(pid)
		if err != nil {
			return false
		}
		s, err := parseStat(line)
		return err == nil && s.state == 'T'
	})
	if err := syscall.Kill(r.child.PID, syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if rec := r.ended(); rec.Cause != CauseTerminated || rec.Signal != "SIGTERM" {
		t.Errorf("record %+v", rec)
	}
}

// What a worker leaves behind ends with the run, and the end that counts is
// that of the command.
func TestSuperviseLeftBehind(t *testing.T) {
	t.Parallel()
	r := newRun(t, `sleep 1000 & echo $! > $D/left
		setsid sleep 1000 >/dev/null 2>&1 & echo $! > $D/gone
		sh -c 'trap "" TERM; echo $$ > $D/deaf; while :; do sleep 1000; done' &
		while ! [ -s $D/deaf ]; do :; done
		exit 0`)
	id := r.mustRegister()
	rec := r.ended()
	if rec.Cause != CauseExited || rec.ExitCode == nil || *rec.ExitCode != 0 {
		t.Errorf("record %+v", rec)
	}
	for _, name := range []string{"left", "gone", "deaf"} {
		if pid := r.pid(name); lives(pid) {
			t.Errorf("%s: process %d lives", name, pid)
		}
	}
	if e := settled(t, id); e.Answer != Dead {
		t.Errorf("evidence %+v", e)
	}
}

func TestSuperviseForkBomb(t *testing.T) {
	t.Parallel()
	r := newRun(t, `for i in 1 2 3 4 5 6 7 8 9 10; do
		(trap '' TERM; for j in 1 2 3 4; do setsid sh -c 'trap "" TERM; sleep 1000' & done; sleep 1000) &
		done; echo $$ > $D/self; wait`)
	id := r.mustRegister()
	r.pid("self")
	if err := syscall.Kill(r.child.PID, syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if rec := r.ended(); rec.Cause != CauseTerminated {
		t.Errorf("record %+v", rec)
	}
	if e := settled(t, id); e.Answer != Dead {
		t.Errorf("evidence %+v", e)
	}
}

// Signals of a terminal or a parent that hung up do nothing to a supervisor.
func TestSuperviseDeafToTheTerminal(t *testing.T) {
	t.Parallel()
	r := newRun(t, `echo $$ > $D/self; read x < $D/hook; exit 0`)
	id := r.mustRegister()
	r.pid("self")
	for _, sig := range []syscall.Signal{syscall.SIGINT, syscall.SIGHUP, syscall.SIGPIPE, syscall.SIGQUIT, syscall.SIGTSTP} {
		if err := syscall.Kill(r.child.PID, sig); err != nil {
			t.Fatal(err)
		}
	}
	if e := NewProber().Probe(id); e.Answer != Alive {
		t.Errorf("evidence %+v", e)
	}
	r.atHook()()
	if rec := r.ended(); rec.Cause != CauseExited {
		t.Errorf("record %+v", rec)
	}
}
