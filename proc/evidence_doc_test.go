package proc

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// evidenceWorlds makes the machine of each row of the first table of
// docs/evidence.md: change what is on record, or what is there.
var evidenceWorlds = map[string]func(w *fakeWorld, id *Identity){
	"alive": func(w *fakeWorld, id *Identity) { w.supervisor() },
	"dead":  func(w *fakeWorld, id *Identity) {},
	"zombie": func(w *fakeWorld, id *Identity) {
		p := w.supervisor()
		p.state, p.threads, p.exited, w.lock = 'Z', 1, true, lockFree
	},
	"recycled":                 func(w *fakeWorld, id *Identity) { w.procs[300] = stranger(300, "8000") },
	"recycled within one tick": func(w *fakeWorld, id *Identity) { w.procs[300] = stranger(300, superStart) },
	"other boot": func(w *fakeWorld, id *Identity) {
		w.supervisor() // a stranger that has everything but the boot
		id.Fingerprint = "boot-b:3|" + superStart
	},
	"recreated namespace": func(w *fakeWorld, id *Identity) {
		w.supervisor()
		id.Fingerprint = thisBoot + ":77|" + superStart
	},
	"other namespace, lock held": func(w *fakeWorld, id *Identity) { id.PIDNS, w.lock = "4026532000", lockHeld },
	"other namespace, lock free": func(w *fakeWorld, id *Identity) { id.PIDNS = "4026532000" },
	"other namespace, seen here": func(w *fakeWorld, id *Identity) {
		id.PIDNS = "4026532000"
		w.procs[310] = stranger(310, "7100")
		w.procs[310].env = "KANLOG_TOKEN=" + runToken + "\x00"
	},
	"other namespace, no lock": func(w *fakeWorld, id *Identity) { id.PIDNS, w.lock = "4026532000", lockUnknown },
	"other machine": func(w *fakeWorld, id *Identity) {
		w.supervisor()
		id.Machine, id.Fingerprint = "machine-b", "boot-b:3|"+superStart
	},
	"unreadable now":    func(w *fakeWorld, id *Identity) { w.supervisor().statErr = syscall.EIO },
	"unverified, there": func(w *fakeWorld, id *Identity) { w.supervisor(); id.Fingerprint = Unverified },
	"unverified, gone":  func(w *fakeWorld, id *Identity) { id.Fingerprint = Unverified },
	"no fingerprint":    func(w *fakeWorld, id *Identity) { id.Fingerprint = "" },
	"orphaned, by session": func(w *fakeWorld, id *Identity) {
		w.procs[310] = stranger(300, "7100")
	},
	"orphaned, by token": func(w *fakeWorld, id *Identity) {
		w.procs[310] = stranger(310, "7100")
		w.procs[310].env = "KANLOG_TOKEN=" + runToken + "\x00"
	},
	"orphaned, by run lock": func(w *fakeWorld, id *Identity) {
		w.procs[310], w.lock = stranger(310, "7100"), lockHeld
		w.procs[310].holds = runInode
	},
	"run lock held unseen": func(w *fakeWorld, id *Identity) { w.lock = lockHeld },
	"only we are left":     func(w *fakeWorld, id *Identity) { w.procs[herePID].env = "KANLOG_TOKEN=" + runToken + "\x00" },
	"a neighbour is unreadable": func(w *fakeWorld, id *Identity) {
		w.procs[310] = stranger(310, "7100")
		w.procs[310].envErr = syscall.EIO
	},
	"no worker, claimer there":           func(w *fakeWorld, id *Identity) { w.supervisor() },
	"no worker, claimer gone":            func(w *fakeWorld, id *Identity) {},
	"no worker, claimer of another boot": func(w *fakeWorld, id *Identity) { id.Fingerprint = "boot-b:3|" + superStart },
	"no worker, claimer unreadable":      func(w *fakeWorld, id *Identity) { w.supervisor().statErr = syscall.EIO },
	"no worker, claimer elsewhere": func(w *fakeWorld, id *Identity) {
		id.Machine, id.Fingerprint = "machine-b", "boot-b:3|"+superStart
	},
}

func stranger(session int, start string) *fakeProc {
	return &fakeProc{state: 'S', parent: 1, threads: 1, session: session, start: start, env: "A=b\x00"}
}

