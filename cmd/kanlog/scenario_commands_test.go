package main_test

import (
	"os/exec"
	"path/filepath"
	"sort"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"

	"kanlog/cmd/internal/scenario/script"
)

// The commands that only the scenarios of this repository have; testdata/README.md has
// them all.

// bench is what the commands do their work with that everybody's scenarios have.
func bench() *script.Bench {
	return &script.Bench{
		Program: filepath.Join(binDir, "kanlog"), Patience: patience,
		Vars: append([]string{"PATH", "HOME", "USER", "TZ", "B", "TMPDIR"}, kanlogVars...),
	}
}

// command is a process in the scenario's directory and environment.
func command(ts *testscript.TestScript, args []string) *exec.Cmd {
	return bench().CommandOf(ts, args)
}

var kanlogVars = []string{
	"KANLOG_HOME", "KANLOG_BOARD", "KANLOG_CLAIM_TTL", "KANLOG_LAUNCH_GRACE", "KANLOG_KILL_GRACE", "KANLOG_TERMINAL_GRACE",
	"KANLOG_RATE_LIMIT_COOLDOWN", "KANLOG_HEARTBEAT_STALE", "KANLOG_RECLAIM_DEFER", "KANLOG_FAILURE_LIMIT",
	"KANLOG_VIOLATION_LIMIT", "KANLOG_RETRY_BACKOFF", "KANLOG_LOCK_TIMEOUT", "KANLOG_CLOCK_OFFSET", "KANLOG_FAILPOINT",
	"KANLOG_TASK", "KANLOG_RUN",
}

// bills FILE: every card has exactly one line with its id in FILE, and there
// is no other line.
func cmdBills(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: bills FILE")
	}
	out, err := command(ts, []string{"kanlog", "list", "--json", "--archived"}).Output()
	ts.Check(err)
	ids, err := script.Query(".[].id", out)
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
