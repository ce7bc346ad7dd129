package proc

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// patience bounds every wait of a test for something that must come; it is no
// expectation of how long that takes.
const patience = 60 * time.Second

func await(t *testing.T, what string, cond func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !cond(); {
		if time.Now().After(end) {
			t.Fatalf("waited in vain: %s", what)
		}
		time.Sleep(2 * time.Millisecond)
	}
}

// run is one supervised run of a test.
type run struct {
	t     *testing.T
	dir   string
	spec  superviseSpec
	child *Child
	env   []string // of the supervisor
}

var runs atomic.Uint64

// newRun prepares a run of a shell script; start starts it.
func newRun(t *testing.T, script string) *run {
	t.Helper()
	n := runs.Add(1)
	dir := t.TempDir()
	token := "7d5f2a60-test/" + strconv.Itoa(os.Getpid()) + "." + strconv.FormatUint(n, 10)
	env := append(CleanEnv(os.Environ()), TokenVariable+"="+token, "D="+dir)
	r := &run{t: t, dir: dir, env: env, spec: superviseSpec{
		Task: "t_0000abcd", Run: n, Token: token,
		Argv: []string{"sh", "-c", script}, Env: env, Workspace: dir,
		OutputPath: filepath.Join(dir, "runs", "t_0000abcd", "1.log"),
		RecordPath: filepath.Join(dir, "runs", "t_0000abcd", "1.exit"),
		KillGrace:  50 * time.Millisecond, BoardDir: dir,
	}}
	if err := syscall.Mkfifo(filepath.Join(dir, "hook"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.sweep)
	return r
}

func (r *run) start() Report {
	r.t.Helper()
	r.spawn()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	return r.child.Await(ctx)
}

func (r *run) spawn() {
	r.t.Helper()
	text, err := json.Marshal(r.spec)
	if err != nil {
		r.t.Fatal(err)
	}
	r.child, err = Spawn(SpawnSpec{
		Args: []string{"kanlog", asSupervisor}, Env: r.env,
		OutputPath: r.spec.OutputPath, Spec: text,
	})
	if err != nil {
		r.t.Fatal(err)
	}
}

func (r *run) mustRegister() Identity {
	r.t.Helper()
	if rep := r.start(); rep.State != Registered {
		r.t.Fatalf("report %+v; output:\n%s", rep, r.output())
	}
	return r.identity()
}

func (r *run) identity() Identity {
	r.t.Helper()
	var id Identity
	r.readJSON("registered", &id)
	return id
}

func (r *run) readJSON(name string, v any) {
	r.t.Helper()
	text, err := os.ReadFile(filepath.Join(r.dir, name))
	if err != nil {
		r.t.Fatal(err)
	}
	if err := json.Unmarshal(text, v); err != nil {
		r.t.Fatal(err)
	}
}

func (r *run) exists(name string) bool {
	_, err := os.Stat(filepath.Join(r.dir, name))
	return err == nil
}

func (r *run) awaitEnd() {
	r.t.Helper()
	select {
	case <-r.child.Reaped():
	case <-time.After(patience):
		r.t.Fatalf("the supervisor has not ended; output:\n%s", r.output())
	}
}

// ended waits for the end and returns the record, which must also be what was
// booked.
func (r *run) ended() Record {
	r.t.Helper()
	r.awaitEnd()
	rec := r.record()
	var booked Record
	r.readJSON("booked", &booked)
	a, _ := json.Marshal(rec)
	b, _ := json.Marshal(booked)
	if string(a) != string(b) {
		r.t.Errorf("recorded %s\nbooked   %s", a, b)
	}
	return rec
}

func (r *run) record() Record {
	r.t.Helper()
	rec, err := ReadRecord(r.spec.RecordPath, r.spec.Token, r.spec.Run)
	if err != nil || rec == nil {
		r.t.Fatalf("record %v, error %v; output:\n%s", rec, err, r.output())
	}
	return *rec
}

func (r *run) output() string {
	text, err := os.ReadFile(r.spec.OutputPath)
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// pid waits for a number that the worker wrote with `echo N > $D/name.new; mv`.
func (r *run) pid(name string) int {
	r.t.Helper()
	var pid int
	await(r.t, "the worker writes "+name, func() bool {
		text, err := os.ReadFile(filepath.Join(r.dir, name))
		if err != nil || !strings.HasSuffix(string(text), "\n") {
			return false
		}
		pid, err = strconv.Atoi(strings.TrimSpace(string(text)))
		return err == nil
	})
	return pid
}

// atHook waits until the supervisor stands at its hook, and returns what lets
// it go on.
func (r *run) atHook() (release func()) {
	r.t.Helper()
	f, err := os.OpenFile(filepath.Join(r.dir, "hook"), os.O_WRONLY, 0)
	if err != nil {
		r.t.Fatal(err)
	}
	return func() { f.Close() }
}

// killSupervisor ends it the hard way and waits until it is reaped.
func (r *run) killSupervisor() {
	r.t.Helper()
	if err := syscall.Kill(r.child.PID, syscall.SIGKILL); err != nil {
		r.t.Fatal(err)
	}
	r.awaitEnd()
}

// sweep ends whatever a failed test left behind.
func (r *run) sweep() {
	if r.child != nil {
		select {
		case <-r.child.Reaped():
		default:
			_ = syscall.Kill(r.child.PID, syscall.SIGKILL)
			<-r.child.Reaped()
		}
	}
	var id Identity
	text, err := os.ReadFile(filepath.Join(r.dir, "registered"))
	if err != nil || json.Unmarshal(text, &id) != nil {
		return
	}
	for end := time.Now().Add(patience); time.Now().Before(end); {
		p := NewProber()
		e := p.Probe(id)
		if len(e.Members) == 0 {
			return
		}
		_, _ = p.SignalMembers(id, e.Members, syscall.SIGKILL)
		time.Sleep(2 * time.Millisecond)
	}
	r.t.Error("processes are left behind")
}

// lives reports whether a number is a process that runs.
func lives(pid int) bool {
	line, err := newWorld().stat(pid)
	if err != nil {
		return false
	}
	s, err := parseStat(line)
	return err == nil && !s.ended()
}

// settled is what is known of a run whose supervisor is gone. A look that falls on
// a process of another test that is just executing holds, as it must; the next one
// tells, as the next tick's does.
func settled(t *testing.T, id Identity) (e Evidence) {
	t.Helper()
	await(t, "an answer about the run", func() bool {
		e = NewProber().Probe(id)
		return e.Answer != Held
	})
	return e
}
