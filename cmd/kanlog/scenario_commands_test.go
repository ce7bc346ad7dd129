package main_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sort"
	"strconv"
	"strings"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

// The commands of scenario files beside those of testscript; testdata/README.md has them.

// jq EXPR [WANT]: queries the last command's stdout. Without WANT the result
// must be true.
func cmdJQ(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) < 1 || len(args) > 2 {
		ts.Fatalf("usage: jq EXPR [WANT]")
	}
	out := ts.ReadFile("stdout")
	got, err := query(args[0], []byte(out))
	ts.Check(err)
	ok := truthy(got)
	if len(args) == 2 {
		ok = got == args[1]
	}
	if ok == neg {
		ts.Fatalf("jq %s: got %q, want %q (negated: %v) in:\n%s", args[0], got, strings.Join(args[1:], ""), neg, out)
	}
}

// capture NAME [EXPR]: puts the last stdout, or the result of a query on it,
// into an environment variable.
func cmdCapture(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 1 {
		ts.Fatalf("usage: capture NAME [EXPR]")
	}
	out := strings.TrimSpace(ts.ReadFile("stdout"))
	if len(args) == 2 {
		var err error
		out, err = query(args[1], []byte(out))
		ts.Check(err)
	}
	if out == "" {
		ts.Fatalf("capture %s: nothing there", args[0])
	}
	ts.Setenv(args[0], out)
}

// command is a process in the scenario's directory and environment.
func command(ts *testscript.TestScript, args []string) *exec.Cmd {
	name := args[0]
	if name == "kanlog" {
		name = filepath.Join(binDir, "kanlog")
	}
	cmd := exec.Command(name, args[1:]...)
	cmd.Dir = ts.MkAbs(".")
	for _, k := range []string{"PATH", "HOME", "USER", "TZ", "B", "TMPDIR"} {
		cmd.Env = append(cmd.Env, k+"="+ts.Getenv(k))
	}
	for _, k := range kanlogVars {
		if v := ts.Getenv(k); v != "" {
			cmd.Env = append(cmd.Env, k+"="+v)
		}
	}
	return cmd
}

var kanlogVars = []string{
	"KANLOG_HOME", "KANLOG_BOARD", "KANLOG_CLAIM_TTL", "KANLOG_LAUNCH_GRACE", "KANLOG_KILL_GRACE", "KANLOG_TERMINAL_GRACE",
	"KANLOG_RATE_LIMIT_COOLDOWN", "KANLOG_HEARTBEAT_STALE", "KANLOG_RECLAIM_DEFER", "KANLOG_FAILURE_LIMIT",
	"KANLOG_VIOLATION_LIMIT", "KANLOG_RETRY_BACKOFF", "KANLOG_LOCK_TIMEOUT", "KANLOG_CLOCK_OFFSET", "KANLOG_FAILPOINT",
	"KANLOG_TASK", "KANLOG_RUN",
}

// await EXPR COMMAND...: repeats a command until a query on its stdout is true.
func cmdAwait(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: await EXPR COMMAND...")
	}
	deadline := time.Now().Add(patience)
	var last string
	for time.Now().Before(deadline) {
		out, err := command(ts, args[1:]).Output()
		if err == nil {
			var got string
			if got, err = query(args[0], out); err == nil && truthy(got) {
				return
			}
		}
		last = fmt.Sprintf("%v\n%s", err, out)
		time.Sleep(20 * time.Millisecond)
	}
	ts.Fatalf("await %s: not true within %s; the last answer of %v was: %s", args[0], patience, args[1:], last)
}

// drain [EXPR]: plain ticks until every card is done, or until a query on
// list --json is true.
func cmdDrain(ts *testscript.TestScript, neg bool, args []string) {
	expr := `all(.[]; .status == "done")`
	if len(args) == 1 {
		expr = args[0]
	}
	deadline := time.Now().Add(patience)
	var last []byte
	for time.Now().Before(deadline) {
		if out, err := command(ts, []string{"kanlog", "dispatch"}).CombinedOutput(); err != nil {
			ts.Fatalf("dispatch: %v\n%s", err, out)
		}
		out, err := command(ts, []string{"kanlog", "list", "--json"}).Output()
		ts.Check(err)
		got, err := query(expr, out)
		ts.Check(err)
		if truthy(got) {
			return
		}
		last = out
		time.Sleep(50 * time.Millisecond)
	}
	events, _ := command(ts, []string{"kanlog", "events"}).Output()
	ts.Fatalf("drain: %s not true within %s:\n%s\n%s", expr, patience, last, events)
}

