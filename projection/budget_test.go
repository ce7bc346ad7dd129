package projection

import (
	"testing"
	"time"

	"kanlog/eventlog"
)

// history writes the runs of a card as letters, oldest first: f counted
// failure, v violation, r rate limited, d deferred, i interrupted, s stale, n
// never started because the host refused, c completed, o open. Run n is the n-th letter.
func history(letters string) []*Run {
	var runs []*Run
	for i, l := range letters {
		r := &Run{ID: uint64(i + 1)}
		switch l {
		case 'f':
			r.Outcome, r.Counted = OutCrashed, true
		case 'v':
			r.Outcome, r.Violation = OutCrashed, true
		case 'r':
			r.Outcome = OutRateLimited
		case 'd':
			r.Outcome = OutDeferred
		case 'i':
			r.Outcome, r.Interrupted = OutReclaimed, true
		case 's':
			r.Outcome = OutStale
		case 'n':
			r.Outcome = OutSpawnFailed
		case 'c':
			r.Outcome = OutCompleted
		}
		runs = append(runs, r)
	}
	return runs
}

func TestCount(t *testing.T) {
	for _, c := range []struct {
		runs  string
		fresh uint64
		want  Counts
	}{
		{runs: ""},
		{runs: "o"},
		{runs: "f", want: Counts{Failures: 1}},
		{runs: "fsidrf", want: Counts{Failures: 2, Uncounted: 4}}, // nothing between failures takes them back
		{runs: "ff", fresh: 1, want: Counts{Failures: 1}},
		{runs: "ff", fresh: 2},
		{runs: "vv", want: Counts{Violations: 2, Uncounted: 2}},
		{runs: "vrrv", want: Counts{Violations: 2, Uncounted: 4}}, // rate-limited runs are neutral
		{runs: "vvr", want: Counts{Violations: 2, Limited: 1, Uncounted: 3}},
		{runs: "vfv", want: Counts{Failures: 1, Violations: 1, Uncounted: 2}},
		{runs: "vdv", want: Counts{Violations: 1, Uncounted: 3}},
		{runs: "viv", want: Counts{Violations: 1, Uncounted: 3}},
		{runs: "vsv", want: Counts{Violations: 1, Uncounted: 3}},
		{runs: "vcv", want: Counts{Violations: 1, Uncounted: 3}},
		{runs: "vs", want: Counts{Stale: 1, Uncounted: 2}},
		{runs: "ssrss", want: Counts{Stale: 2, Uncounted: 5}},
		{runs: "n"}, // the host refused: nothing ran
		{runs: "fnf", want: Counts{Failures: 2}},
		{runs: "vov", want: Counts{Violations: 2, Uncounted: 2}}, // an open run says nothing yet
		{runs: "rdr", want: Counts{Limited: 3, Uncounted: 3}},
		{runs: "rfr", want: Counts{Failures: 1, Limited: 1, Uncounted: 2}},
		{runs: "rir", want: Counts{Limited: 1, Uncounted: 3}},
		{runs: "rrv", want: Counts{Violations: 1, Uncounted: 3}},
		{runs: "iii", want: Counts{Interrupted: 3, Uncounted: 3}},
		{runs: "iri", want: Counts{Interrupted: 1, Uncounted: 3}},
		{runs: "iif", want: Counts{Failures: 1, Uncounted: 2}},
	} {
		equal(t, "the count of "+c.runs, Count(history(c.runs), c.fresh), c.want)
	}
}

