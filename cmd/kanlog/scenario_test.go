package main_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"sort"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/itchyny/gojq"
	"github.com/rogpeppe/go-internal/testscript"

	"kanlog/eventlog"
	"kanlog/projection"
)

// The scenarios under testdata run against the real program with real worker
// processes. testdata/README.md says how to write one.

var update = flag.Bool("update", false, "write golden files in scenarios anew; read the diff before you commit it")

// binDir holds the program under test.
var binDir string

func TestMain(m *testing.M) {
	flag.Parse()
	if signal.Ignored(syscall.SIGHUP) {
		// Under nohup: what is ignored here would be ignored in what is tested; what
		// is caught is not.
		signal.Notify(make(chan os.Signal, 1), syscall.SIGHUP)
	}
	os.Exit(func() int {
		dir, err := os.MkdirTemp("", "kanlog-bin-")
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		defer os.RemoveAll(dir)
		cmd := exec.Command("go", "build", "-o", filepath.Join(dir, "kanlog"), "kanlog/cmd/kanlog")
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
		if out, err := cmd.CombinedOutput(); err != nil {
			fmt.Fprintf(os.Stderr, "building the program: %v\n%s", err, out)
			return 1
		}
		binDir = dir
		return m.Run()
	}())
}

// patience bounds every wait of a scenario. It is long, since a slow machine
// must not fail a test; a condition that comes true ends the wait at once.
const patience = 90 * time.Second

func TestScenarios(t *testing.T) {
	t.Cleanup(func() { t.Logf("every prefix: %s", &prefixes) })
	testscript.Run(t, testscript.Params{
		Dir:                 filepath.Join("..", "..", "testdata"),
		UpdateScripts:       *update,
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Setup: func(env *testscript.Env) error {
			env.Setenv("PATH", binDir+string(filepath.ListSeparator)+env.Getenv("PATH"))
			env.Setenv("KANLOG_HOME", filepath.Join(env.WorkDir, "home"))
			env.Setenv("B", env.WorkDir)
			env.Setenv("BOARD", filepath.Join(env.WorkDir, "home", "boards", "default"))
			env.Setenv("USER", "tester")
			env.Setenv("TZ", "UTC")
			work := env.WorkDir
			env.Defer(func() {
				killStrays(t, work)
				checkBoards(t, filepath.Base(work), work)
			})
			return nil
		},
		Cmds: map[string]func(ts *testscript.TestScript, neg bool, args []string){
			"jq":         cmdJQ,
			"await":      cmdAwait,
			"drain":      cmdDrain,
			"bills":      cmdBills,
			"apart":      cmdApart,
			"capture":    cmdCapture,
			"code":       cmdCode,
			"waitgone":   cmdWaitGone,
			"parallel":   cmdParallel,
			"supervisor": cmdSupervisor,
			"held":       cmdHeld, "release": cmdRelease, "killing": cmdKilling, "forge": cmdForge, "changerow": cmdChangeRow, "damage": cmdDamage, "refusedby": cmdRefusedBy,
		},
	})
}

// checkBoards proves for every board that a scenario leaves behind that its
// tables follow from its log, byte for byte, and that verify finds nothing.
// A scenario that damages a store on purpose says so with a file named
// damaged-on-purpose.
func checkBoards(t *testing.T, name, work string) {
	if _, err := os.Stat(filepath.Join(work, "damaged-on-purpose")); err == nil {
		return
	}
	stores, _ := filepath.Glob(filepath.Join(work, "*", "boards", "*", "board.db"))
	for _, db := range stores {
		dir := filepath.Dir(db)
		store := projection.Open(dir, eventlog.Options{LockTimeout: patience})
		rep, err := store.Verify()
		if err != nil || rep.Problem != "" {
			t.Errorf("%s: verify of %s: %v %s", name, dir, err, rep.Problem)
			continue
		}
		before := dumpTables(t, dir)
		if err := store.Rebuild(); err != nil {
			t.Errorf("%s: rebuild of %s: %v", name, dir, err)
			continue
		}
		if after := dumpTables(t, dir); before != after {
			t.Errorf("%s: the tables of %s differ after a rebuild:\n%s", name, dir, firstDifference(before, after))
		}
		checkPrefixes(t, name, store)
	}
}

