package proc

import (
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func TestSuperviseHowCommandsEnd(t *testing.T) {
	t.Parallel()
	code := func(n int) *int { return &n }
	tests := []struct {
		name   string
		argv   []string
		script string
		make   func(dir string) error
		cause  string
		code   *int
		signal string
		err    string
	}{
		{name: "zero", script: "exit 0", cause: CauseExited, code: code(0)},
		{name: "three", script: "exit 3", cause: CauseExited, code: code(3)},
		{name: "rate limited", script: "exit 75", cause: CauseExited, code: code(75)},
		{name: "cannot ever work", script: "exit 78", cause: CauseExited, code: code(78)},
		{name: "segmentation fault", script: "kill -SEGV $$", cause: CauseSignaled, signal: "SIGSEGV"},
		{name: "killed by itself", script: "kill -KILL $$", cause: CauseSignaled, signal: "SIGKILL"},
		{name: "terminated by itself", script: "kill -TERM $$", cause: CauseSignaled, signal: "SIGTERM"},
		{name: "not in PATH", argv: []string{"no-such-command"}, cause: CauseStartFailed, err: "not found in PATH"},
		{name: "no such file", argv: []string{"./none"}, cause: CauseStartFailed, err: "no such file"},
		{name: "no argument", argv: []string{}, cause: CauseStartFailed, err: "no command"},
		{name: "not executable", argv: []string{"./plain"}, cause: CauseStartFailed, err: "permission denied",
			make: func(dir string) error { return os.WriteFile(filepath.Join(dir, "plain"), nil, 0o600) }},
		{name: "a directory", argv: []string{"./folder"}, cause: CauseStartFailed, err: "./folder: is a directory",
			make: func(dir string) error { return os.Mkdir(filepath.Join(dir, "folder"), 0o700) }},
		{name: "interpreter missing", argv: []string{"./lost"}, cause: CauseStartFailed,
			err: `./lost: the file is there, but its interpreter "/no/such/sh" is not: no such file`,
			make: func(dir string) error {
				return os.WriteFile(filepath.Join(dir, "lost"), []byte("#! /no/such/sh -e\nexit 0\n"), 0o700)
			}},
		{name: "written on another system", argv: []string{"./lost"}, cause: CauseStartFailed, err: `its interpreter "/bin/sh\\r" is not`,
			make: func(dir string) error {
				return os.WriteFile(filepath.Join(dir, "lost"), []byte("#!/bin/sh\r\nexit 0\r\n"), 0o700)
			}},
		{name: "no interpreter", argv: []string{"./noise"}, cause: CauseStartFailed, err: "exec format error",
			make: func(dir string) error { return os.WriteFile(filepath.Join(dir, "noise"), []byte("noise"), 0o700) }},
		{name: "relative to the workspace", argv: []string{"./here"}, cause: CauseExited, code: code(9),
			make: func(dir string) error {
				return os.WriteFile(filepath.Join(dir, "here"), []byte("#!/bin/sh\nexit 9\n"), 0o700)
			}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := newRun(t, tt.script)
			if tt.argv != nil {
				r.spec.Argv = tt.argv
			}
			if tt.make != nil {
				if err := tt.make(r.dir); err != nil {
					t.Fatal(err)
				}
			}
			r.mustRegister()
			rec := r.ended()
			if rec.Cause != tt.cause || rec.Signal != tt.signal || !strings.Contains(rec.Error, tt.err) {
				t.Errorf("record %+v", rec)
			}
			switch {
			case (rec.ExitCode == nil) != (tt.code == nil):
				t.Errorf("exit code %v", rec.ExitCode)
			case tt.code != nil && *rec.ExitCode != *tt.code:
				t.Errorf("exit code %d, want %d", *rec.ExitCode, *tt.code)
			}
			if (rec.Started == "") != (tt.cause == CauseStartFailed) || rec.Ended == "" {
				t.Errorf("started %q ended %q", rec.Started, rec.Ended)
			}
			if want := fmt.Sprintf("kanlog: run %d of t_0000abcd started ", r.spec.Run); !strings.HasPrefix(r.output(), want) {
				t.Errorf("output %q", r.output())
			}
		})
	}
}

func TestSuperviseMissingWorkspace(t *testing.T) {
	t.Parallel()
	r := newRun(t, "true")
	r.spec.Workspace = filepath.Join(r.dir, "away")
	r.mustRegister()
	if rec := r.ended(); rec.Cause != CauseStartFailed || !strings.Contains(rec.Error, "workspace") {
		t.Errorf("record %+v", rec)
	}
}

