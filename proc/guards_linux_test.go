package proc

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"testing"
)

// TestSignalsHitNobodyElse makes the mistakes for real that would end the wrong
// ones: a group number of 0, 1, -1 or our own, and an identity on record that is
// proven to the last digit and yet that of ourselves, our parent or PID 1. It
// runs in a PID namespace of its own, where "all" and "init" are ours to lose.
func TestSignalsHitNobodyElse(t *testing.T) {
	t.Parallel()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("unshare", "-Urpf", "--mount-proc", "true").CombinedOutput(); err != nil {
		t.Fatalf("this test needs unshare(1) and namespaces: %v %s", err, out)
	}
	// The shell is PID 1 there, and deaf: it would be no proof if the signal
	// that must not reach it ended the namespace with all its witnesses. The
	// test has a session of its own: a kill of "our group" stays in there.
	cmd := exec.Command("unshare", "-Urpf", "--mount-proc", "sh", "-c",
		`trap 'echo PID 1 was signalled' TERM; setsid sh -c '"$0" -test.run="^TestInsideGuards$" -test.v; exit $?' "$0" & wait $! || wait $!`, exe)
	cmd.Env = append(os.Environ(), insideVariable+"=guards")
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "--- PASS: TestInsideGuards") || strings.Contains(string(out), "PID 1 was signalled") {
		t.Errorf("%v\n%s", err, out)
	}
}

// TestInsideGuards is the inner half of TestSignalsHitNobodyElse. Elsewhere it
// only makes sure that it is not needed.
func TestInsideGuards(t *testing.T) {
	if os.Getenv(insideVariable) != "guards" {
		if os.Getpid() < 3 {
			t.Error("in a namespace of its own without being told so")
		}
		return
	}
	// One that shares our group, one with a group of its own, one with a session.
	bystanders := map[string]*exec.Cmd{"our group": {}, "its own group": {}, "its own session": {}}
	for name := range bystanders {
		cmd := exec.Command("sleep", "1000")
		cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: name == "its own group", Setsid: name == "its own session"}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		defer func() { _ = cmd.Process.Kill(); _ = cmd.Wait() }()
		bystanders[name] = cmd
	}
	heard := make(chan os.Signal, 16)
	signal.Notify(heard, syscall.SIGTERM, syscall.SIGWINCH)

	// Nothing descends from this number, so all that can be hit is the group.
	nobody := 1 << 21
	for _, group := range []int{0, 1, -1, os.Getpid(), syscall.Getpgrp()} {
		for _, reaped := range []bool{false, true} {
			newTree(group, nobody).signal(syscall.SIGTERM, reaped)
		}
	}

	self := Self()
	for _, pid := range []int{-1, 0, 1, os.Getpid(), os.Getppid()} {
		id := self
		id.PID = pid
		start := "0"
		if line, err := newWorld().stat(pid); err == nil {
			s, err := parseStat(line)
			if err != nil {
				t.Fatal(err)
			}
			fp := parseFingerprint(self.Fingerprint)
			start, id.Fingerprint = s.start, fmt.Sprintf("%s:%s|%s", fp.boot, fp.first, s.start)
		}
		p := NewProber()
		if err := p.SignalSupervisor(id, syscall.SIGTERM); !errors.Is(err, ErrUnproven) {
			t.Errorf("supervisor %d: %v", pid, err)
		}
		for _, by := range []string{byToken, byLock, bySession} {
			sent, err := p.SignalMembers(self, []Member{{pid, start, by}}, syscall.SIGTERM)
			if sent != 0 || !errors.Is(err, ErrUnproven) {
				t.Errorf("member %d by %s: sent %d, %v", pid, by, sent, err)
			}
		}
	}

	// A signal of our own comes after any that was sent to us before, and its
	// number is the higher one.
	if err := syscall.Kill(os.Getpid(), syscall.SIGWINCH); err != nil {
		t.Fatal(err)
	}
	for sig := range heard {
		if sig == syscall.SIGWINCH {
			break
		}
		t.Errorf("we got %v", sig)
	}
	for name, cmd := range bystanders {
		if !lives(cmd.Process.Pid) {
			t.Errorf("the bystander with %s is gone", name)
		}
	}
	// Not a proof by silence: the same way of signalling does reach a group.
	own := bystanders["its own group"]
	newTree(own.Process.Pid, nobody).signal(syscall.SIGTERM, false)
	await(t, "the group that may be signalled ends", func() bool { return !lives(own.Process.Pid) })
}
