package proc

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// A service stop sends SIGTERM to every process of the service at once, and the
// worker may be gone of it before its supervisor has been told.

// stopped makes a supervisor stand still, so that what reaches it until release
// is there for it at the same moment.
func (r *run) stopped() (release func()) {
	r.t.Helper()
	if err := syscall.Kill(r.child.PID, syscall.SIGSTOP); err != nil {
		r.t.Fatal(err)
	}
	await(r.t, "the supervisor stops", func() bool { return stateOf(r.child.PID) == 'T' })
	return func() { r.signal(r.child.PID, syscall.SIGCONT) }
}

func (r *run) signal(pid int, s syscall.Signal) {
	r.t.Helper()
	if err := syscall.Kill(pid, s); err != nil {
		r.t.Fatal(err)
	}
}

// stateOf is the letter of a process's state, 0 if it is gone.
func stateOf(pid int) byte {
	line, err := newWorld().stat(pid)
	if err != nil {
		return 0
	}
	s, err := parseStat(line)
	if err != nil {
		return 0
	}
	return s.state
}

func TestSuperviseTermThatReachesTheCommandFirst(t *testing.T) {
	t.Parallel()
	const wait = `echo $$ > $D/self; read x < $D/hook`
	for _, c := range []struct {
		name, script string
		signal       syscall.Signal // to the command
		told         bool           // the supervisor is, when the command has ended
		cause        string
	}{
		{"and then the supervisor", wait, syscall.SIGTERM, true, CauseTerminated},
		{"and then the supervisor, of a shell that passes it on", `trap 'exit 143' TERM; echo $$ > $D/self; while :; do sleep 0.01; done`, syscall.SIGTERM, true, CauseTerminated},
		{"and then the supervisor, before what the command left has ended", `sh -c 'trap "" TERM; echo $$ > $D/deaf; while :; do sleep 0.01; done' & until [ -s $D/deaf ]; do :; done; ` + wait, syscall.SIGTERM, true, CauseTerminated},
		{"and nobody else", wait, syscall.SIGTERM, false, CauseSignaled},
		{"killed, and then the supervisor is told", wait, syscall.SIGKILL, true, CauseTerminated},
		{"killed, and nobody is told", wait, syscall.SIGKILL, false, CauseSignaled},
		// What nobody ends who stops a service was the command's own end.
		{"that ended by a fault of its own", wait, syscall.SIGSEGV, true, CauseSignaled},
		{"that exits as it likes", `trap 'exit 3' TERM; echo $$ > $D/self; while :; do sleep 0.01; done`, syscall.SIGTERM, true, CauseExited},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			// Which of two signals it looks at first is chance: both must do.
			for range 3 {
				r := newRun(t, c.script)
				r.mustRegister()
				pid := r.pid("self")
				release := r.stopped()
				r.signal(pid, c.signal)
				await(t, "the command ends", func() bool { return stateOf(pid) == 'Z' })
				if c.told {
					r.signal(r.child.PID, syscall.SIGTERM)
				}
				release()
				if rec := r.ended(); rec.Cause != c.cause {
					t.Fatalf("record %+v, want the cause %s", rec, c.cause)
				}
			}
		})
	}
}

// The supervisor has collected the command when it is told. How long that may be
// ago is bounded, and this process may be late: one time in twenty must do.
func TestSuperviseTermAfterTheCommandIsCollected(t *testing.T) {
	t.Parallel()
	for range 20 {
		r := newRun(t, `echo $$ > $D/self; read x < $D/hook`)
		r.mustRegister()
		pid := r.pid("self")
		r.signal(pid, syscall.SIGTERM)
		await(t, "the command is collected", func() bool { return stateOf(pid) == 0 })
		_ = syscall.Kill(r.child.PID, syscall.SIGTERM)
		switch rec := r.ended(); rec.Cause {
		case CauseTerminated:
			return
		case CauseSignaled:
		default:
			t.Fatalf("record %+v", rec)
		}
	}
	t.Error("a SIGTERM right after the command's end was never taken for a stop")
}

// A worker that is told to end is told once: a second SIGTERM makes many programs
// give up what the first made them begin. What left its group is told too.
func TestSuperviseTellsTheWorkerOnce(t *testing.T) {
	t.Parallel()
	for range 5 {
		r := newRun(t, `setsid sh -c 'trap "echo far >>$D/told; exit" TERM; echo $$ > $D/far; while :; do sleep 0.01; done' &
			until [ -s $D/far ]; do :; done
			trap 'echo near >>$D/told' TERM
			echo $$ > $D/self; until [ -e $D/over ]; do :; done; exit 0`)
		r.spec.KillGrace = patience
		r.mustRegister()
		r.pid("self")
		r.signal(r.child.PID, syscall.SIGTERM)
		await(t, "both are told", func() bool {
			told, _ := os.ReadFile(filepath.Join(r.dir, "told"))
			return strings.Contains(string(told), "near\n") && strings.Contains(string(told), "far\n")
		})
		if err := os.WriteFile(filepath.Join(r.dir, "over"), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if rec := r.ended(); rec.Cause != CauseTerminated || rec.ExitCode == nil || *rec.ExitCode != 0 {
			t.Errorf("record %+v", rec)
		}
		told, err := os.ReadFile(filepath.Join(r.dir, "told"))
		if err != nil || strings.Count(string(told), "near\n") != 1 || strings.Count(string(told), "far\n") != 1 {
			t.Errorf("told %q (%v)", told, err)
		}
	}
}