// A file that is open for writing cannot be executed; whoever has it open lets
// go while the supervisor tries.
func TestSuperviseTextBusy(t *testing.T) {
	t.Parallel()
	for _, letGo := range []bool{true, false} {
		t.Run(fmt.Sprint("let go ", letGo), func(t *testing.T) {
			r := newRun(t, "")
			script := filepath.Join(r.dir, "busy")
			text, err := os.ReadFile("/bin/true")
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(script, text, 0o700); err != nil {
				t.Fatal(err)
			}
			f, err := os.OpenFile(script, os.O_WRONLY, 0)
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			r.spec.Argv = []string{script}
			r.mustRegister()
			if letGo {
				// The header is written just before the first try.
				await(t, "the header", func() bool { return strings.Contains(r.output(), "started") })
				f.Close()
				if rec := r.ended(); rec.Cause != CauseExited || *rec.ExitCode != 0 {
					t.Errorf("record %+v", rec)
				}
				return
			}
			if rec := r.ended(); rec.Cause != CauseStartFailed || !strings.Contains(rec.Error, "text file busy") {
				t.Errorf("record %+v", rec)
			}
		})
	}
}

func TestSuperviseWhatTheWorkerGets(t *testing.T) {
	t.Parallel()
	r := newRun(t, `
		echo "cwd $(pwd)"; echo "token $KANLOG_TOKEN"; echo "stdin $(cat | wc -c)"; echo oops >&2
		echo "group $(ps -o pgid= -p $$) $$"
		ls -l /proc/self/fd | grep -c -e memfd -e pipe: | sed 's/^/leaked /'
		grep -E '^Sig(Ign|Blk)' /proc/self/status; printf 'no newline'`)
	r.spec.Argv = append([]string{"sh", "-c"}, r.spec.Argv[2], "arg \x1b[31m\n")
	// Whoever starts us may have signals ignored or blocked.
	signal.Ignore(syscall.SIGTSTP, syscall.SIGHUP)
	withBlocked(t, func() { r.spawn() }, syscall.SIGTERM, syscall.SIGUSR1, syscall.SIGCHLD)
	signal.Reset(syscall.SIGTSTP, syscall.SIGHUP)
	r.ended()
	out := r.output()
	lines := strings.Split(out, "\n")
	if !strings.Contains(lines[0], `\x1b[31m\n`) || strings.Contains(lines[0], "\x1b") {
		t.Errorf("header %q", lines[0])
	}
	dir, err := filepath.EvalSymlinks(r.dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"cwd " + dir + "\n", "token " + r.spec.Token + "\n", "stdin 0\n", "oops\n",
		"SigBlk:\t0000000000000000\n",
		"no newline\nkanlog: run ", ": exit 0\n",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
	// Signals 32 and 33 belong to the C library: no program can give them back
	// their default, and some start everything below them with one ignored.
	ignored := regexp.MustCompile(`SigIgn:\t([0-9a-f]+)\n`).FindStringSubmatch(out)
	if ignored == nil {
		t.Fatalf("no SigIgn in\n%s", out)
	}
	if mask, err := strconv.ParseUint(ignored[1], 16, 64); err != nil || mask&^(3<<31) != 0 {
		t.Errorf("ignored signals: %s (%v)", ignored[1], err)
	}
	// `ls | grep` has one pipe of its own; anything more came from us.
	if !strings.Contains(out, "leaked 1\n") {
		t.Errorf("descriptors leaked:\n%s", out)
	}
	var group, pid int
	for _, l := range lines {
		_, _ = fmt.Sscanf(l, "group %d %d", &group, &pid)
	}
	if pid == 0 || group != pid {
		t.Errorf("group %d of worker %d", group, pid)
	}
	st, err := os.Stat(r.spec.OutputPath)
	if err != nil || st.Mode().Perm() != 0o600 {
		t.Errorf("output file: %v, %v", st.Mode(), err)
	}
	if st, err = os.Stat(filepath.Dir(r.spec.OutputPath)); err != nil || st.Mode().Perm() != 0o700 {
		t.Errorf("output directory: %v, %v", st.Mode(), err)
	}
}

// withBlocked runs f on a thread that has signals blocked; what is forked there
// inherits that.
func withBlocked(t *testing.T, f func(), sigs ...syscall.Signal) {
	t.Helper()
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var set, old unix.Sigset_t
	for _, sig := range sigs {
		set.Val[0] |= 1 << (uint(sig) - 1)
	}
	if err := unix.PthreadSigmask(unix.SIG_BLOCK, &set, &old); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = unix.PthreadSigmask(unix.SIG_SETMASK, &old, nil) }()
	f()
}

