package proc

import (
	"errors"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// TestProbe is the table of what a machine may look like, and what follows.
func TestProbe(t *testing.T) {
	t.Parallel()
	text := func(s string) *string { return &s }
	member := func(start string) *fakeProc {
		return &fakeProc{state: 'S', parent: 1, threads: 1, session: 300, start: start, env: "A=b\x00"}
	}
	tests := []struct {
		name    string
		set     func(w *fakeWorld, id *Identity)
		want    Answer
		why     string
		boot    bool
		foreign bool
		unknown bool
		members []Member
	}{
		// The supervisor is there.
		{name: "proven", set: func(w *fakeWorld, id *Identity) { w.supervisor() }, want: Alive, why: "token agree"},
		{name: "proven by its lock, environment without the token",
			set:  func(w *fakeWorld, id *Identity) { w.supervisor().env = "A=b\x00" },
			want: Alive, why: "run lock agree"},
		{name: "proven by its lock, environment unreadable",
			set:  func(w *fakeWorld, id *Identity) { w.supervisor().envErr = syscall.EACCES },
			want: Alive, why: "run lock agree"},
		{name: "PID 1 hidden from us", set: func(w *fakeWorld, id *Identity) {
			w.supervisor()
			w.procs[1].statErr = syscall.EACCES
		}, want: Alive},
		{name: "PID 1 was hidden from it", set: func(w *fakeWorld, id *Identity) {
			w.supervisor()
			id.Fingerprint = thisBoot + ":?|" + superStart
		}, want: Alive},
		{name: "it is this very process", set: func(w *fakeWorld, id *Identity) {
			w.procs[herePID].env = "KANLOG_TOKEN=" + runToken + "\x00"
			id.PID, id.Fingerprint = herePID, thisBoot+":3|9000"
		}, want: Alive},

		// Something is there, and it cannot be told what.
		{name: "no fingerprint on record", set: func(w *fakeWorld, id *Identity) { id.Fingerprint = "" },
			want: Held, why: "without any fingerprint"},
		{name: "no number on record", set: func(w *fakeWorld, id *Identity) { id.PID = 0 }, want: Held},
		{name: "unverified and there", set: func(w *fakeWorld, id *Identity) {
			w.supervisor()
			id.Fingerprint = Unverified
		}, want: Held, why: "no start tick"},
		{name: "garbage for a fingerprint", set: func(w *fakeWorld, id *Identity) {
			w.supervisor()
			id.Fingerprint = "boot-a|"
		}, want: Held},
		{name: "stat fails in passing", set: func(w *fakeWorld, id *Identity) { w.supervisor().statErr = syscall.EIO },
			want: Held, why: "input/output error"},
		{name: "stat empty", set: func(w *fakeWorld, id *Identity) { w.supervisor().raw = text("") },
			want: Held, why: "incomplete"},
		{name: "stat cut inside the start tick", set: func(w *fakeWorld, id *Identity) {
			line := statLine(300, w.supervisor())
			w.procs[300].raw = text(line[:strings.Index(line, superStart)+2])
		}, want: Held, why: "incomplete"},
		{name: "stat hidden", set: func(w *fakeWorld, id *Identity) { w.supervisor().statErr = syscall.ENOENT },
			want: Held, why: "hidden"},
		{name: "stat forbidden", set: func(w *fakeWorld, id *Identity) { w.supervisor().statErr = syscall.EACCES }, want: Held},
		{name: "pidfd: no more descriptors", set: func(w *fakeWorld, id *Identity) {
			w.supervisor()
			w.openErr[300] = syscall.EMFILE
		}, want: Held, why: "too many open files"},
		{name: "pidfd: forbidden, nothing in /proc", set: func(w *fakeWorld, id *Identity) { w.openErr[300] = syscall.EPERM }, want: Held},
		{name: "pidfd cannot be polled", set: func(w *fakeWorld, id *Identity) { w.supervisor().pollErr = syscall.ENOMEM }, want: Held},
		{name: "environment and descriptors unreadable", set: func(w *fakeWorld, id *Identity) {
			w.supervisor().envErr = syscall.EACCES
			w.procs[300].filesErr = syscall.EACCES
		}, want: Held, why: "token cannot be read"},
		{name: "environment empty, no lock: it may be ending", set: func(w *fakeWorld, id *Identity) {
			w.supervisor().env = ""
			w.procs[300].holds = ""
		}, want: Held},
		{name: "no token, descriptors unreadable", set: func(w *fakeWorld, id *Identity) {
			w.supervisor().env = "A=b\x00"
			w.procs[300].filesErr = syscall.EACCES
		}, want: Held},
		{name: "zombie by /proc, not by its handle", set: func(w *fakeWorld, id *Identity) { w.supervisor().state = 'Z'; w.procs[300].threads = 1 },
			want: Held, why: "just ending"},
		{name: "first thread ended, others run", set: func(w *fakeWorld, id *Identity) { w.supervisor().state = 'Z' },
			want: Held, why: "others go on"},
		{name: "exited by its handle, not by /proc", set: func(w *fakeWorld, id *Identity) { w.supervisor().exited = true }, want: Held},
		{name: "number free, but /proc shows it", set: func(w *fakeWorld, id *Identity) {
			w.supervisor()
			w.openErr[300] = syscall.ESRCH
		}, want: Held, why: "still shows"},
		{name: "number free, /proc unreadable", set: func(w *fakeWorld, id *Identity) {
			w.supervisor().statErr = syscall.EIO
			w.openErr[300] = syscall.ESRCH
		}, want: Held},
		{name: "our machine id unreadable", set: func(w *fakeWorld, id *Identity) { w.machineErr = syscall.EIO }, want: Held},
		{name: "our boot id unreadable", set: func(w *fakeWorld, id *Identity) { w.bootErr = syscall.EIO }, want: Held},
		{name: "our namespace unreadable", set: func(w *fakeWorld, id *Identity) { w.nsErr = syscall.EIO }, want: Held},
		{name: "PID 1 unreadable in passing", set: func(w *fakeWorld, id *Identity) { w.procs[1].raw = text("1 (init") }, want: Held},

		// The supervisor is gone, and nothing is left.
		{name: "absent by both probes", set: func(w *fakeWorld, id *Identity) {}, want: Dead, why: "no such process"},
		{name: "unverified and absent", set: func(w *fakeWorld, id *Identity) { id.Fingerprint = Unverified }, want: Dead},
		{name: "zombie by both probes", set: func(w *fakeWorld, id *Identity) {
			p := w.supervisor()
			p.state, p.threads, p.exited, w.lock = 'Z', 1, true, lockFree
		}, want: Dead, why: "reaped"},
		{name: "number reused", set: func(w *fakeWorld, id *Identity) {
			w.procs[300] = &fakeProc{state: 'S', parent: 1, threads: 1, session: 300, start: "8000", env: "A=b\x00"}
		}, want: Dead, why: "start tick differs"},
		{name: "number reused within one tick", set: func(w *fakeWorld, id *Identity) {
			w.procs[300] = &fakeProc{state: 'S', parent: 1, threads: 1, session: 300, start: superStart, env: "A=b\x00"}
		}, want: Dead, why: "does not carry the run's token"},
		{name: "number reused within one tick by another run", set: func(w *fakeWorld, id *Identity) {
			p := w.supervisor()
			p.env, p.holds, w.lock = "KANLOG_TOKEN=board/121\x00", "8:99", lockFree
		}, want: Dead, why: "does not carry the run's token"},
		{name: "unverified, and whoever is there is not of the run", set: func(w *fakeWorld, id *Identity) {
			id.Fingerprint = Unverified
			w.procs[300] = &fakeProc{state: 'S', parent: 1, threads: 1, session: 300, start: "8000", env: "A=b\x00"}
		}, want: Dead},
		{name: "number is that of a thread", set: func(w *fakeWorld, id *Identity) { w.openErr[300] = errNoLeader },
			want: Dead, why: "thread"},
		{name: "output file gone", set: func(w *fakeWorld, id *Identity) { w.lock = lockUnknown }, want: Dead},
		{name: "a reader of the output is no witness", set: func(w *fakeWorld, id *Identity) {
			w.procs[310] = &fakeProc{state: 'S', parent: 1, threads: 1, session: 310, start: "7100", env: "A=b\x00", reads: runInode}
		}, want: Dead},

		// The supervisor is gone, something is left.
		{name: "token", set: func(w *fakeWorld, id *Identity) {
			w.procs[310] = &fakeProc{state: 'S', parent: 1, threads: 1, session: 310, start: "7100", env: "KANLOG_TOKEN=" + runToken + "\x00"}
		}, want: Orphaned, members: []Member{{310, "7100", byToken}}},
		{name: "a longer token is another run's", set: func(w *fakeWorld, id *Identity) {
			w.procs[310] = &fakeProc{state: 'S', parent: 1, threads: 1, session: 310, start: "7100", env: "KANLOG_TOKEN=" + runToken + "3\x00"}
		}, want: Dead},
		{name: "lock", set: func(w *fakeWorld, id *Identity) {
			w.lock = lockHeld
			w.procs[310] = &fakeProc{state: 'S', parent: 1, threads: 1, session: 310, start: "7100", holds: runInode}
		}, want: Orphaned, members: []Member{{310, "7100", byLock}}},
		{name: "lock, output file gone", set: func(w *fakeWorld, id *Identity) {
			w.lock = lockUnknown
			w.procs[310] = &fakeProc{state: 'S', parent: 1, threads: 1, session: 310, start: "7100", holds: runInode}
		}, want: Orphaned, members: []Member{{310, "7100", byLock}}},
		{name: "session", set: func(w *fakeWorld, id *Identity) { w.procs[310] = member("7100") },
			want: Orphaned, members: []Member{{310, "7100", bySession}}},
		{name: "session of a stranger that got the number of a guest, and ended", set: func(w *fakeWorld, id *Identity) {
			id.Guest, w.procs[310] = true, member("7100")
		}, want: Dead},
		{name: "all three", set: func(w *fakeWorld, id *Identity) {
			w.lock = lockHeld
			w.procs[310] = member("7100")
			w.procs[311] = &fakeProc{state: 'T', parent: 1, threads: 1, session: 311, start: "7101", holds: runInode}
			w.procs[312] = &fakeProc{state: 'D', parent: 1, threads: 1, session: 300, start: "7102", env: "KANLOG_TOKEN=" + runToken + "\x00"}
		}, want: Orphaned, members: []Member{{312, "7102", byToken}, {311, "7101", byLock}, {310, "7100", bySession}}},
		{name: "a member whose first thread has ended", set: func(w *fakeWorld, id *Identity) {
			w.procs[310] = member("7100")
			w.procs[310].state, w.procs[310].threads = 'Z', 2
		}, want: Orphaned, members: []Member{{310, "7100", bySession}}},
		{name: "a member that is a zombie", set: func(w *fakeWorld, id *Identity) {
			w.procs[310] = member("7100")
			w.procs[310].state = 'Z'
		}, want: Dead},
		{name: "session of whoever got the number", set: func(w *fakeWorld, id *Identity) {
			w.procs[300] = member("8000")
			w.procs[310] = member("8001")
		}, want: Dead},
		{name: "session of another run that got the number, and ended", set: func(w *fakeWorld, id *Identity) {
			w.procs[310] = member("8000")
			w.procs[311] = member("8001")
			w.procs[311].env = "KANLOG_TOKEN=board/99\x00"
		}, want: Dead},
		{name: "session of another run that got the number, unreadable in passing", set: func(w *fakeWorld, id *Identity) {
			w.procs[310] = member("8000")
			w.procs[310].envErr = syscall.EIO
		}, want: Held, why: "environment of process 310"},
		{name: "session of whoever got the number, and waits to be reaped", set: func(w *fakeWorld, id *Identity) {
			w.procs[300] = member("8000")
			w.procs[300].state = 'Z'
			w.procs[310] = member("8001")
		}, want: Dead},
		{name: "session older than the supervisor", set: func(w *fakeWorld, id *Identity) { w.procs[310] = member("999") }, want: Dead},
		{name: "lock held by nobody that can be seen", set: func(w *fakeWorld, id *Identity) { w.lock = lockHeld },
			want: Held, why: "cannot be seen"},
		{name: "lock cannot be asked", set: func(w *fakeWorld, id *Identity) { w.lockErr = syscall.EIO }, want: Held},
		{name: "processes cannot be listed", set: func(w *fakeWorld, id *Identity) { w.pidsErr = syscall.EIO }, want: Held},
		{name: "a process cannot be read in passing", set: func(w *fakeWorld, id *Identity) {
			w.procs[310] = &fakeProc{statErr: syscall.EIO}
		}, want: Held, why: "process 310"},
		{name: "an environment cannot be read in passing", set: func(w *fakeWorld, id *Identity) {
			w.procs[310] = &fakeProc{state: 'S', parent: 1, threads: 1, session: 310, start: "7100", envErr: syscall.EIO}
		}, want: Held},
		{name: "it is just executing another program", set: func(w *fakeWorld, id *Identity) {
			w.procs[310] = &fakeProc{state: 'R', parent: 1, threads: 1, session: 310, start: "7100",
				env: "KANLOG_TOKEN=" + runToken + "\x00", executing: true, executes: 5}
		}, want: Orphaned, members: []Member{{310, "7100", byToken}}},
		{name: "it executes for ever", set: func(w *fakeWorld, id *Identity) {
			w.procs[310] = &fakeProc{state: 'D', parent: 1, threads: 1, session: 310, start: "7100", executing: true}
		}, want: Held, why: "no environment"},
		{name: "others without an environment", set: func(w *fakeWorld, id *Identity) {
			w.procs[310] = &fakeProc{state: 'S', parent: 1, threads: 1, session: 310, start: "7100"}
		}, want: Dead},
		{name: "hidden processes of others", set: func(w *fakeWorld, id *Identity) {
			w.procs[310] = &fakeProc{statErr: syscall.EACCES}
			w.procs[311] = &fakeProc{state: 'S', parent: 1, threads: 1, session: 311, start: "7100", envErr: syscall.EACCES, filesErr: syscall.EACCES}
		}, want: Dead},
		{name: "only we are left", set: func(w *fakeWorld, id *Identity) {
			w.procs[herePID].env = "KANLOG_TOKEN=" + runToken + "\x00"
		}, want: Held, why: "this very process"},
		{name: "our ancestor and another are left", set: func(w *fakeWorld, id *Identity) {
			w.procs[400].env = "KANLOG_TOKEN=" + runToken + "\x00"
			w.procs[310] = member("7100")
		}, want: Orphaned, members: []Member{{310, "7100", bySession}}},
		{name: "our ancestors cannot be told", set: func(w *fakeWorld, id *Identity) { w.procs[400].statErr = syscall.EIO }, want: Held},

		// Recorded elsewhere.
		{name: "other boot", set: func(w *fakeWorld, id *Identity) {
			w.supervisor()
			id.Fingerprint = "boot-b:3|" + superStart
		}, want: Dead, boot: true},
		{name: "other boot goes before the namespace", set: func(w *fakeWorld, id *Identity) {
			id.Fingerprint, id.PIDNS = "boot-b:3|"+superStart, "4026532000"
		}, want: Dead, boot: true},
		{name: "namespace made anew", set: func(w *fakeWorld, id *Identity) {
			w.supervisor()
			id.Fingerprint = thisBoot + ":77|" + superStart
		}, want: Dead, boot: true, why: "made anew"},
		{name: "other machine, whatever its boot", set: func(w *fakeWorld, id *Identity) {
			w.supervisor()
			id.Machine, id.Fingerprint = "machine-b", "boot-b:3|"+superStart
		}, want: Held, foreign: true, unknown: true},
		{name: "other machine, unverified", set: func(w *fakeWorld, id *Identity) {
			id.Machine, id.Fingerprint = "machine-b", Unverified
		}, want: Held, foreign: true, unknown: true},
		{name: "machine not on record, other boot", set: func(w *fakeWorld, id *Identity) {
			id.Machine, id.Fingerprint = "", "boot-b:3|"+superStart
		}, want: Held, foreign: true, unknown: true},
		{name: "machine not on record, this boot", set: func(w *fakeWorld, id *Identity) {
			w.supervisor()
			id.Machine = ""
		}, want: Alive},
		{name: "other machine id of this kernel, lock held", set: func(w *fakeWorld, id *Identity) {
			id.Machine, w.lock = "machine-b", lockHeld
		}, want: Held, foreign: true},
		{name: "other machine id of this kernel, lock free", set: func(w *fakeWorld, id *Identity) { id.Machine = "machine-b" },
			want: Dead, foreign: true},
		{name: "other namespace, lock held", set: func(w *fakeWorld, id *Identity) {
			w.supervisor() // a stranger that has all but the namespace
			id.PIDNS = "4026532000"
		}, want: Held, foreign: true},
		{name: "other namespace, lock free", set: func(w *fakeWorld, id *Identity) { id.PIDNS = "4026532000" }, want: Dead, foreign: true},
		{name: "other namespace, output file gone", set: func(w *fakeWorld, id *Identity) {
			id.PIDNS, w.lock = "4026532000", lockUnknown
		}, want: Held, foreign: true, unknown: true},
		{name: "other namespace, no output on record", set: func(w *fakeWorld, id *Identity) {
			id.PIDNS, id.OutputPath = "4026532000", ""
		}, want: Held, foreign: true, unknown: true},
		{name: "other namespace, lock cannot be asked now", set: func(w *fakeWorld, id *Identity) {
			id.PIDNS, w.lockErr = "4026532000", syscall.EIO
		}, want: Held, foreign: true},
		{name: "namespace not on record", set: func(w *fakeWorld, id *Identity) { id.PIDNS, w.lock = "", lockHeld },
			want: Held, foreign: true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w, id := newFakeWorld(), recorded()
			tt.set(w, &id)
			p := &Prober{world: w}
			e := p.Probe(id)
			if e.Answer != tt.want || e.OtherBoot != tt.boot || e.Foreign != tt.foreign || e.LockUnknown != tt.unknown {
				t.Errorf("evidence %+v", e)
			}
			if e.Why == "" || !strings.Contains(e.Why, tt.why) {
				t.Errorf("why %q, want %q", e.Why, tt.why)
			}
			if !slices.Equal(e.Members, tt.members) {
				t.Errorf("members %v, want %v", e.Members, tt.members)
			}
			if w.signals > 0 {
				t.Error("a probe signalled")
			}
			// Only a proven supervisor may be signalled, in any world.
			err := p.SignalSupervisor(id, syscall.SIGTERM)
			if tt.want != Alive || id.PID == herePID {
				if !errors.Is(err, ErrUnproven) || w.signals > 0 {
					t.Errorf("signalled: %v %v", w.sent, err)
				}
			} else if err != nil || !slices.Equal(w.sent, []string{"300:15"}) {
				t.Errorf("not signalled: %v %v", w.sent, err)
			}
		})
	}
}

