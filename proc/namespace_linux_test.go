package proc

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// insideVariable tells the test binary that it runs in a PID namespace of its
// own.
const insideVariable = "PROC_TEST_INSIDE"

// unshared prepares a command in a new user and PID namespace.
func unshared(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	flags := []string{"-Urpf", "--mount-proc"}
	if out, err := exec.Command("unshare", append(flags, "true")...).CombinedOutput(); err != nil {
		t.Fatalf("no namespaces here: unshare: %v %s", err, out)
	}
	return exec.Command("unshare", append(flags, args...)...)
}

// probeInside asks a prober in another namespace about an identity.
func probeInside(t *testing.T, id Identity) (Evidence, bool) {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := unshared(t, exe, asProber)
	text, err := json.Marshal(id)
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stdin, cmd.Stderr = bytes.NewReader(text), os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	var answer struct {
		Evidence Evidence
		Unproven bool
	}
	if err := json.Unmarshal(out, &answer); err != nil {
		t.Fatal(err)
	}
	return answer.Evidence, answer.Unproven
}

func TestForeignNamespace(t *testing.T) {
	t.Parallel()
	r := newRun(t, `read x < $D/hook`)
	id := r.mustRegister()
	e, unproven := probeInside(t, id)
	if e.Answer != Held || !e.Foreign || e.LockUnknown || !unproven {
		t.Errorf("lock held: %+v, signal refused %v", e, unproven)
	}
	r.atHook()()
	r.ended()
	if e, _ = probeInside(t, id); e.Answer != Dead || !e.Foreign || e.OtherBoot {
		t.Errorf("lock free: %+v", e)
	}
	if err := os.Remove(r.spec.OutputPath); err != nil {
		t.Fatal(err)
	}
	if e, _ = probeInside(t, id); e.Answer != Held || !e.Foreign || !e.LockUnknown {
		t.Errorf("file gone: %+v", e)
	}
	if err := os.WriteFile(r.spec.OutputPath, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	// A new file may get the old inode; then its lock, free, would be the
	// answer. Only another inode can be told.
	var st syscall.Stat_t
	if err := syscall.Stat(r.spec.OutputPath, &st); err != nil {
		t.Fatal(err)
	}
	id.OutputInode = inodeName(uint64(st.Dev), st.Ino+1)
	if e, _ = probeInside(t, id); e.Answer != Held || !e.LockUnknown {
		t.Errorf("file replaced: %+v", e)
	}
}

// TestReusedNumber gives the number of a dead supervisor to a stranger, in a
// namespace where numbers can be chosen.
func TestReusedNumber(t *testing.T) {
	t.Parallel()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	// The shell stays PID 1: nobody's worker may have that number.
	cmd := unshared(t, "sh", "-c", `"$0" -test.run='^TestInsideReusedNumber$' -test.v; exit $?`, exe)
	cmd.Env = append(os.Environ(), insideVariable+"=1")
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "--- PASS: TestInsideReusedNumber") {
		t.Errorf("%v\n%s", err, out)
	}
	t.Logf("%s", out)
}

// TestInsideReusedNumber is the inner half of TestReusedNumber. Elsewhere it
// only makes sure that it is not needed.
func TestInsideReusedNumber(t *testing.T) {
	if os.Getenv(insideVariable) == "" {
		if os.Getpid() < 3 {
			t.Error("in a namespace of its own without being told so")
		}
		return
	}
	for range 10 {
		r := newRun(t, `sleep 1000`)
		id := r.mustRegister()
		r.killSupervisor()
		r.endOrphans(id)
		stranger := r.takeNumber(id.PID)
		if stranger.Process.Pid != id.PID {
			// A thread of ours was faster.
			_ = stranger.Process.Kill()
			_ = stranger.Wait()
			continue
		}
		checkStranger(t, id)
		if err := stranger.Process.Signal(syscall.Signal(0)); err != nil || !lives(id.PID) {
			t.Errorf("the stranger was touched: %v", err)
		}
		_ = stranger.Process.Kill()
		_ = stranger.Wait()
		return
	}
	t.Error("the number could not be had")
}

// takeNumber starts a process that gets the number if nobody is faster.
func (r *run) takeNumber(pid int) *exec.Cmd {
	r.t.Helper()
	cmd := exec.Command("sleep", "1000")
	cmd.Env = CleanEnv(os.Environ())
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := os.WriteFile("/proc/sys/kernel/ns_last_pid", []byte(strconv.Itoa(pid-1)), 0); err != nil {
		r.t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		r.t.Fatal(err)
	}
	return cmd
}

func checkStranger(t *testing.T, id Identity) {
	t.Helper()
	line, err := newWorld().stat(id.PID)
	if err != nil {
		t.Fatal(err)
	}
	s, err := parseStat(line)
	if err != nil {
		t.Fatal(err)
	}
	fp := parseFingerprint(id.Fingerprint)
	sameTick := id
	sameTick.Fingerprint = fmt.Sprintf("%s:%s|%s", fp.boot, fp.first, s.start)
	for name, id := range map[string]Identity{"later": id, "within the same tick": sameTick} {
		p := NewProber()
		e := p.Probe(id)
		if e.Answer != Dead || e.OtherBoot {
			t.Errorf("%s: evidence %+v", name, e)
		}
		t.Logf("%s: %s", name, e.Why)
		for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGKILL} {
			if err := p.SignalSupervisor(id, sig); err == nil {
				t.Errorf("%s: signalled", name)
			}
			for _, by := range []string{byToken, byLock, bySession} {
				if n, _ := p.SignalMembers(id, []Member{{id.PID, s.start, by}}, sig); n != 0 {
					t.Errorf("%s: signalled by %s", name, by)
				}
			}
		}
	}
}

// A namespace that was made anew has other processes under the old numbers.
func TestRecreatedNamespace(t *testing.T) {
	t.Parallel()
	id := Self()
	fp := parseFingerprint(id.Fingerprint)
	if !fp.known || fp.first == hidden {
		t.Fatalf("identity %+v", id)
	}
	id.Fingerprint = fmt.Sprintf("%s:%s1|%s", fp.boot, fp.first, fp.start)
	if e := NewProber().ProbeClaimer(id); e.Answer != Dead || !e.OtherBoot {
		t.Errorf("evidence %+v", e)
	}
}
