package main_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"kanlog/eventlog"
	"kanlog/projection"
)

// The session that TestInject disturbs: its steps, the board that each begins
// with, and what is looked at when it is over.

// injectStep is one command of the session. Words in braces are ids.
type injectStep struct {
	name string
	from string // the board it begins with
	prep func(c *injectCase)
	args []string
	// effect tells whether what it is for is recorded; nil: it records nothing,
	// or more than one thing.
	effect func(c *injectCase, v projection.View) (bool, error)
	// repeatable: done again it finds that it is done.
	repeatable bool
	// same: it prints the same whenever it succeeds.
	same bool
	// found is the exit code of doing again what is done, beside 0.
	found int
	// lines: each line that it prints says that a card is done.
	lines bool
}

const (
	emptyHome = "empty"
	someBoard = "board" // cards for everything
	claimed   = "claimed"
)

func statusIs(card, status string) func(*injectCase, projection.View) (bool, error) {
	return func(c *injectCase, v projection.View) (bool, error) {
		t, err := v.MustTask(c.b.ids[card])
		return err == nil && t.Status == status, err
	}
}

var injectSteps = []*injectStep{
	{name: "init", from: emptyHome, args: []string{"init"}, repeatable: true,
		effect: func(*injectCase, projection.View) (bool, error) { return true, nil }},
	{name: "first-create", from: emptyHome, args: []string{"create", "child", "--key", "child", "--body", "of the card"}, repeatable: true, effect: childIsThere},
	{name: "create", from: someBoard, args: []string{"create", "child", "--key", "child", "--body", "of the card", "--parent", "{free}"}, repeatable: true, effect: childIsThere},
	{name: "list", from: someBoard, args: []string{"list", "--json"}, same: true},
	{name: "show", from: someBoard, args: []string{"show", "{free}", "--json"}, same: true},
	{name: "claim", from: someBoard, args: []string{"claim", "{free}", "--as", "ann"}, effect: statusIs("free", projection.Running)},
	{name: "comment", from: someBoard, args: []string{"comment", "{free}", "use the staging key"},
		effect: func(c *injectCase, v projection.View) (bool, error) {
			list, err := v.Comments(c.b.ids["free"])
			return len(list) > 0, err
		}},
	{name: "complete", from: claimed, args: []string{"complete", "{free}", "--summary", "by hand"}, effect: statusIs("free", projection.Done)},
	// One process, two commits: after an unknown outcome of the first there must
	// not be a second.
	{name: "complete-both", from: claimed, args: []string{"complete", "{free}", "{spare}"}, lines: true, found: 4},
	{name: "dispatch", from: someBoard, args: []string{"dispatch", "--json", "--id", "{good}"}},
	{name: "dispatch-crash", from: someBoard, prep: func(c *injectCase) { c.assign("bad") }, args: []string{"dispatch", "--json"}},
	{name: "tick-books", from: someBoard, prep: killedBeforeBooking, args: []string{"dispatch", "--json", "--max", "0"}},
	{name: "reclaim", from: someBoard, prep: workerAsleep, args: []string{"reclaim", "{sleepy}", "--reason", "not this one"}, repeatable: false,
		effect: func(c *injectCase, v projection.View) (bool, error) {
			runs, err := v.Runs(c.b.ids["sleepy"])
			return len(runs) > 0 && (runs[0].EndRequestedAt != 0 || !runs[0].Open()), err
		}},
	{name: "rebuild", from: claimed, args: []string{"rebuild"}, same: true},
	{name: "verify", from: claimed, args: []string{"verify"}, same: true},
}

func childIsThere(_ *injectCase, v projection.View) (bool, error) {
	list, err := v.TasksAfter("", 100)
	n := 0
	for _, t := range list {
		if t.Key == "child" {
			n++
		}
	}
	if n > 1 {
		err = fmt.Errorf("%d cards with one key", n)
	}
	return n == 1, err
}

// killedBeforeBooking leaves a crashed run whose supervisor died with the record
// written and the end not booked.
func killedBeforeBooking(c *injectCase) {
	c.assign("bad")
	cmd := c.command(context.Background(), []string{"kanlog", "dispatch", "--id", c.b.ids["bad"]})
	cmd.Env = append(cmd.Env, "KANLOG_FAILPOINT=supervise.recorded=kill")
	if out, err := cmd.CombinedOutput(); err != nil {
		c.b.t.Fatalf("dispatch: %v\n%s", err, out)
	}
	c.quiet()
}