func dumpTables(t *testing.T, dir string) string {
	var b strings.Builder
	err := eventlog.Open(dir, eventlog.Options{LockTimeout: patience}).View(func(tx *eventlog.Tx) error {
		names := tx.Tables()
		sort.Strings(names)
		for _, name := range names {
			tx.Scan(name, nil, func(k, v []byte) bool {
				fmt.Fprintf(&b, "%s %q %q\n", name, k, v)
				return true
			})
		}
		return nil
	})
	if err != nil {
		t.Errorf("dump of %s: %v", dir, err)
	}
	return b.String()
}

func firstDifference(a, b string) string {
	x, y := strings.Split(a, "\n"), strings.Split(b, "\n")
	for i := range max(len(x), len(y)) {
		var l, r string
		if i < len(x) {
			l = x[i]
		}
		if i < len(y) {
			r = y[i]
		}
		if l != r {
			return "stored:  " + l + "\nrebuilt: " + r
		}
	}
	return "no difference"
}

// killStrays ends every process that a scenario left: found by the home in its
// environment, or, if it wiped that, by the scenario's directory as its own or
// in its command line. A scenario that must not leave any checks that itself.
func killStrays(t *testing.T, work string) {
	if runtime.GOOS != "linux" {
		return
	}
	ours := func(proc string) bool {
		for _, file := range []string{"environ", "cmdline"} {
			if b, err := os.ReadFile(filepath.Join(proc, file)); err == nil && bytes.Contains(b, []byte(work+"/")) {
				return true
			}
		}
		cwd, err := os.Readlink(filepath.Join(proc, "cwd"))
		return err == nil && strings.HasPrefix(cwd+"/", work+"/")
	}
	for range 50 {
		found := false
		procs, _ := filepath.Glob("/proc/[0-9]*")
		for _, proc := range procs {
			pid, _ := strconv.Atoi(filepath.Base(proc))
			if pid > 1 && pid != os.Getpid() && ours(proc) {
				found = true
				_ = syscall.Kill(pid, syscall.SIGKILL)
			}
		}
		if !found {
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
	t.Errorf("strays of %s do not go away", work)
}

// query runs a jq expression and returns its results, one a line, strings raw.
func query(expr string, input []byte) (string, error) {
	q, err := gojq.Parse(expr)
	if err != nil {
		return "", fmt.Errorf("jq %s: %w", expr, err)
	}
	var values []any
	dec := json.NewDecoder(bytes.NewReader(input))
	dec.UseNumber()
	for dec.More() {
		var v any
		if err := dec.Decode(&v); err != nil {
			return "", fmt.Errorf("not JSON: %w in %q", err, input)
		}
		values = append(values, plain(v))
	}
	// Several values, as events --json prints them, are queried as one array.
	var in any
	if len(values) == 1 {
		in = values[0]
	} else {
		in = values
	}
	var lines []string
	it := q.Run(in)
	for {
		v, ok := it.Next()
		if !ok {
			return strings.Join(lines, "\n"), nil
		}
		if err, bad := v.(error); bad {
			return "", fmt.Errorf("jq %s: %w", expr, err)
		}
		if s, ok := v.(string); ok {
			lines = append(lines, s)
			continue
		}
		b, err := gojq.Marshal(v)
		if err != nil {
			return "", err
		}
		lines = append(lines, string(b))
	}
}

// plain turns json.Number into what gojq takes.
func plain(v any) any {
	switch v := v.(type) {
	case json.Number:
		if n, err := v.Int64(); err == nil {
			return int(n)
		}
		f, _ := v.Float64()
		return f
	case []any:
		for i := range v {
			v[i] = plain(v[i])
		}
	case map[string]any:
		for k := range v {
			v[k] = plain(v[k])
		}
	}
	return v
}

func truthy(s string) bool { return s != "" && s != "false" && s != "null" }

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