// TestEvidenceAsDocumented looks at each machine that docs/evidence.md names:
// the answer with its flags, and every word of the reason.
func TestEvidenceAsDocumented(t *testing.T) {
	t.Parallel()
	rows := documentedEvidence(t)
	for name := range evidenceWorlds {
		if rows[name] == nil {
			t.Errorf("docs/evidence.md has no row %q", name)
		}
	}
	for name, row := range rows {
		set, ok := evidenceWorlds[name]
		if !ok {
			t.Errorf("docs/evidence.md has a row %q that nothing here brings about", name)
			continue
		}
		w, id := newFakeWorld(), recorded()
		set(w, &id)
		p := &Prober{world: w}
		var e Evidence
		if strings.HasPrefix(name, "no worker") {
			e = p.ProbeClaimer(id)
		} else {
			e = p.Probe(id)
		}
		if found := foundWords(e); found != row[2] {
			t.Errorf("%s: found %q, documented %q", name, found, row[2])
		}
		if e.Why != row[4] {
			t.Errorf("%s: it says %q, documented %q", name, e.Why, row[4])
		}
	}
}

// foundWords writes evidence as the table does.
func foundWords(e Evidence) string {
	words := []string{string(e.Answer)}
	for _, flag := range []struct {
		set  bool
		name string
	}{{e.OtherBoot, "other boot"}, {e.Foreign, "foreign"}, {e.LockUnknown, "lock unknown"}} {
		if flag.set {
			words = append(words, flag.name)
		}
	}
	for _, m := range e.Members {
		words = append(words, "by "+m.By)
	}
	return strings.Join(words, ", ")
}

// documentedEvidence is the first table of docs/evidence.md by its first cells.
func documentedEvidence(t *testing.T) map[string][]string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "docs", "evidence.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, section, ok := strings.Cut(string(text), "\n## What is seen\n")
	if !ok {
		t.Fatal("docs/evidence.md does not say what is seen")
	}
	section, _, _ = strings.Cut(section, "\n## ")
	rows := map[string][]string{}
	for line := range strings.SplitSeq(section, "\n") {
		if !strings.HasPrefix(line, "| ") {
			continue
		}
		cells := strings.Split(strings.Trim(line, "| "), " | ")
		if cells[0] == "Evidence" || cells[0] == "---" {
			continue
		}
		if rows[cells[0]] != nil || len(cells) != 5 {
			t.Fatalf("docs/evidence.md: a row that is no row, or there twice: %s", line)
		}
		rows[cells[0]] = cells
	}
	return rows
}

// One process that cannot be read is a question about its own run only, as long
// as the supervisors of the others can be told by themselves.
func TestOneUnreadableRunLeavesTheOthers(t *testing.T) {
	t.Parallel()
	w := newFakeWorld()
	w.supervisor().statErr = syscall.EIO
	second := recorded()
	second.PID, second.Token, second.OutputInode = 320, "board/20", "8:20"
	w.procs[320] = stranger(320, superStart)
	w.procs[320].env = "KANLOG_TOKEN=board/20\x00"
	elsewhere := recorded()
	elsewhere.Fingerprint = "boot-b:3|" + superStart
	p := &Prober{world: w}
	var got []Answer
	for _, id := range []Identity{recorded(), second, elsewhere} {
		got = append(got, p.Probe(id).Answer)
	}
	if want := []Answer{Held, Alive, Dead}; !slices.Equal(got, want) {
		t.Errorf("answers %v, want %v", got, want)
	}
	// Nor does its refusal keep another from being signalled.
	if err := p.SignalSupervisor(recorded(), syscall.SIGTERM); err == nil {
		t.Error("the unreadable one was signalled")
	}
	if err := p.SignalSupervisor(second, syscall.SIGTERM); err != nil || !slices.Equal(w.sent, []string{"320:15"}) {
		t.Errorf("sent %v, %v", w.sent, err)
	}
	// Among the processes left of one run neither.
	w = newFakeWorld()
	w.procs[310], w.procs[311] = stranger(310, "7100"), stranger(311, "7101")
	for _, pid := range []int{310, 311} {
		w.procs[pid].env = "KANLOG_TOKEN=" + runToken + "\x00"
	}
	w.openErr[310] = syscall.EPERM
	sent, err := (&Prober{world: w}).SignalMembers(recorded(), []Member{{310, "7100", byToken}, {311, "7101", byToken}}, syscall.SIGKILL)
	if sent != 1 || err == nil || !slices.Equal(w.sent, []string{"311:9"}) {
		t.Errorf("sent %d %v, %v", sent, w.sent, err)
	}
}