// TestLimits runs each loop until it stops by itself.
func TestLimits(t *testing.T) {
	for _, c := range []struct {
		name string
		own  int64 // max retries of the card
		loop func(b *board) error
		want int // attempts until the card is blocked
		park int64
	}{
		{"failures", 0, exits(1), 2, 2},
		{"failures, the card's own limit", 5, exits(1), 5, 5},
		{"violations", 0, exits(0), 3, 0},
		{"violations, the card's own limit", 1, exits(0), 1, 0},
		{"rate limits", 0, exits(ExitTryLater), 24, 0},
		{"rate limits do not know the card's own limit", 1, exits(ExitTryLater), 24, 0},
		{"final", 0, exits(ExitFinal), 1, 0},
		{"deferrals", 0, func(b *board) error {
			run := b.start("a")
			b.must(Defer(b.id("a"), time.Minute, "later", b.limits, b.worker("a", run)))
			b.must(BookEnd(Ending{Run: run}, b.limits))
			return nil
		}, 24, 0},
		{"cut-off claims", 0, func(b *board) error {
			b.must(BookCutOff(CutOff{Run: b.claim("a"), Interrupted: true}, b.limits))
			return nil
		}, 10, 0},
		{"reboots", 0, func(b *board) error {
			b.must(BookEnd(Ending{Run: b.start("a"), OtherBoot: true}, b.limits))
			return nil
		}, 10, 0},
		{"heartbeats that stop", 0, stale, 10, 0},
		// Each breaks the streak of the other.
		{"violations and silence in turn", 0, inTurn(exits(0), stale), 100, 0},
		{"violations, quota and reboots in turn", 0, inTurn(exits(0), exits(ExitTryLater), func(b *board) error {
			b.must(BookEnd(Ending{Run: b.start("a"), OtherBoot: true}, b.limits))
			return nil
		}), 100, 0},
		{"a higher limit for violations is not undercut", 150, inTurn(exits(0), stale), 150, 0},
		{"starts that fail", 0, func(b *board) error {
			b.must(BookCutOff(CutOff{Run: b.claim("a"), Error: "died"}, b.limits))
			return nil
		}, 2, 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBoard(t)
			b.create("a", func(d *Draft) { d.MaxRetries = c.own })
			n := 0
			for b.task("a").Status == Ready && n < 200 {
				b.wait(time.Hour)
				if err := c.loop(b); err != nil {
					t.Fatal(err)
				}
				n++
			}
			equal(t, "the attempts", n, c.want)
			equal(t, "the status", b.task("a").Status, Blocked)
			equal(t, "the limit it is parked under (0: only an operator frees it)", b.task("a").ParkedLimit, c.park)
		})
	}
}

func stale(b *board) error {
	run := b.start("a")
	b.must(Beat(b.id("a"), "", b.limits, b.worker("a", run)))
	b.must(RequestEnd(EndRequest{Run: run, Reason: EndHeartbeatStale}))
	b.must(BookEnd(Ending{Run: run}, b.limits))
	return nil
}

// inTurn does one of these after the other, round and round.
func inTurn(loops ...func(*board) error) func(*board) error {
	n := -1
	return func(b *board) error {
		n++
		return loops[n%len(loops)](b)
	}
}

func exits(code int64) func(*board) error {
	return func(b *board) error { b.ends(b.start("a"), code); return nil }
}

func TestFreshStart(t *testing.T) {
	for _, c := range []struct {
		name  string
		fresh func(b *board)
		want  int64
	}{
		{"nothing", func(b *board) {}, 1},
		{"unblock", func(b *board) {
			b.must(Block(b.id("a"), "x", "", DefaultLimits(), Writer{}))
			b.must(Unblock(b.id("a"), Writer{}))
		}, 0},
		{"another assignee", func(b *board) { b.must(Assign(b.id("a"), "other", Writer{})) }, 0},
		{"completion", func(b *board) { b.must(Complete(b.id("a"), Answer{}, Writer{})) }, 0},
		{"an operator's reclaim", func(b *board) {
			b.wait(time.Hour)
			b.claim("a")
			b.must(Reclaim(b.id("a"), b.owner("a"), "x", "", false, Writer{}))
		}, 0},
		{"a comment", func(b *board) { b.must(AddComment(b.id("a"), "ann", "x", Writer{})) }, 1},
		{"a cut-off claim", func(b *board) {
			b.wait(time.Hour)
			b.must(BookCutOff(CutOff{Run: b.claim("a"), Interrupted: true}, b.limits))
		}, 1},
		{"a higher limit", func(b *board) {
			b.attempt("a", 1)
			b.limits.FailureLimit = 3
			b.must(PromoteParked(b.id("a"), b.limits))
		}, 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBoard(t)
			b.create("a")
			b.attempt("a", 1)
			c.fresh(b)
			got, err := b.view().CountsOf(b.task("a"))
			if err != nil {
				t.Fatal(err)
			}
			equal(t, "the failures", got.Failures, c.want)
			runs, _ := b.view().Runs(b.id("a"))
			equal(t, "the history keeps its first run", runs[0].Counted, true)
		})
	}
}