// assign gives a card to the profile of its name. Not before a step needs it:
// each card that runs makes the end of every case longer.
func (c *injectCase) assign(card string) {
	if code, out, said := c.kanlog("assign", c.b.ids[card], card); code != 0 {
		c.b.t.Fatalf("assign: exit %d: %s%s", code, out, said)
	}
}

// workerAsleep leaves a live worker.
func workerAsleep(c *injectCase) {
	c.assign("sleepy")
	if code, out, said := c.kanlog("dispatch", "--id", c.b.ids["sleepy"]); code != 0 {
		c.b.t.Fatalf("dispatch: exit %d: %s%s", code, out, said)
	}
	// Until then it could be ended before it knows that it was ended once.
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		if _, err := os.Stat(filepath.Join(c.dir, "tried."+c.b.ids["sleepy"])); err == nil {
			return
		}
	}
	c.b.t.Errorf("the worker does not get to sleep")
}

// A worker holds a lock while any process of its run lives: the kernel says then
// whether two runs of a card ever overlap. The lock is asked for once.
const injectWorker = `exec 9>>"$B/lock.$KANLOG_TASK"
flock -n -E 33 9
[ $? = 33 ] && echo "OVERLAP $KANLOG_TASK $KANLOG_RUN" >>"$B/starts"
echo "START $KANLOG_TASK $KANLOG_RUN" >>"$B/starts"
`

var injectFiles = map[string]string{
	"home/config.toml": `retry_backoff = "0s"
rate_limit_cooldown = "1s"
kill_grace = "1s"
launch_grace = "20s"
failure_limit = 9
max_in_progress = 4
[profiles.good]
command = ["sh", "-c", ". \"$B/good.sh\""]
[profiles.bad]
command = ["sh", "-c", ". \"$B/bad.sh\""]
[profiles.sleepy]
command = ["sh", "-c", ". \"$B/sleepy.sh\""]
`,
	"good.sh": injectWorker + "kanlog heartbeat --note working || exit 9\nkanlog complete --summary 'well done' || exit 9\n",
	"bad.sh": injectWorker + "[ -e \"$B/tried.$KANLOG_TASK\" ] || { : >\"$B/tried.$KANLOG_TASK\"; exit 7; }\n" +
		"kanlog complete --summary 'the second time' || exit 9\n",
	"sleepy.sh": injectWorker + "[ -e \"$B/tried.$KANLOG_TASK\" ] || { : >\"$B/tried.$KANLOG_TASK\"; exec sleep 600; }\n" +
		"kanlog complete --summary 'awake' || exit 9\n",
}

// injectBench holds the boards that cases begin with.
type injectBench struct {
	t     *testing.T
	dir   string
	ids   map[string]string
	usual map[string]string // what a step prints without a fault
	made  atomic.Int64
}

// injectCase is one disturbed session.
type injectCase struct {
	b      *injectBench
	dir    string
	code   int
	struck bool // anything of the program was hit
	there  bool
	faults []string
}