// A deadline is handed down as it was registered; a run without one has none,
// whatever stands around its supervisor.
func TestSuperviseDeadline(t *testing.T) {
	t.Parallel()
	const say = `echo "until ${KANLOG_DEADLINE-none} left ${KANLOG_SECONDS_LEFT-none}"`
	r := newRun(t, say)
	r.spec.Env = CleanEnv(append(r.spec.Env, "KANLOG_DEADLINE=2001-01-01T00:00:00Z", "KANLOG_SECONDS_LEFT=3"))
	r.mustRegister()
	r.ended()
	if !strings.Contains(r.output(), "\nuntil none left none\n") {
		t.Errorf("output %q", r.output())
	}
	until := time.Now().Add(time.Hour).Truncate(time.Microsecond)
	r = newRun(t, say)
	r.spec.Until = until
	r.mustRegister()
	r.ended()
	// The hour began before the supervisor was started.
	m := regexp.MustCompile(`\nuntil (\S+) left (\d+)\n`).FindStringSubmatch(r.output())
	if m == nil || m[1] != stamp(until) {
		t.Fatalf("output %q, want until %s", r.output(), stamp(until))
	}
	if left, _ := strconv.Atoi(m[2]); left >= 3600 || left < 3600-int(patience.Seconds()) {
		t.Errorf("left %s", m[2])
	}
}

func TestSuperviseRefused(t *testing.T) {
	t.Parallel()
	for _, why := range []string{"fenced", "the disk\nis full"} {
		r := newRun(t, "touch $D/ran")
		r.spec.RefuseWith = why
		rep := r.start()
		if rep.State != Refused || !strings.Contains(rep.Detail, strings.ReplaceAll(why, "\n", `\n`)) {
			t.Errorf("report %+v", rep)
		}
		r.awaitEnd()
		if rec := r.record(); rec.Cause != CauseNeverStarted || rec.Started != "" || rec.ExitCode != nil || rec.Error == "" {
			t.Errorf("record %+v", rec)
		}
		if r.exists("ran") || r.exists("booked") {
			t.Error("something was run or booked")
		}
		if r.output() != "" {
			t.Errorf("output %q", r.output())
		}
	}
}