// bills FILE: every card has exactly one line with its id in FILE, and there
// is no other line.
func cmdBills(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: bills FILE")
	}
	out, err := command(ts, []string{"kanlog", "list", "--json", "--archived"}).Output()
	ts.Check(err)
	ids, err := query(".[].id", out)
	ts.Check(err)
	want := strings.Fields(ids)
	got := strings.Fields(ts.ReadFile(args[0]))
	sort.Strings(want)
	sort.Strings(got)
	if len(want) == 0 || strings.Join(want, " ") != strings.Join(got, " ") {
		ts.Fatalf("bills: cards %v\nbilled    %v", want, got)
	}
}

// apart FILE: FILE holds lines "START card run pid" and "END card run pid" that
// workers appended; no two runs of a card may overlap. A run without an END was
// killed: it overlaps if the next START came while its process was alive, which
// its worker reports with "ALIVE card run pid".
func cmdApart(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: apart FILE")
	}
	running := map[string]string{}
	starts := 0
	for i, line := range strings.Split(strings.TrimSpace(ts.ReadFile(args[0])), "\n") {
		f := strings.Fields(line)
		if len(f) < 3 {
			ts.Fatalf("apart: line %d: %q", i+1, line)
		}
		card, run := f[1], f[2]
		switch f[0] {
		case "START":
			starts++
			running[card] = run
		case "ALIVE", "END":
			if running[card] != run {
				ts.Fatalf("apart: line %d: run %s of %s is alive although run %s has started:\n%s", i+1, run, card, running[card], ts.ReadFile(args[0]))
			}
		}
	}
	if starts == 0 {
		ts.Fatalf("apart: nothing started; this proves nothing")
	}
}

// code N COMMAND...: the command exits with N. Its output is checked by the
// stdout and stderr of testscript's exec only if N is 0, so code keeps it in
// the files code.out and code.err.
func cmdCode(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: code N COMMAND...")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	cmd := command(ts, args[1:])
	var out, errb bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errb
	err = cmd.Run()
	got := cmd.ProcessState.ExitCode()
	ts.Check(os.WriteFile(ts.MkAbs("code.out"), out.Bytes(), 0o600))
	ts.Check(os.WriteFile(ts.MkAbs("code.err"), errb.Bytes(), 0o600))
	ts.Logf("[%d] %s%s", got, out.String(), errb.String())
	if got != want {
		ts.Fatalf("%v: exit %d (%v), want %d\n%s%s", args[1:], got, err, want, out.String(), errb.String())
	}
}

// waitgone PID: waits until the process is gone.
func cmdWaitGone(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: waitgone PID")
	}
	pid, err := strconv.Atoi(strings.TrimSpace(args[0]))
	ts.Check(err)
	deadline := time.Now().Add(patience)
	for time.Now().Before(deadline) {
		b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if err != nil {
			return
		}
		if rest := b[bytes.LastIndexByte(b, ')')+1:]; len(rest) > 1 && (rest[1] == 'Z' || rest[1] == 'X') {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	ts.Fatalf("process %d is still there after %s", pid, patience)
}

// parallel N COMMAND...: runs a command N times at once; all exit codes, one a
// line, go to the file parallel.codes, and {i} in an argument is the number of
// the copy. Fails if one could not be started or does not end.
func cmdParallel(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: parallel N COMMAND...")
	}
	n, err := strconv.Atoi(args[0])
	ts.Check(err)
	var cmds []*exec.Cmd
	var outs []*bytes.Buffer
	for i := range n {
		argv := make([]string, len(args)-1)
		for j, a := range args[1:] {
			argv[j] = strings.ReplaceAll(a, "{i}", strconv.Itoa(i))
		}
		cmd := command(ts, argv)
		out := new(bytes.Buffer)
		cmd.Stdout, cmd.Stderr = out, out
		ts.Check(cmd.Start())
		cmds, outs = append(cmds, cmd), append(outs, out)
	}
	var codes, all strings.Builder
	for i, cmd := range cmds {
		done := time.AfterFunc(patience, func() { _ = cmd.Process.Kill() })
		_ = cmd.Wait()
		done.Stop()
		fmt.Fprintln(&codes, cmd.ProcessState.ExitCode())
		all.Write(outs[i].Bytes())
	}
	ts.Check(os.WriteFile(ts.MkAbs("parallel.codes"), []byte(codes.String()), 0o600))
	ts.Check(os.WriteFile(ts.MkAbs("parallel.out"), []byte(all.String()), 0o600))
}