func newInjectBench(t *testing.T) *injectBench {
	b := &injectBench{t: t, dir: t.TempDir(), ids: map[string]string{}, usual: map[string]string{}}
	c := &injectCase{b: b, dir: filepath.Join(b.dir, emptyHome)}
	for name, text := range injectFiles {
		path := filepath.Join(c.dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	must := func(args ...string) string {
		code, out, said := c.kanlog(args...)
		if code != 0 {
			t.Fatalf("%v: exit %d: %s%s", args, code, out, said)
		}
		return strings.TrimSpace(out)
	}
	c = b.copyOf(emptyHome, someBoard)
	must("init")
	b.ids["free"] = must("create", "for anybody", "--body", strings.Repeat("what is to be done ", 50))
	b.ids["spare"] = must("create", "for anybody else")
	b.ids["good"] = must("create", "well done", "--assignee", "good")
	b.ids["bad"] = must("create", "fails once")
	b.ids["sleepy"] = must("create", "sleeps once")
	c = b.copyOf(someBoard, claimed)
	must("claim", b.ids["free"], "--as", "ann")
	return b
}

func (b *injectBench) copyOf(from, to string) *injectCase {
	dir := filepath.Join(b.dir, to)
	if err := os.CopyFS(dir, os.DirFS(filepath.Join(b.dir, from))); err != nil {
		b.t.Fatal(err)
	}
	return &injectCase{b: b, dir: dir}
}

// begin is a fresh board, ready for the step.
func (b *injectBench) begin(step *injectStep) *injectCase {
	c := b.copyOf(step.from, fmt.Sprintf("case-%d", b.made.Add(1)))
	if step.prep != nil {
		step.prep(c)
	}
	return c
}

func (c *injectCase) end() {
	if len(c.faults) > 0 {
		c.fault("kept: %s", c.dir)
	}
	killStrays(c.b.t, c.dir+"/")
	if len(c.faults) == 0 {
		os.RemoveAll(c.dir)
	}
}

// count runs a step without a fault and returns its calls.
func (b *injectBench) count(step *injectStep) []call {
	c := b.begin(step)
	defer c.end()
	log := filepath.Join(c.dir, "trace")
	code, out, said := c.exec(traced(log, "", append([]string{"kanlog"}, c.expand(step.args)...)))
	if code != 0 {
		b.t.Fatalf("%s, without a fault: exit %d: %s%s", step.name, code, out, said)
	}
	b.usual[step.name] = out
	calls, err := readTrace(log)
	if err != nil || len(calls) == 0 {
		b.t.Fatalf("%s: strace left no log: %v", step.name, err)
	}
	if step.effect != nil && !c.effect(step) {
		b.t.Fatalf("%s, without a fault, has no effect: %s%s", step.name, out, said)
	}
	return calls
}

func (c *injectCase) fault(format string, args ...any) {
	c.faults = append(c.faults, strings.TrimSpace(fmt.Sprintf(format, args...)))
}

var braces = regexp.MustCompile(`^\{(\w+)\}$`)

func (c *injectCase) expand(args []string) []string {
	out := make([]string, len(args))
	for i, a := range args {
		if out[i] = a; braces.MatchString(a) {
			out[i] = c.b.ids[a[1:len(a)-1]]
		}
	}
	return out
}

func (c *injectCase) command(ctx context.Context, argv []string) *exec.Cmd {
	argv = append([]string(nil), argv...)
	for i, a := range argv {
		if a == "kanlog" && (i == 0 || argv[i-1] == "--") {
			argv[i] = filepath.Join(binDir, "kanlog")
		}
	}
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Dir = c.dir
	cmd.WaitDelay = time.Second
	// One processor: the calls of a process stay mostly on one thread, so that
	// the n-th call is the same one each time.
	cmd.Env = []string{"PATH=" + binDir + ":" + os.Getenv("PATH"), "HOME=" + c.dir, "USER=tester", "TZ=UTC",
		"B=" + c.dir, "KANLOG_HOME=" + filepath.Join(c.dir, "home"), "KANLOG_LOCK_TIMEOUT=3s", "GOMAXPROCS=1"}
	return cmd
}

// exec runs a command; what does not end in time is a fault.
func (c *injectCase) exec(argv []string) (code int, out, said string) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	cmd := c.command(ctx, argv)
	var o, e bytes.Buffer
	cmd.Stdout, cmd.Stderr = &o, &e
	_ = cmd.Run()
	if ctx.Err() != nil {
		c.fault("%v does not end", argv)
	}
	return cmd.ProcessState.ExitCode(), o.String(), e.String()
}

func (c *injectCase) kanlog(args ...string) (code int, out, said string) {
	return c.exec(append([]string{"kanlog"}, args...))
}

func (c *injectCase) board() string { return filepath.Join(c.dir, "home", "boards", "default") }

func (c *injectCase) store() *projection.Store {
	return projection.Open(c.board(), eventlog.Options{LockTimeout: patience})
}

// view reads the board; without one nothing is there.
func (c *injectCase) view(fn func(projection.View) error) {
	if err := c.store().View(fn); err != nil && !errors.Is(err, eventlog.ErrNoBoard) {
		c.fault("reading the board: %v", err)
	}
}

func (c *injectCase) effect(step *injectStep) (there bool) {
	c.view(func(v projection.View) (err error) {
		there, err = step.effect(c, v)
		return err
	})
	return there
}

// doneAsSaid holds "ID: done" lines against the board.
func (c *injectCase) doneAsSaid(out string) {
	c.view(func(v projection.View) error {
		for line := range strings.Lines(out) {
			id, _, _ := strings.Cut(line, ":")
			if t, err := v.MustTask(id); err != nil || t.Status != projection.Done {
				c.fault("it said %q, and that is not so: %v", line, err)
			}
		}
		return nil
	})
}

// history is the hash of each commit.
func (c *injectCase) history() (hashes [][32]byte) {
	err := c.store().Commits(1, func(m eventlog.Commit) error {
		hashes = append(hashes, m.Hash)
		return nil
	})
	if err != nil && !errors.Is(err, eventlog.ErrNoBoard) {
		c.fault("reading the log: %v", err)
	}
	return hashes
}

// sameHistory: what was acknowledged before is there, in its place.
func (c *injectCase) sameHistory(before [][32]byte) {
	after := c.history()
	for i, h := range before {
		if i >= len(after) || after[i] != h {
			c.fault("commit %d of %d is not there any more", i+1, len(before))
			return
		}
	}
}

func (c *injectCase) verify() {
	rep, err := c.store().Verify()
	if err != nil && !errors.Is(err, eventlog.ErrNoBoard) || rep.Problem != "" {
		c.fault("verify: %v %+v", err, rep)
	}
}

// drained: every card that has a profile is done and nothing of it runs.
func (c *injectCase) drained() (done bool) {
	c.view(func(v projection.View) error {
		list, err := v.TasksAfter("", 100)
		if err != nil {
			return err
		}
		done = true
		for _, t := range list {
			if t.Assignee != "" && (t.Status != projection.Done || t.Worker != 0) {
				done = false
			}
		}
		return nil
	})
	return done
}

// starts: no command ran without its run being on record, beside another run of
// its card, or after the card was completed.
func (c *injectCase) starts() {
	completed, spawned := map[string]uint64{}, map[uint64]bool{}
	err := c.store().Commits(1, func(m eventlog.Commit) error {
		for _, e := range m.Events {
			switch e.Data.(type) {
			case *eventlog.Spawned:
				spawned[e.Run] = true
			case *eventlog.Completed:
				if completed[e.Task] != 0 {
					c.fault("%s was completed twice", e.Task)
				}
				completed[e.Task] = e.Run
			}
		}
		return nil
	})
	if err != nil && !errors.Is(err, eventlog.ErrNoBoard) {
		c.fault("reading the log: %v", err)
	}
	text, _ := os.ReadFile(filepath.Join(c.dir, "starts"))
	seen := map[uint64]bool{}
	for line := range strings.Lines(string(text)) {
		f := strings.Fields(line)
		run, _ := strconv.ParseUint(f[len(f)-1], 10, 64)
		switch {
		case f[0] == "OVERLAP":
			c.fault("two runs of %s at once:\n%s", f[1], text)
		case seen[run]:
			c.fault("run %d was started twice:\n%s", run, text)
		case !spawned[run]:
			c.fault("run %d was started without being on record", run)
		case completed[f[1]] != 0 && run > completed[f[1]]:
			c.fault("%s was started again after it was completed by run %d:\n%s", f[1], completed[f[1]], text)
		}
		seen[run] = f[0] == "START"
	}
}

// outputs is what runs wrote.
func (c *injectCase) outputs() string {
	var all strings.Builder
	logs, _ := filepath.Glob(filepath.Join(c.board(), "runs", "*", "*.log"))
	for _, path := range logs {
		b, _ := os.ReadFile(path)
		all.Write(b)
	}
	return all.String()
}

// quiet waits until no process of the case is left.
func (c *injectCase) quiet() {
	var left string
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		if left = c.processes(); left == "" {
			return
		}
	}
	c.fault("left over: %s", left)
}

func (c *injectCase) processes() string {
	environs, _ := filepath.Glob("/proc/[0-9]*/environ")
	for _, path := range environs {
		env, err := os.ReadFile(path)
		if err == nil && bytes.Contains(env, []byte("B="+c.dir+"\x00")) {
			line, _ := os.ReadFile(filepath.Join(filepath.Dir(path), "cmdline"))
			return filepath.Dir(path) + " " + strings.ReplaceAll(string(line), "\x00", " ")
		}
	}
	return ""
}