// A process that ends between two readings is looked at again.
func TestProbeLooksAgain(t *testing.T) {
	t.Parallel()
	w := newFakeWorld()
	s := w.supervisor()
	looks := 0
	s.changeAfterOpen = func(p *fakeProc) {
		switch looks++; looks {
		case 1:
			p.exited = true
		case 2:
			p.state, p.threads, w.lock = 'Z', 1, lockFree
		}
	}
	if e := (&Prober{world: w}).Probe(recorded()); e.Answer != Dead || looks != 2 {
		t.Errorf("evidence %+v after %d looks", e, looks)
	}
}

// One prober searches /proc once, whatever the number of runs, and not at all
// while supervisors live.
func TestProbeSearchesOnce(t *testing.T) {
	t.Parallel()
	w := newFakeWorld()
	w.supervisor()
	p := &Prober{world: w}
	p.Probe(recorded())
	if w.listed != 0 || w.lockAsked != 0 {
		t.Errorf("listed %d times, lock asked %d times for a living supervisor", w.listed, w.lockAsked)
	}
	delete(w.procs, 300)
	w.lock = lockHeld
	p.Probe(recorded())
	listed := w.listed
	for pid := 301; pid < 310; pid++ {
		id := recorded()
		id.PID, id.Token = pid, "board/x"
		p.Probe(id)
	}
	if listed == 0 || w.listed != listed {
		t.Errorf("listed %d times, then %d", listed, w.listed)
	}
}

