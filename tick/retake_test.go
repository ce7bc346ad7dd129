package tick

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"kanlog/eventlog"
	"kanlog/projection"
)

// retake takes the decisions of a log once more.
func retake(t *testing.T, s *projection.Store, w WhatIf) (all []projection.Retaken) {
	t.Helper()
	past := s.Before()
	err := s.Commits(1, func(c eventlog.Commit) error {
		err := past.View(func(v projection.View) error {
			r, err := Retake(v, c, w)
			all = append(all, r)
			return err
		})
		if err != nil {
			return err
		}
		return past.Apply(c)
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// A log of every format that was ever released is folded in memory as its tables say,
// and every decision in it that can be taken once more comes out as it did.
func TestLogsOfEveryFormatAreRetaken(t *testing.T) {
	dirs, err := filepath.Glob(filepath.Join("..", "testdata", "formats", "*"))
	if err != nil || len(dirs) < eventlog.Format {
		t.Fatalf("%d stores of %d formats (%v)", len(dirs), eventlog.Format, err)
	}
	for _, dir := range dirs {
		board := filepath.Join(t.TempDir(), "board")
		if err := os.CopyFS(board, os.DirFS(filepath.Join(dir, "board"))); err != nil {
			t.Fatal(err)
		}
		taken, untold := 0, map[string]int{}
		for _, r := range retake(t, projection.Open(board, eventlog.Options{}), WhatIf{}) {
			switch {
			case r.Untold != "":
				untold[r.Untold]++
				continue
			case r.Differs() && strings.Contains(r.Was, "(max_runtime)"):
				// Who made these logs asked for the end of a run by a time that had
				// not passed on its own clock; a dispatcher never does. It is found.
				continue
			case r.Differs():
				t.Errorf("format %s, event %d by %s: %s is on record, and today's decision is: %s", filepath.Base(dir), r.Seq, r.Actor, r.Was, r.Now)
			}
			taken++
		}
		if taken < 10 {
			t.Errorf("format %s: %d decisions were taken once more; not: %v", filepath.Base(dir), taken, untold)
		}
		t.Logf("format %s: %d decisions; not: %v", filepath.Base(dir), taken, untold)
	}
}

// What a dispatcher asked for, by the evidence and the limit that it names, is judged
// once more: the same by the same settings, and otherwise by others.
func TestRetakeJudges(t *testing.T) {
	const home = "board"
	root, at := t.TempDir(), eventlog.Time(1_800_000_000_000_000)
	if _, err := eventlog.Create(root, home, [16]byte{1}, at, eventlog.Options{}); err != nil {
		t.Fatal(err)
	}
	s := projection.Open(eventlog.BoardDir(root, home), eventlog.Options{})
	now, limits := at, projection.DefaultLimits()
	update := func(actor string, d projection.Decider) projection.Result {
		t.Helper()
		res, err := s.Update(actor, now, d)
		if err != nil {
			t.Fatal(err)
		}
		return res
	}
	card := update("operator:ann", projection.Create(projection.Draft{Title: "a", Assignee: "w", WorkspaceKind: projection.Scratch}, projection.Writer{})).Task
	run := update("dispatcher:h/1", projection.Claim(projection.ClaimFor{
		Task: card, Origin: projection.OriginDispatch, Assignee: "w", TTL: time.Minute, LaunchGrace: time.Minute, MaxRuntime: time.Hour,
		Caps: projection.Caps{Board: 2}, Limits: limits,
	}, projection.Writer{})).Commit.RunOf(0)
	update("supervisor:"+card, projection.Register(projection.Registration{Task: card, Run: run, Worker: eventlog.Process{PID: 7, Fingerprint: "b:1|2"}, Token: "x"}))
	now = now.Add(30 * time.Minute)
	update("dispatcher:h/1", projection.Extend(run))
	now = now.Add(31 * time.Minute)
	update("dispatcher:h/1", projection.RequestEnd(projection.EndRequest{
		Run: run, Reason: projection.EndMaxRuntime, Limit: time.Hour, Measured: 61 * time.Minute, Evidence: "alive: supervisor 7",
	}))
	for _, c := range []struct {
		name string
		w    WhatIf
		seqs []uint64
		says string
	}{
		{name: "by the settings on record"},
		{"by a longer time", WhatIf{MaxRuntime: func(_ string, d *time.Duration) { *d = 2 * time.Hour }}, []uint64{5}, "the run goes on"},
		{"by a shorter time", WhatIf{MaxRuntime: func(_ string, d *time.Duration) { *d = 10 * time.Minute }}, []uint64{4}, "(max_runtime)"},
		{"by that of another", WhatIf{MaxRuntime: func(assignee string, d *time.Duration) {
			if assignee == "other" {
				*d = time.Minute
			}
		}}, nil, ""},
		{"by a cap of none", WhatIf{WhatIf: projection.WhatIf{Caps: func(_ string, c *projection.Caps) { c.Board = 1 }}}, nil, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			var seqs []uint64
			for _, r := range retake(t, s, c.w) {
				if r.Differs() {
					seqs = append(seqs, r.Seq)
					if !strings.Contains(r.Now, c.says) {
						t.Errorf("event %d: today's decision is %q, want one that says %q", r.Seq, r.Now, c.says)
					}
				}
			}
			if len(seqs) != len(c.seqs) || len(seqs) > 0 && seqs[0] != c.seqs[0] {
				t.Errorf("events %v differ, want %v", seqs, c.seqs)
			}
		})
	}
}