func TestBackOff(t *testing.T) {
	l := DefaultLimits()
	const now = eventlog.Time(1_700_000_000_000_000)
	for n, base := range map[int64]time.Duration{
		1: 10 * time.Second, 2: 20 * time.Second, 3: 40 * time.Second, 6: 320 * time.Second,
		7: 10 * time.Minute, 8: 10 * time.Minute, 1 << 40: 10 * time.Minute,
	} {
		for run := uint64(1); run < 200; run++ {
			if d := l.retryAt(now, n, run).Since(now); d < base || d > base+base/4 {
				t.Fatalf("failure %d, run %d: waits %s, want %s and up to a quarter more", n, run, d, base)
			}
		}
	}
	replay := DefaultLimits()
	equal(t, "the same run in a replay", replay.retryAt(now, 1, 5), l.retryAt(now, 1, 5))
	spread := map[eventlog.Time]bool{}
	for run := uint64(1); run <= 100; run++ {
		spread[l.retryAt(now, 1, run)] = true
	}
	if len(spread) < 90 {
		t.Errorf("100 runs would come back at %d moments; they should be spread", len(spread))
	}
	l.RetryBackoff = 0
	equal(t, "switched off", l.retryAt(now, 3, 1), 0)
	l.RetryBackoff = time.Hour
	for n := range int64(5) {
		if d := l.retryAt(now, n+1, 1).Since(now); d < time.Hour || d > time.Hour+time.Hour/4 {
			t.Errorf("wait %d is %s; a back-off beyond the cap stays what was asked for", n+1, d)
		}
	}
}

// TestLoweredLimit: a limit that is lowered where no end of a run judges it holds
// at the next start, and a raised one lets the card go on.
func TestLoweredLimit(t *testing.T) {
	retries := func(n int64) Changes { return Changes{MaxRetries: &n} }
	for _, c := range []struct {
		name         string
		whose        string
		lower, raise func(b *board)
	}{
		{"the card's own, while a run goes on that ends without being counted", "task",
			func(b *board) {
				run := b.start("a")
				w := b.worker("a", run)
				b.must(Edit(b.id("a"), retries(1), b.limits, Writer{}))
				b.must(Link(b.create("first"), b.id("a"), w))
				b.must(Block(b.id("a"), "first that", Dependency, b.limits, w))
				b.ends(run, 0)
				b.must(Complete(b.id("first"), Answer{}, Writer{}))
			},
			func(b *board) { b.must(Edit(b.id("a"), retries(9), b.limits, Writer{})) }},
		{"the settings'", "settings",
			func(b *board) { b.limits.FailureLimit = 1 },
			func(b *board) {
				b.limits.FailureLimit = 3
				b.must(PromoteParked(b.id("a"), b.limits))
			}},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBoard(t)
			b.limits.FailureLimit = 3
			b.create("a")
			b.attempt("a", 1)
			b.wait(time.Hour)
			c.lower(b)
			b.wait(time.Hour)
			equal(t, "the status", b.task("a").Status, Ready)
			last := b.task("a").LastRun

			events := b.must(Claim(b.claimFor("a"), Writer{})).Commit.Events
			equal(t, "the events", len(events), 1)
			g, ok := events[0].Data.(*eventlog.GaveUp)
			if !ok {
				t.Fatalf("a %s", events[0].Kind())
			}
			equal(t, "the limit on record", g.Limits.FailureLimit, b.limits.FailureLimit)
			g.Limits = nil
			equal(t, "the event", *g, eventlog.GaveUp{
				Budget: "failures", Failures: 1, Limit: 1, LimitSource: c.whose, Reason: "1 of 1 attempts failed; the last: exited with 1",
			})
			equal(t, "the status", b.task("a").Status, Blocked)
			equal(t, "the last run", b.task("a").LastRun, last)

			c.raise(b)
			equal(t, "the status under a higher limit", b.task("a").Status, Ready)
			b.start("a")
		})
	}
}