func TestProbeClaimer(t *testing.T) {
	t.Parallel()
	claimer := Identity{PID: 300, Fingerprint: thisBoot + ":3|" + superStart, Machine: thisMachine, PIDNS: thisNS}
	tests := []struct {
		name string
		set  func(w *fakeWorld, id *Identity)
		want Evidence // without Why
	}{
		{"there", func(w *fakeWorld, id *Identity) { w.supervisor().env = "" }, Evidence{Answer: Alive}},
		{"gone", func(w *fakeWorld, id *Identity) {}, Evidence{Answer: Dead}},
		{"gone, its session lives on", func(w *fakeWorld, id *Identity) {
			w.procs[310] = &fakeProc{state: 'S', parent: 1, threads: 1, session: 300, start: "7100"}
		}, Evidence{Answer: Dead}},
		{"reused", func(w *fakeWorld, id *Identity) { w.supervisor().start = "7001" }, Evidence{Answer: Dead}},
		{"zombie", func(w *fakeWorld, id *Identity) {
			s := w.supervisor()
			s.state, s.threads, s.exited = 'Z', 1, true
		}, Evidence{Answer: Dead}},
		{"unreadable", func(w *fakeWorld, id *Identity) { w.supervisor().statErr = syscall.EIO }, Evidence{Answer: Held}},
		{"unverified", func(w *fakeWorld, id *Identity) { w.supervisor(); id.Fingerprint = Unverified }, Evidence{Answer: Held}},
		{"unverified and gone", func(w *fakeWorld, id *Identity) { id.Fingerprint = Unverified }, Evidence{Answer: Dead}},
		{"no fingerprint", func(w *fakeWorld, id *Identity) { id.Fingerprint = "" }, Evidence{Answer: Held}},
		{"other boot", func(w *fakeWorld, id *Identity) { id.Fingerprint = "b:3|1" }, Evidence{Answer: Dead, OtherBoot: true}},
		{"other namespace", func(w *fakeWorld, id *Identity) { id.PIDNS = "1" }, Evidence{Answer: Held, Foreign: true, LockUnknown: true}},
		{"other machine", func(w *fakeWorld, id *Identity) { id.Machine, id.Fingerprint = "m", "b:3|1" },
			Evidence{Answer: Held, Foreign: true, LockUnknown: true}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w, id := newFakeWorld(), claimer
			tt.set(w, &id)
			e := (&Prober{world: w}).ProbeClaimer(id)
			if e.Why == "" {
				t.Error("no reason")
			}
			if e.Answer != tt.want.Answer || e.OtherBoot != tt.want.OtherBoot || e.Foreign != tt.want.Foreign ||
				e.LockUnknown != tt.want.LockUnknown || len(e.Members) > 0 {
				t.Errorf("evidence %+v", e)
			}
		})
	}
}

