package proc

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// orphan starts a run, kills its supervisor, and returns the evidence once the
// command itself is gone.
func orphan(t *testing.T, script string, left ...string) (*run, Identity, Evidence, []int) {
	t.Helper()
	r := newRun(t, script+"\necho $$ > $D/self; while :; do sleep 1000; done")
	id := r.mustRegister()
	command := r.pid("self")
	var pids []int
	for _, name := range left {
		pid := r.pid(name)
		if name != "other" {
			// Until it has executed, it is a copy of the shell.
			await(t, "it executes sleep", func() bool {
				comm, err := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid))
				return err == nil && string(comm) == "sleep\n"
			})
		}
		pids = append(pids, pid)
	}
	if e := NewProber().Probe(id); e.Answer != Alive {
		t.Fatalf("evidence %+v", e)
	}
	r.killSupervisor()
	await(t, "the command dies with its supervisor", func() bool { return !lives(command) })
	// The `sleep` below the command is left in any case; it is not asked for.
	return r, id, NewProber().Probe(id), pids
}

func (r *run) endOrphans(id Identity) {
	r.t.Helper()
	await(r.t, "the run is dead", func() bool {
		p := NewProber()
		e := p.Probe(id)
		if e.Answer == Orphaned {
			if _, err := p.SignalMembers(id, e.Members, syscall.SIGKILL); err != nil {
				r.t.Fatal(err)
			}
		}
		return e.Answer == Dead
	})
}

func witness(e Evidence, pid int) string {
	for _, m := range e.Members {
		if m.PID == pid {
			return m.By
		}
	}
	return ""
}

func TestOrphans(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, how, by string
	}{
		{"another session, output closed", `setsid sleep 1000 >/dev/null 2>&1 &`, byToken},
		{"another session, environment wiped", `env -i setsid sleep 1000 &`, byLock},
		{"environment wiped, output closed", `env -i sleep 1000 >/dev/null 2>&1 &`, bySession},
		{"everything as it was", `sleep 1000 &`, byToken},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r, id, e, pids := orphan(t, tt.how+" echo $! > $D/left", "left")
			if e.Answer != Orphaned || witness(e, pids[0]) != tt.by {
				t.Fatalf("process %d: evidence %+v", pids[0], e)
			}
			r.endOrphans(id)
			if lives(pids[0]) {
				t.Error("it lives")
			}
			// The supervisor could write no record.
			if rec, err := ReadRecord(r.spec.RecordPath, r.spec.Token, r.spec.Run); rec != nil || err != nil {
				t.Errorf("record %v %v", rec, err)
			}
		})
	}
}

// Without its output file a run is still found.
func TestOrphansOutputRemoved(t *testing.T) {
	t.Parallel()
	r, id, _, pids := orphan(t, `env -i setsid sleep 1000 & echo $! > $D/left`, "left")
	if err := os.Remove(r.spec.OutputPath); err != nil {
		t.Fatal(err)
	}
	if e := NewProber().Probe(id); e.Answer != Orphaned || witness(e, pids[0]) != byLock {
		t.Errorf("evidence %+v", e)
	}
	r.endOrphans(id)
}

func TestOrphansStoppedObeyTerm(t *testing.T) {
	t.Parallel()
	r, id, _, pids := orphan(t, `setsid sh -c 'kill -STOP $$; sleep 1000' & echo $! > $D/other`, "other")
	await(t, "it stops", func() bool {
		line, err := newWorld().stat(pids[0])
		if err != nil {
			t.Fatal(err)
		}
		s, err := parseStat(line)
		return err == nil && s.state == 'T'
	})
	p := NewProber()
	e := p.Probe(id)
	if sent, err := p.SignalMembers(id, e.Members, syscall.SIGTERM); sent < 1 || err != nil {
		t.Errorf("sent %d %v", sent, err)
	}
	await(t, "it ends", func() bool { return !lives(pids[0]) })
	r.endOrphans(id)
}

// While a process executes another program its environment cannot be seen for
// an instant. One that does nothing else must not be missed.
func TestOrphansExecuting(t *testing.T) {
	t.Parallel()
	r, id, _, pids := orphan(t, `echo 'exec sh $D/again' > $D/again
		setsid sh $D/again >/dev/null 2>&1 & echo $! > $D/other`, "other")
	for range 50 {
		if e := NewProber().Probe(id); e.Answer == Dead {
			t.Fatalf("process %d lives: evidence %+v", pids[0], e)
		}
	}
	r.endOrphans(id)
	if lives(pids[0]) {
		t.Error("it lives")
	}
}

// A stopped supervisor is alive; killed, the rest are orphans.
func TestStoppedSupervisor(t *testing.T) {
	t.Parallel()
	r := newRun(t, `echo $$ > $D/self; while :; do sleep 1000; done`)
	id := r.mustRegister()
	r.pid("self")
	p := NewProber()
	if err := p.SignalSupervisor(id, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	if err := p.SignalSupervisor(id, syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if e := NewProber().Probe(id); e.Answer != Alive {
		t.Errorf("evidence %+v", e)
	}
	if err := p.SignalSupervisor(id, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	r.awaitEnd()
	r.endOrphans(id)
}

// The real machine: ourselves, a number that is a thread's, one that is free.
func TestSelfAndThreads(t *testing.T) {
	t.Parallel()
	id := Self()
	fp := parseFingerprint(id.Fingerprint)
	if !fp.known || id.PID != os.Getpid() || id.Machine == "" || id.PIDNS == "" || strings.ContainsAny(id.Fingerprint, " \n") {
		t.Fatalf("identity %+v", id)
	}
	if e := NewProber().ProbeClaimer(id); e.Answer != Alive {
		t.Errorf("ourselves: %+v", e)
	}
	tasks, err := os.ReadDir("/proc/self/task")
	if err != nil {
		t.Fatal(err)
	}
	threads := 0
	for _, task := range tasks {
		tid, err := strconv.Atoi(task.Name())
		if err != nil || tid == os.Getpid() {
			continue
		}
		thread := id
		thread.PID = tid
		if e := NewProber().ProbeClaimer(thread); e.Answer != Dead {
			t.Errorf("thread %d: %+v", tid, e)
		}
		threads++
	}
	if threads == 0 {
		t.Error("no threads to ask about")
	}
	if err := NewProber().SignalSupervisor(id, syscall.SIGKILL); err == nil {
		t.Error("signalled ourselves")
	}
}

// A run with the token of another, and one whose start tick is forged, are not
// taken for the process that has the number.
func TestRefuteForReal(t *testing.T) {
	t.Parallel()
	r := newRun(t, `read x < $D/hook`)
	id := r.mustRegister()
	other := id
	other.Token, other.OutputInode = id.Token+"0", "0:0"
	if e := settled(t, other); e.Answer != Dead || !strings.Contains(e.Why, "token") {
		t.Errorf("other token: %+v", e)
	}
	other = id
	fp := parseFingerprint(id.Fingerprint)
	other.Fingerprint = fmt.Sprintf("%s:%s|%s0", fp.boot, fp.first, fp.start)
	if e := NewProber().Probe(other); e.Answer == Alive {
		t.Errorf("other start tick: %+v", e)
	}
	for _, wrong := range []Identity{other} {
		if err := NewProber().SignalSupervisor(wrong, syscall.SIGKILL); err == nil {
			t.Error("signalled")
		}
	}
	r.atHook()()
	r.ended()
}
