package tick

import (
	"errors"
	"strings"
	"testing"
	"time"

	"kanlog/projection"
)

// What docs/seeds.md says of the tests that the project began with, and of the
// invariants of its reference, and what no other test shows.

// A signal that fails for one worker that outlived its answer leaves it on record
// for the next tick, and the others are reaped in this one.
func TestOneFailingWorkerDoesNotStopTheReaping(t *testing.T) {
	b := newBench(t)
	broken, healthy := b.running("broken"), b.running("healthy")
	b.complete("broken", broken)
	b.complete("healthy", healthy)
	b.ticks()
	equal(t, "the story inside the grace", b.story(), "")

	b.now = b.now.Add(b.d.Policy.TerminalGrace)
	b.signal = func(run uint64) error {
		if run == broken {
			return errors.New("boom")
		}
		b.evidence[run] = Evidence{Answer: Dead}
		return nil
	}
	rep := b.ticks()
	equal(t, "the story", b.story(), "termination_requested broken, term_supervisor broken, termination_requested healthy, term_supervisor healthy")
	if len(rep.Errors) != 1 || rep.Errors[0] != (Failure{b.cards["broken"], broken, "boom"}) {
		t.Errorf("errors: %v", rep.Errors)
	}
	b.now = b.now.Add(time.Second)
	rep = b.ticks()
	equal(t, "reaped", strings.Join(rep.ReapedTerminalWorkers, " "), b.cards["healthy"])
	equal(t, "the broken one is tried again", b.story(), "term_supervisor broken, terminal_worker_reaped healthy")
	equal(t, "the evidence of the broken one", b.run(broken).HasWorker, true)
	equal(t, "the evidence of the healthy one", b.run(healthy).HasWorker, false)
}

// A limit and a grace are those of a run, counted from its own start: a second
// attempt does not begin with the first one's time used up.
func TestEveryRunHasTimesOfItsOwn(t *testing.T) {
	b := newBench(t)
	b.d.Policy.MaxInProgress = 1
	b.d.Policy.Limits.RetryBackoff = 0
	b.d.Policy.Profiles["coder"] = Profile{MaxRuntime: time.Hour}
	first := b.running("a")
	b.now = b.now.Add(time.Hour)
	b.ticks()
	equal(t, "the first is over its time", b.story(), "termination_requested a, term_supervisor a")
	b.evidence[first] = Evidence{Answer: Dead}
	b.now = b.now.Add(time.Second)
	b.ticks()
	equal(t, "the first is booked", b.story(), "timed_out a, claimed a, start a")
	second := b.task("a").CurrentRun

	b.now = b.now.Add(time.Hour - time.Second)
	b.ticks()
	if strings.Contains(b.story(), "termination_requested") {
		t.Errorf("the second, inside its own hour: %s", b.story())
	}
	b.now = b.now.Add(time.Second)
	b.ticks()
	equal(t, "the second is over its time", b.story(), "termination_requested a, term_supervisor a")
	equal(t, "the open run", b.task("a").CurrentRun, second)

	// A claim that nobody registered for: the card's first start is hours ago.
	b.evidence[second] = Evidence{Answer: Dead}
	b.d.Policy.Limits.FailureLimit = 9
	if _, err := b.tick(Options{Max: 0}); err != nil {
		t.Fatal(err)
	}
	b.claim("a")
	b.now = b.now.Add(b.d.Policy.LaunchGrace)
	b.ticks()
	equal(t, "the third, just claimed", b.story(), "")
	b.now = b.now.Add(b.d.Policy.KillGrace)
	if _, err := b.tick(Options{Max: 0}); err != nil {
		t.Fatal(err)
	}
	equal(t, "the third, its own grace over", b.story(), "spawn_failed a")
}

// As many ticks as find the lease run out, as many extensions, and one worker.
func TestEveryTickPastTheLeaseExtendsOnce(t *testing.T) {
	b := newBench(t)
	run := b.running("a")
	for n := range 20 {
		b.now = b.run(run).ClaimExpires
		b.ticks()
		equal(t, "past the lease", b.story(), "claim_extended a")
		equal(t, "the worker", b.run(run).PID, 100+int(run))
		b.ticks()
		equal(t, "again, within the lease", b.story(), "")
		if n == 0 {
			equal(t, "the open run", b.task("a").CurrentRun, run)
		}
	}
	equal(t, "the open run in the end", b.task("a").CurrentRun, run)
}

// A cool-down of none means that the tick that books exit 75 starts the card.
func TestWithoutACoolDownTheTickThatBooksStarts(t *testing.T) {
	code := int64(projection.ExitTryLater)
	for _, c := range []struct {
		coolDown time.Duration
		want     string
	}{
		{0, "rate_limited a, claimed a, start a"},
		{time.Minute, "rate_limited a"},
	} {
		b := newBench(t)
		b.d.Policy.Limits.RateLimitCooldown = c.coolDown
		run := b.running("a")
		b.evidence[run] = Evidence{Answer: Dead}
		b.records[run] = &projection.ExitRecord{Cause: projection.CauseExited, ExitCode: &code}
		b.ticks()
		equal(t, c.coolDown.String(), b.story(), c.want)
	}
}

// A run of another machine, whose processes nobody here can see, is released when
// its lease ran out: without a signal, in words that say so, and not as a failure
// of the card.
func TestARunOfAnotherMachineIsReleasedByItsLease(t *testing.T) {
	b := newBench(t)
	b.d.Policy.MaxInProgress = 1
	run := b.running("a")
	b.evidence[run] = Evidence{Answer: Held, Unprovable: true, Why: "recorded on another machine"}
	b.now = b.run(run).ClaimExpires - 1
	b.ticks()
	equal(t, "the story before", b.story(), "")
	b.now++
	if _, err := b.tick(Options{Max: 0}); err != nil {
		t.Fatal(err)
	}
	equal(t, "the story after", b.story(), "reclaimed a")
	r := b.run(run)
	equal(t, "the outcome", r.Outcome, projection.OutReclaimed)
	equal(t, "counted", r.Counted, false)
	equal(t, "the words", strings.Contains(r.Error, "on another machine"), true)
}

// Cards that crash alike in one sweep are no reason to block any of them: each
// has a budget of its own.
func TestCrashesAlikeInOneTickBlockNoCard(t *testing.T) {
	b := newBench(t)
	titles := []string{"a", "b", "c", "d", "e"}
	for _, title := range titles {
		b.evidence[b.running(title)] = Evidence{Answer: Dead, Why: "nothing is left"}
	}
	rep := b.ticks()
	equal(t, "crashed", len(rep.Crashed), len(titles))
	equal(t, "blocked", len(rep.AutoBlocked), 0)
	for _, title := range titles {
		equal(t, title, b.task(title).Status, projection.Ready)
	}
}