func TestSignalRefusals(t *testing.T) {
	t.Parallel()
	for _, pid := range []int{-300, -1, 0, 1, 400, herePID} {
		w, id := newFakeWorld(), recorded()
		w.supervisor()
		id.PID = pid
		p := &Prober{world: w}
		if err := p.SignalSupervisor(id, syscall.SIGKILL); !errors.Is(err, ErrUnproven) {
			t.Errorf("supervisor %d: %v", pid, err)
		}
		start := "0"
		if q := w.procs[pid]; q != nil {
			start = q.start
			q.env = "KANLOG_TOKEN=" + runToken + "\x00"
		}
		for _, by := range []string{byToken, byLock, bySession} {
			sent, err := p.SignalMembers(recorded(), []Member{{pid, start, by}}, syscall.SIGKILL)
			if sent != 0 || !errors.Is(err, ErrUnproven) {
				t.Errorf("member %d by %s: %d %v", pid, by, sent, err)
			}
		}
		if w.signals > 0 {
			t.Errorf("signalled %v", w.sent)
		}
	}
}

// Between the opening of the pidfd and the signal the number may be found to be
// somebody else's.
func TestSignalProvesAfterOpening(t *testing.T) {
	t.Parallel()
	change := map[string]func(p *fakeProc){
		"start tick": func(p *fakeProc) { p.start = "8000" },
		"token":      func(p *fakeProc) { p.env, p.holds = "A=b\x00", "" },
		"zombie":     func(p *fakeProc) { p.state, p.threads, p.exited = 'Z', 1, true },
		"unreadable": func(p *fakeProc) { p.statErr = syscall.EIO },
	}
	for name, f := range change {
		w := newFakeWorld()
		w.supervisor().changeAfterOpen = f
		if err := (&Prober{world: w}).SignalSupervisor(recorded(), syscall.SIGTERM); !errors.Is(err, ErrUnproven) || w.signals > 0 {
			t.Errorf("%s: supervisor: %v %v", name, err, w.sent)
		}
		w = newFakeWorld()
		w.procs[310] = &fakeProc{state: 'S', parent: 1, threads: 1, session: 310, start: "7100",
			env: "KANLOG_TOKEN=" + runToken + "\x00", changeAfterOpen: f}
		p := &Prober{world: w}
		if sent, err := p.SignalMembers(recorded(), []Member{{310, "7100", byToken}}, syscall.SIGTERM); sent != 0 || w.signals > 0 {
			t.Errorf("%s: member: %d %v %v", name, sent, err, w.sent)
		}
	}
}

