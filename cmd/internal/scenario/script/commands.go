package script

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

// The commands that look at output and wait; their meaning is in scenario.Words.

// jq EXPR [WANT]: queries the last command's stdout. Without WANT the result
// must be true.
func (b *Bench) jq(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) < 1 || len(args) > 2 {
		ts.Fatalf("usage: jq EXPR [WANT]")
	}
	out := ts.ReadFile("stdout")
	got, err := Query(args[0], []byte(out))
	ts.Check(err)
	ok := Truthy(got)
	if len(args) == 2 {
		ok = got == args[1]
	}
	if ok == neg {
		ts.Fatalf("jq %s: got %q, want %q (negated: %v) in:\n%s", args[0], got, strings.Join(args[1:], ""), neg, out)
	}
}

// capture NAME [EXPR]: puts the last stdout, or the result of a query on it,
// into an environment variable.
func (b *Bench) capture(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 1 {
		ts.Fatalf("usage: capture NAME [EXPR]")
	}
	out := strings.TrimSpace(ts.ReadFile("stdout"))
	if len(args) == 2 {
		var err error
		out, err = Query(args[1], []byte(out))
		ts.Check(err)
	}
	if out == "" {
		ts.Fatalf("capture %s: nothing there", args[0])
	}
	ts.Setenv(args[0], out)
}

// await EXPR COMMAND...: repeats a command until a query on its stdout is true.
func (b *Bench) await(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: await EXPR COMMAND...")
	}
	waiting := b.wait()
	var last string
	for waiting() {
		out, err := b.CommandOf(ts, args[1:]).Output()
		if err == nil {
			var got string
			if got, err = Query(args[0], out); err == nil && Truthy(got) {
				return
			}
		}
		last = fmt.Sprintf("%v\n%s", err, out)
		time.Sleep(20 * time.Millisecond)
	}
	ts.Fatalf("await %s: not true within %s; the last answer of %v was: %s", args[0], b.Patience, args[1:], last)
}

// drain [EXPR]: plain ticks until every card is done, or until a query on
// list --json is true.
func (b *Bench) drain(ts *testscript.TestScript, neg bool, args []string) {
	expr := `all(.[]; .status == "done")`
	if len(args) == 1 {
		expr = args[0]
	}
	waiting := b.wait()
	var last []byte
	for waiting() {
		if out, err := b.CommandOf(ts, []string{"kanlog", "dispatch"}).CombinedOutput(); err != nil {
			ts.Fatalf("dispatch: %v\n%s", err, out)
		}
		out, err := b.CommandOf(ts, []string{"kanlog", "list", "--json"}).Output()
		ts.Check(err)
		got, err := Query(expr, out)
		ts.Check(err)
		if Truthy(got) {
			return
		}
		last = out
		time.Sleep(50 * time.Millisecond)
	}
	events, _ := b.CommandOf(ts, []string{"kanlog", "events"}).Output()
	ts.Fatalf("drain: %s not true within %s:\n%s\n%s", expr, b.Patience, last, events)
}

// code N COMMAND...: the command exits with N. Its output is checked by the
// stdout and stderr of testscript's exec only if N is 0, so code keeps it in
// the files code.out and code.err.
func (b *Bench) code(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: code N COMMAND...")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	cmd := b.CommandOf(ts, args[1:])
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
func (b *Bench) waitGone(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: waitgone PID")
	}
	pid, err := strconv.Atoi(strings.TrimSpace(args[0]))
	ts.Check(err)
	waiting := b.wait()
	for waiting() {
		b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if err != nil {
			return
		}
		if rest := b[bytes.LastIndexByte(b, ')')+1:]; len(rest) > 1 && (rest[1] == 'Z' || rest[1] == 'X') {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	ts.Fatalf("process %d is still there after %s", pid, b.Patience)
}

// parallel N COMMAND...: runs a command N times at once; all exit codes, one a
// line, go to the file parallel.codes, and {i} in an argument is the number of
// the copy. Fails if one could not be started or does not end.
func (b *Bench) parallel(ts *testscript.TestScript, neg bool, args []string) {
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
		cmd := b.CommandOf(ts, argv)
		out := new(bytes.Buffer)
		cmd.Stdout, cmd.Stderr = out, out
		ts.Check(cmd.Start())
		cmds, outs = append(cmds, cmd), append(outs, out)
	}
	var codes, all strings.Builder
	for i, cmd := range cmds {
		done := time.AfterFunc(b.Patience, func() { _ = cmd.Process.Kill() })
		_ = cmd.Wait()
		done.Stop()
		fmt.Fprintln(&codes, cmd.ProcessState.ExitCode())
		all.Write(outs[i].Bytes())
	}
	ts.Check(os.WriteFile(ts.MkAbs("parallel.codes"), []byte(codes.String()), 0o600))
	ts.Check(os.WriteFile(ts.MkAbs("parallel.out"), []byte(all.String()), 0o600))
}