func TestSuperviseTermBeforeStart(t *testing.T) {
	t.Parallel()
	for _, point := range []string{"supervise.start", "supervise.registered"} {
		r := newRun(t, "touch $D/ran")
		r.spec.HookAt, r.spec.TermAtHook = point, true
		r.spawn()
		release := r.atHook()
		if err := syscall.Kill(r.child.PID, syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
		release()
		if rec := r.ended(); rec.Cause != CauseTerminated || rec.Started != "" || rec.ExitCode != nil {
			t.Errorf("%s: record %+v", point, rec)
		}
		if r.exists("ran") || r.output() != "" {
			t.Errorf("%s: it was run", point)
		}
	}
}

// Nothing is run before the registration, and the run lock is held by then.
func TestSuperviseOrder(t *testing.T) {
	t.Parallel()
	r := newRun(t, "exit 0")
	r.spec.HookAt = "supervise.start"
	r.spawn()
	release := r.atHook()
	if r.exists("registered") || strings.Contains(r.output(), "started") {
		t.Error("registered or started before its time")
	}
	var st syscall.Stat_t
	if err := syscall.Stat(r.spec.OutputPath, &st); err != nil {
		t.Fatal(err)
	}
	inode := inodeName(uint64(st.Dev), st.Ino)
	if got, err := askRunLock(r.spec.OutputPath, inode); got != lockHeld || err != nil {
		t.Errorf("lock %v %v", got, err)
	}
	release()
	r.ended()
	if got, err := askRunLock(r.spec.OutputPath, inode); got != lockFree || err != nil {
		t.Errorf("lock %v %v after the end", got, err)
	}
}

func TestSuperviseRecordBeforeBooking(t *testing.T) {
	t.Parallel()
	r := newRun(t, "exit 4")
	r.spec.HookAt = "supervise.recorded"
	r.mustRegister()
	release := r.atHook()
	if rec := r.record(); *rec.ExitCode != 4 || r.exists("booked") {
		t.Errorf("record %+v, booked %v", rec, r.exists("booked"))
	}
	release()
	r.ended()
}

func TestSuperviseBooking(t *testing.T) {
	t.Parallel()
	t.Run("tried again", func(t *testing.T) {
		r := newRun(t, "exit 0")
		r.spec.BookFailures = 3
		r.mustRegister()
		r.ended()
	})
	t.Run("given up", func(t *testing.T) {
		r := newRun(t, "exit 5")
		r.spec.GiveUp = true
		r.mustRegister()
		r.awaitEnd()
		if rec := r.record(); *rec.ExitCode != 5 || r.exists("booked") {
			t.Errorf("record %+v", rec)
		}
	})
	t.Run("record cannot be written at first", func(t *testing.T) {
		r := newRun(t, "exit 6")
		r.spec.RecordPath = filepath.Join(r.dir, "missing", "1.exit")
		r.spec.BookFailures, r.spec.BreakRecordUntilBooks = 3, 2
		r.mustRegister()
		if rec := r.ended(); *rec.ExitCode != 6 {
			t.Errorf("record %+v", rec)
		}
	})
	t.Run("record can never be written", func(t *testing.T) {
		r := newRun(t, "exit 6")
		r.spec.RecordPath = filepath.Join(r.dir, "missing", "1.exit")
		r.mustRegister()
		r.awaitEnd()
		if !r.exists("booked") {
			t.Error("not booked")
		}
	})
}

// How much a waiting supervisor holds, for people: no bound, machines differ.
func TestSuperviseMemory(t *testing.T) {
	r := newRun(t, `echo $$ > $D/self; read x < $D/hook`)
	r.mustRegister()
	r.pid("self")
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", r.child.PID))
	if err != nil {
		t.Fatal(err)
	}
	found := false
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, "VmRSS") || strings.HasPrefix(line, "RssAnon") {
			t.Log("supervisor " + strings.Join(strings.Fields(line), " "))
			found = true
		}
	}
	if !found {
		t.Error("no resident size in /proc")
	}
	r.atHook()()
	r.ended()
}

func BenchmarkSupervise(b *testing.B) {
	dir := b.TempDir()
	for i := 0; b.Loop(); i++ {
		spec := superviseSpec{
			Task: "t_0000abcd", Run: 1, Token: "bench/1", Argv: []string{"true"}, Env: os.Environ(), Workspace: dir,
			OutputPath: filepath.Join(dir, fmt.Sprint(i, ".log")), RecordPath: filepath.Join(dir, fmt.Sprint(i, ".exit")),
			KillGrace: time.Second, BoardDir: dir,
		}
		if err := spawnAndWait(spec); err != nil {
			b.Fatal(err)
		}
	}
}

var errNotRegistered = errors.New("not registered")

func TestSuperviseInterruptible(t *testing.T) {
	t.Parallel()
	for _, sig := range []syscall.Signal{syscall.SIGINT, syscall.SIGHUP} {
		r := newRun(t, `echo $$ > $D/self; read x < $D/hook`)
		r.spec.Interruptible = true
		r.mustRegister()
		r.pid("self")
		if err := syscall.Kill(r.child.PID, sig); err != nil {
			t.Fatal(err)
		}
		if rec := r.ended(); rec.Cause != CauseTerminated || rec.Signal != "SIGTERM" {
			t.Errorf("%v: record %+v", sig, rec)
		}
	}
}

// One process may claim and supervise: its own environment never got the token,
// and the run lock proves it all the same.
func TestSuperviseWithoutTokenOfItsOwn(t *testing.T) {
	t.Parallel()
	r := newRun(t, `echo $$ > $D/self; read x < $D/hook`)
	r.env = CleanEnv(r.env)
	id := r.mustRegister()
	r.pid("self")
	if e := NewProber().Probe(id); e.Answer != Alive || !strings.Contains(e.Why, "run lock") {
		t.Errorf("evidence %+v", e)
	}
	if err := NewProber().SignalSupervisor(id, syscall.SIGTERM); err != nil {
		t.Error(err)
	}
	if rec := r.ended(); rec.Cause != CauseTerminated {
		t.Errorf("record %+v", rec)
	}
}
