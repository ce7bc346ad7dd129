package tick

import (
	"context"
	"strings"
	"testing"
	"time"

	"kanlog/eventlog"
	"kanlog/projection"
)

// A supervisor that the host refused (no room, a busy store) says nothing about
// the card: no failure is counted, and the host is left alone for a while.
func TestASupervisorThatTheHostRefused(t *testing.T) {
	b := newBench(t)
	b.d.Policy.Limits.FailureLimit = 1
	b.create("a")
	b.word = func(context.Context, Launch) FirstWord {
		return FirstWord{State: Refused, Detail: "no space left on device", Infrastructure: true}
	}
	rep := b.ticks()
	equal(t, "the story", b.story(), "claimed a, start a, spawn_failed a")
	r := b.run(b.task("a").LastRun)
	equal(t, "the outcome", r.Outcome, projection.OutSpawnFailed)
	equal(t, "counted", r.Counted, false)
	if !strings.Contains(r.Error, "no space left on device") {
		t.Errorf("the error is %q", r.Error)
	}
	equal(t, "the card", b.task("a").Status, projection.Ready)
	equal(t, "held until", b.task("a").HoldUntil, b.now.Add(b.d.Policy.Limits.RateLimitCooldown))
	equal(t, "spawned", len(rep.Spawned), 0)
	equal(t, "failed", len(rep.SpawnFailed), 1)

	b.now = b.now.Add(b.d.Policy.Limits.RateLimitCooldown)
	b.word = b.registers
	equal(t, "spawned once the host has room", len(b.ticks().Spawned), 1)
}

// The same from the record of a supervisor whose report nobody heard.
func TestTheRecordOfASupervisorThatTheHostRefused(t *testing.T) {
	b := newBench(t)
	b.d.Policy.Limits.FailureLimit = 1
	run := b.running("a")
	b.evidence[run] = Evidence{Answer: Dead}
	b.records[run] = &projection.ExitRecord{Cause: projection.CauseStartFailed, Error: "fork: resource temporarily unavailable", Infrastructure: true}
	b.ticks()
	equal(t, "the story", b.story(), "spawn_failed a")
	equal(t, "counted", b.run(run).Counted, false)
	equal(t, "the card", b.task("a").Status, projection.Ready)
	equal(t, "held until", b.task("a").HoldUntil, b.now.Add(b.d.Policy.Limits.RateLimitCooldown))
}

// Await gave up, and then it turns out what became of the run. The report's
// spawned is what lives.
func TestWhatIsReportedAfterAwaitGaveUp(t *testing.T) {
	for _, c := range []struct {
		name  string
		since func(b *bench, l Launch)
		last  string // the run's newest event
		lives bool
	}{
		{"it registered after all", func(b *bench, l Launch) { b.must(registration(l.Task.ID, l.Run)) }, "spawned a", true},
		{"it was reclaimed", func(b *bench, l Launch) {
			b.must(projection.Reclaim(l.Task.ID, l.Run, "wrong", "", false, projection.Writer{}))
		}, "reclaimed a", false},
		{"nothing", func(*bench, Launch) {}, "spawn_failed a", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBench(t)
			b.create("a")
			b.word = func(_ context.Context, l Launch) FirstWord {
				c.since(b, l)
				return FirstWord{State: TimedOut}
			}
			head := b.head()
			rep := b.ticks()
			if kinds := b.kindsAfter(head); kinds != "claimed a, "+c.last {
				t.Errorf("appended %q", kinds)
			}
			run := b.task("a").LastRun
			switch {
			case !c.lives && len(rep.Spawned) != 0:
				t.Errorf("spawned: %v", rep.Spawned)
			case c.lives && len(rep.Spawned) != 1:
				t.Errorf("spawned: %v", rep.Spawned)
			case c.lives:
				equal(t, "the report", rep.Spawned[0], Spawned{Task: b.cards["a"], Run: run, Assignee: "coder", PID: 100 + int(run), Workspace: "/ws/a"})
			}
			equal(t, "errors", len(rep.Errors), 0)
		})
	}
}

// The registration comes between Await giving up and the booking of it, which
// then finds a worker.
func TestARegistrationJustBeforeTheBooking(t *testing.T) {
	b := newBench(t)
	b.create("a")
	var given *Launch
	b.word = func(_ context.Context, l Launch) FirstWord {
		given = &l
		b.now = b.now.Add(31 * time.Second)
		return FirstWord{State: TimedOut}
	}
	b.before = func(eventlog.Time) error {
		if given != nil {
			b.must(registration(given.Task.ID, given.Run))
			given = nil
		}
		return nil
	}
	rep := b.ticks()
	equal(t, "the story", b.story(), "claimed a, start a")
	equal(t, "spawned", len(rep.Spawned), 1)
	equal(t, "failed", len(rep.SpawnFailed)+len(rep.Errors), 0)
}
