package proc

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

func spawnAndWait(spec superviseSpec) error {
	text, err := json.Marshal(spec)
	if err != nil {
		return err
	}
	c, err := Spawn(SpawnSpec{
		Args: []string{"kanlog", asSupervisor}, Env: spec.Env, OutputPath: spec.OutputPath, Spec: text,
	})
	if err != nil {
		return err
	}
	rep := c.Await(context.Background())
	<-c.Reaped()
	if rep.State != Registered {
		return fmt.Errorf("%w: %+v", errNotRegistered, rep)
	}
	return nil
}

func TestSpawnLeavesNoZombies(t *testing.T) {
	t.Parallel()
	var started []*run
	for range 50 {
		r := newRun(t, "exit 0")
		r.spawn()
		started = append(started, r)
	}
	for _, r := range started {
		// Without Await: nobody need listen.
		r.awaitEnd()
		if _, err := newWorld().stat(r.child.PID); !isGone(err) {
			if line, err := newWorld().stat(r.child.PID); err == nil {
				if s, err := parseStat(line); err == nil && s.state == 'Z' && s.parent == os.Getpid() {
					t.Errorf("process %d is a zombie", r.child.PID)
				}
			}
		}
		if rec := r.ended(); *rec.ExitCode != 0 {
			t.Errorf("record %+v", rec)
		}
	}
}

func TestSpawnSession(t *testing.T) {
	t.Parallel()
	r := newRun(t, `read x < $D/hook`)
	id := r.mustRegister()
	line, err := newWorld().stat(id.PID)
	if err != nil {
		t.Fatal(err)
	}
	s, err := parseStat(line)
	if err != nil || s.session != id.PID || id.PID != r.child.PID {
		t.Errorf("stat %+v %v of %d, spawned %d", s, err, id.PID, r.child.PID)
	}
	name, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", id.PID))
	if err != nil || !strings.HasPrefix(string(name), "kanlog\x00") {
		t.Errorf("name %q %v", name, err)
	}
	if target, err := os.Readlink(fmt.Sprintf("/proc/%d/fd/0", id.PID)); err != nil || !strings.Contains(target, "deleted") {
		t.Errorf("the spec has a name: %q %v", target, err)
	}
	r.atHook()()
	r.ended()
}

// A pipe that we inherited must not stay open in what we start.
func TestSpawnLeaksNothing(t *testing.T) {
	t.Parallel()
	var fds [2]int
	if err := syscall.Pipe(fds[:]); err != nil { // not close-on-exec
		t.Fatal(err)
	}
	defer syscall.Close(fds[0])
	link, err := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", fds[1]))
	if err != nil {
		t.Fatal(err)
	}
	r := newRun(t, `read x < $D/hook`)
	r.mustRegister()
	syscall.Close(fds[1])
	names, err := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", r.child.PID))
	if err != nil || len(names) == 0 {
		t.Fatal(names, err)
	}
	for _, name := range names {
		if target, err := os.Readlink(name); err == nil && target == link {
			t.Errorf("%s is our %s", name, link)
		}
	}
	r.atHook()()
	r.ended()
}

func TestAwait(t *testing.T) {
	t.Parallel()
	t.Run("died", func(t *testing.T) {
		r := newRun(t, "exit 0")
		r.spec.HookAt = "supervise.start"
		r.spawn()
		release := r.atHook()
		defer release()
		if err := syscall.Kill(r.child.PID, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		if rep := r.child.Await(ctx); rep.State != Died || !strings.Contains(rep.Detail, "killed") {
			t.Errorf("report %+v", rep)
		}
	})
	t.Run("timed out, and registers later", func(t *testing.T) {
		r := newRun(t, "exit 0")
		r.spec.HookAt = "supervise.start"
		r.spawn()
		release := r.atHook()
		ctx, cancel := context.WithTimeout(context.Background(), time.Millisecond)
		defer cancel()
		if rep := r.child.Await(ctx); rep.State != TimedOut || rep.Detail == "" {
			t.Errorf("report %+v", rep)
		}
		release() // its report meets a closed pipe
		if rec := r.ended(); rec.Cause != CauseExited {
			t.Errorf("record %+v", rec)
		}
	})
}

func TestSpawnErrors(t *testing.T) {
	t.Parallel()
	if _, err := Spawn(SpawnSpec{OutputPath: filepath.Join(t.TempDir(), "x")}); err == nil {
		t.Error("no arguments: no error")
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "file"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := Spawn(SpawnSpec{Args: []string{"kanlog", asIdler}, OutputPath: filepath.Join(dir, "file", "x")})
	if !errors.Is(err, syscall.ENOTDIR) {
		t.Errorf("output below a file: %v", err)
	}
	_, err = Spawn(SpawnSpec{Args: []string{"kanlog", asIdler}, Dir: filepath.Join(dir, "none"), OutputPath: filepath.Join(dir, "x")})
	if !errors.Is(err, syscall.ENOENT) {
		t.Errorf("no directory: %v", err)
	}
}
