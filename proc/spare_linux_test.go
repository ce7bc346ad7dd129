package proc

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// spare starts a spare for a run and returns when it waits for its spec.
func (r *run) spare() *Spare {
	r.t.Helper()
	if err := os.MkdirAll(filepath.Dir(r.spec.OutputPath), 0o700); err != nil {
		r.t.Fatal(err)
	}
	s, err := StartSpare([]string{"kanlog", asSupervisor}, []string{"GOMAXPROCS=1", "D=" + r.dir})
	if err != nil {
		r.t.Fatal(err)
	}
	r.child = s.child
	await(r.t, "the spare waits for its spec", func() bool { return r.exists("waiting") })
	return s
}

func (r *run) text() []byte {
	r.t.Helper()
	text, err := json.Marshal(r.spec)
	if err != nil {
		r.t.Fatal(err)
	}
	return text
}

// A spare becomes the supervisor of a run like any other: by its token too, which it
// was not started with.
func TestSpareSupervises(t *testing.T) {
	t.Parallel()
	r := newRun(t, `env > $D/env.new; mv $D/env.new $D/env; echo out; echo $$ > $D/me.new; mv $D/me.new $D/me; read x < $D/hook; exit 0`)
	s := r.spare()
	before, err := newWorld().environ(s.child.PID)
	if err != nil || tokenOf(before) != "" {
		t.Errorf("a spare has the token %q of a run, %v", tokenOf(before), err)
	}
	child, err := s.Use(r.text())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if rep := child.Await(ctx); rep.State != Registered {
		t.Fatalf("report %+v; output:\n%s", rep, r.output())
	}
	id := r.identity()
	if id.PID != child.PID || id.PID == 0 {
		t.Errorf("%d has registered, and the spare is %d", id.PID, child.PID)
	}
	worker := r.pid("me")
	if e := NewProber().Probe(id); e.Answer != Alive || !strings.Contains(e.Why, "token") {
		t.Errorf("evidence %+v, want alive by its token", e)
	}
	env, err := newWorld().environ(child.PID)
	if err != nil || tokenOf(env) != r.spec.Token {
		t.Errorf("the supervisor shows the token %q, %v", tokenOf(env), err)
	}
	if strings.Contains(string(env), spareVariable) || !strings.Contains(string(env), "GOMAXPROCS=1") {
		t.Errorf("the supervisor shows the environment %q", env)
	}
	text, err := os.ReadFile(filepath.Join(r.dir, "env"))
	if err != nil || strings.Contains(string(text), spareVariable) || strings.Contains(string(text), "GOMAXPROCS") || !strings.Contains(string(text), TokenVariable+"="+r.spec.Token+"\n") {
		t.Errorf("the worker has the environment\n%s", text)
	}
	r.atHook()()
	if rec := r.ended(); rec.ExitCode == nil || *rec.ExitCode != 0 {
		t.Errorf("record %+v", rec)
	}
	if out := r.output(); !strings.Contains(out, "\nout\n") {
		t.Errorf("output\n%s", out)
	}
	if lives(worker) {
		t.Error("the worker lives")
	}
}

// What is told to end, or has nobody any more who could use it, is gone.
func TestSpareEnds(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(s *Spare){
		"unused":            (*Spare).End,
		"SIGTERM":           func(s *Spare) { _ = syscall.Kill(s.child.PID, syscall.SIGTERM) },
		"half a spec":       func(s *Spare) { _, _ = s.spec.Write([]byte(`{"Task":"t_0000abcd","Argv":["tou`)); s.spec.Close() },
		"its owner is gone": func(s *Spare) { s.spec.Close() },
	} {
		t.Run(name, func(t *testing.T) {
			r := newRun(t, "touch $D/ran")
			s := r.spare()
			if s.Gone() {
				t.Fatal("it is gone before anybody ends it")
			}
			end(s)
			await(t, "the spare is gone", s.Gone)
			if r.exists("registered") || r.exists("ran") {
				t.Error("it ran something")
			}
			if name == "SIGTERM" && s.child.status != "exit status 0" {
				t.Errorf("it did not end itself: %s", s.child.status)
			}
		})
	}
}

// Who is not there cannot be used, and says so, so that another is started.
func TestSpareThatWasKilled(t *testing.T) {
	t.Parallel()
	r := newRun(t, "touch $D/ran")
	s := r.spare()
	r.killSupervisor()
	if !s.Gone() {
		t.Error("it is not known that it is gone")
	}
	if _, err := s.Use(r.text()); err == nil {
		t.Error("the spec of a run was given to nobody")
	}
}

// A spare that takes nothing is ended, whether or not the spec has room in the pipe: what
// it has got must not run once another has the run.
func TestSpareThatIsStopped(t *testing.T) {
	t.Parallel()
	for name, more := range map[string]int{"small": 0, "more than a pipe holds": 1 << 20} {
		t.Run(name, func(t *testing.T) {
			r := newRun(t, "touch $D/ran")
			s := r.spare()
			if err := syscall.Kill(s.child.PID, syscall.SIGSTOP); err != nil {
				t.Fatal(err)
			}
			r.spec.Env = append(r.spec.Env, "BIG="+strings.Repeat("x", more))
			if _, err := s.Use(r.text()); err == nil {
				t.Error("the spec of a run was taken by who is stopped")
			}
			if !s.Gone() {
				t.Error("it is still there")
			}
			if r.exists("registered") || r.exists("ran") {
				t.Error("it ran what is given to somebody else")
			}
		})
	}
}

// A SIGTERM from before the spec was taken ends the spare, and whoever gave the spec
// knows that it was not.
func TestSpareThatWasToldToEnd(t *testing.T) {
	t.Parallel()
	for range 10 {
		r := newRun(t, "touch $D/ran; exec sleep 600") // which a signal that is lost does not end
		s := r.spare()
		for _, sig := range []syscall.Signal{syscall.SIGSTOP, syscall.SIGTERM} {
			if err := syscall.Kill(s.child.PID, sig); err != nil {
				t.Fatal(err)
			}
		}
		used := make(chan error)
		go func() {
			_, err := s.Use(r.text())
			used <- err
		}()
		if err := syscall.Kill(s.child.PID, syscall.SIGCONT); err != nil {
			t.Fatal(err)
		}
		if err := <-used; err == nil {
			// It was faster: then the run is its own, and the signal ends that.
			r.awaitEnd()
			if rec := r.record(); rec.Cause != CauseTerminated {
				t.Errorf("record %+v", rec)
			}
			continue
		}
		if r.exists("registered") || r.exists("ran") {
			t.Error("it ran what is given to somebody else")
		}
	}
}

// A daemon that was stopped between the spec and the spare's word must not kill a spare
// that has begun: the word is there when it goes on, though the time for it is over.
func TestASparesWordIsReadLate(t *testing.T) {
	for _, c := range []struct {
		name, said string
		err        error
	}{
		{"said", taken, nil},
		{"not said", "", os.ErrDeadlineExceeded},
	} {
		t.Run(c.name, func(t *testing.T) {
			r, w, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			defer r.Close()
			defer w.Close()
			if _, err := w.WriteString(c.said); err != nil {
				t.Fatal(err)
			}
			child := &Child{report: r, words: bufio.NewReader(r)}
			if got, err := child.firstWord(time.Now().Add(-time.Hour)); got != c.said || !errors.Is(err, c.err) {
				t.Errorf("%q, %v, want %q, %v", got, err, c.said, c.err)
			}
		})
	}
}
