package script

import (
	"os/exec"
	"slices"
	"strings"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

// The commands that speak of cards.

func (b *Bench) kanlog(ts *testscript.TestScript, neg bool, args []string) {
	switch {
	case len(args) == 0:
		ts.Fatalf("usage: [!] kanlog VERB...")
	case strings.HasPrefix(args[len(args)-1], "&"):
		ts.Fatalf("kanlog runs to its end here; exec kanlog ... & goes on beside what follows")
	}
	err := ts.Exec(b.Program, args...)
	switch {
	case err != nil && !neg:
		ts.Fatalf("kanlog %s: %v", args[0], err)
	case err == nil && neg:
		ts.Fatalf("kanlog %s: it was to fail, and did not", args[0])
	}
}

// ask is what a verb prints; it has to succeed.
func (b *Bench) ask(ts *testscript.TestScript, args ...string) []byte {
	cmd := b.CommandOf(ts, append([]string{"kanlog"}, args...))
	out, err := cmd.Output()
	if err == nil {
		return out
	}
	var said string
	if exit, ok := err.(*exec.ExitError); ok {
		said = "\n" + strings.TrimSpace(string(exit.Stderr))
	}
	ts.Fatalf("kanlog %s: %v%s", strings.Join(args, " "), err, said)
	return nil
}

func (b *Bench) askFor(ts *testscript.TestScript, expr string, args ...string) string {
	got, err := Query(expr, b.ask(ts, args...))
	ts.Check(err)
	return got
}

func (b *Bench) status(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) < 2 {
		ts.Fatalf("usage: [!] status ID STATUS...")
	}
	got := b.askFor(ts, ".task.status, .why // empty", "show", args[0], "--json")
	is, why, _ := strings.Cut(got, "\n")
	if slices.Contains(args[1:], is) != neg {
		return
	}
	if why != "" {
		why = ": " + why
	}
	if neg {
		ts.Fatalf("%s is %s%s", args[0], is, why)
	}
	ts.Fatalf("%s is %s and not %s%s", args[0], is, strings.Join(args[1:], " or "), why)
}

func (b *Bench) outcome(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) < 2 {
		ts.Fatalf("usage: [!] outcome ID OUTCOME...")
	}
	got := strings.Fields(b.askFor(ts, `.[] | .outcome // "open"`, "runs", args[0], "--json"))
	if slices.Equal(got, args[1:]) != neg {
		return
	}
	if neg {
		ts.Fatalf("the runs of %s ended like this: %s", args[0], strings.Join(got, " "))
	}
	table := b.ask(ts, "runs", args[0])
	if len(got) == 0 {
		got = []string{"never started"}
	}
	ts.Fatalf("the runs of %s: %s and not %s\n%s", args[0], strings.Join(got, " "), strings.Join(args[1:], " "), table)
}

// settle is over when nothing ran, a tick then found nothing to do, and nothing runs
// after it: what waits then, waits for the clock or for somebody. A claim by hand is
// somebody's.
func (b *Bench) settle(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 0 {
		ts.Fatalf("usage: settle")
	}
	idle := func() bool {
		return b.askFor(ts, `all(.[]; .state == "manual")`, "ps", "--json") == "true"
	}
	const nothing = `.skipped_locked | not`
	const done = `[.spawned, .spawn_failed, .promoted, .reclaimed, .crashed, .rate_limited, .protocol_violations, .timed_out, .stale] | all(length == 0)`
	ticks := 0
	for waiting := b.wait(); waiting(); time.Sleep(20 * time.Millisecond) {
		before := idle()
		ticks++
		quiet := b.askFor(ts, "("+nothing+") and ("+done+")", "dispatch", "--json") == "true"
		if before && quiet && idle() {
			ts.Logf("settled after %d ticks\n%s", ticks, b.ask(ts, "list"))
			return
		}
	}
	ts.Fatalf("settle: something still runs after %d ticks:\n%s", ticks, b.ask(ts, "ps"))
}