func TestSignalMembers(t *testing.T) {
	t.Parallel()
	w := newFakeWorld()
	w.procs[310] = &fakeProc{state: 'S', parent: 1, threads: 1, session: 310, start: "7100", env: "KANLOG_TOKEN=" + runToken + "\x00"}
	w.procs[311] = &fakeProc{state: 'S', parent: 1, threads: 1, session: 311, start: "7101", holds: runInode}
	w.procs[312] = &fakeProc{state: 'S', parent: 1, threads: 1, session: 300, start: "7102"}
	w.procs[313] = &fakeProc{state: 'S', parent: 1, threads: 1, session: 313, start: "7103"}
	ms := []Member{{310, "7100", byToken}, {311, "7101", byLock}, {312, "7102", bySession},
		{313, "7103", bySession}, {313, "7103", byToken}, {313, "7103", byLock}, {313, "7103", "guess"}, {314, "7104", byToken}}
	sent, err := (&Prober{world: w}).SignalMembers(recorded(), ms, syscall.SIGTERM)
	if sent != 3 || err != nil {
		t.Errorf("sent %d, %v", sent, err)
	}
	// A stopped process hears of SIGTERM only when it goes on.
	if want := []string{"310:15", "310:18", "311:15", "311:18", "312:15", "312:18"}; !slices.Equal(w.sent, want) {
		t.Errorf("sent %v", w.sent)
	}
	id := recorded()
	id.PIDNS = "4026532000"
	if sent, err := (&Prober{world: w}).SignalMembers(id, ms[:1], syscall.SIGTERM); sent != 0 || !errors.Is(err, ErrUnproven) {
		t.Errorf("foreign: %d %v", sent, err)
	}
}
