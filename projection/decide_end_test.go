package projection

import (
	"strings"
	"testing"
	"time"

	"kanlog/eventlog"
)

// booking books the end of card a's newest run.
func booking(with func(*Ending)) func(*board) Decider {
	return func(b *board) Decider {
		e := Ending{Run: b.task("a").LastRun, Evidence: "nothing is left"}
		if with != nil {
			with(&e)
		}
		return BookEnd(e, b.limits)
	}
}

func record(r *ExitRecord) func(*board) Decider { return booking(func(e *Ending) { e.Record = r }) }

func cleanExit(means string) func(*board) {
	return func(b *board) { card(b); b.start("a", func(c *ClaimFor) { c.OnCleanExit = means }) }
}

// released checks that nothing of the run is on record any more.
func released(t *testing.T, b *board, _ []eventlog.Event) {
	t.Helper()
	equal(t, "the open run", b.task("a").CurrentRun, 0)
	equal(t, "the worker on record", b.task("a").Worker, 0)
	equal(t, "the run's evidence", b.run(b.task("a").LastRun).HasWorker, false)
}

// TestBookEnd goes through the order in which an end is confirmed: closed
// before; requested; by its record; by another boot; without a trace.
func TestBookEnd(t *testing.T) {
	asked := func(reason string) func(*board) {
		return func(b *board) {
			started(b)
			b.must(RequestEnd(EndRequest{Run: 2, Reason: reason, Detail: "2h of 1h", Evidence: "alive"}))
		}
	}
	answeredAnd := func(reason string) func(*board) {
		return func(b *board) {
			started(b)
			b.must(Complete(b.id("a"), Answer{}, own(b)))
			if reason != "" {
				b.must(RequestEnd(EndRequest{Run: 2, Reason: reason}))
			}
		}
	}
	ended := func(outcome, errorSays string) func(*testing.T, *board, []eventlog.Event) {
		return func(t *testing.T, b *board, events []eventlog.Event) {
			released(t, b, events)
			r := b.run(2)
			equal(t, "the outcome", r.Outcome, outcome)
			if !strings.Contains(r.Error, errorSays) {
				t.Errorf("the error is %q, want %q in it", r.Error, errorSays)
			}
		}
	}
	hostRefused := func(t *testing.T, b *board, events []eventlog.Event) {
		ended(OutSpawnFailed, "")(t, b, events)
		equal(t, "counted", b.run(2).Counted, false)
		equal(t, "held until", b.task("a").HoldUntil, b.now.Add(b.limits.RateLimitCooldown))
	}
	decide(t, []decision{
		{name: "no such run", given: card, kind: ErrNotFound, says: "no such run: 99", when: func(b *board) Decider { return BookEnd(Ending{Run: 99}, b.limits) }},
		{name: "a claim without a worker has no end", given: func(b *board) { card(b); b.claim("a") }, when: booking(nil), kind: ErrState, says: "run 2 has no worker"},
		{name: "twice", given: func(b *board) { started(b); b.ends(2, 1) }, when: booking(nil), says: "booked before"},

		{name: "1. closed before: exited", given: answeredAnd(""), when: record(exited(3)), want: "exited",
			then: func(t *testing.T, b *board, events []eventlog.Event) {
				released(t, b, events)
				equal(t, "the outcome stays", b.run(2).Outcome, OutCompleted)
				equal(t, "the exit code", *b.run(2).ExitCode, 3)
				equal(t, "the card stays", b.task("a").Status, Done)
			}},
		{name: "1. closed before and asked to end: reaped", given: answeredAnd(EndTerminalGrace), when: booking(nil), want: "terminal_worker_reaped", then: released},
		{name: "1. closed before, its exit code is no failure of the card", given: answeredAnd(""), when: record(exited(ExitFinal)), want: "exited",
			then: func(t *testing.T, b *board, events []eventlog.Event) { equal(t, "the card", b.task("a").Status, Done) }},

		{name: "2. requested: over its time", given: asked(EndMaxRuntime), when: booking(nil), want: "timed_out>ready", then: ended(OutTimedOut, "2h of 1h")},
		{name: "2. requested: the request wins over what it brought about", given: asked(EndMaxRuntime), when: record(&ExitRecord{Cause: CauseTerminated, ExitCode: new(int64)}), want: "timed_out>ready", then: ended(OutTimedOut, "2h of 1h")},
		{name: "2. requested, but its command had ended by itself before: its own end", given: asked(EndMaxRuntime), when: record(exited(75)), want: "rate_limited>ready", then: ended(OutRateLimited, "try later")},
		{name: "2. silent, but its command had crashed by itself before", given: asked(EndHeartbeatStale), when: record(&ExitRecord{Cause: CauseSignaled, Signal: "SIGSEGV"}), want: "crashed>ready", then: ended(OutCrashed, "SIGSEGV")},
		{name: "2. requested by an operator: his word, though its command had ended by itself", given: asked(EndReclaim), when: record(exited(1)), want: "reclaimed>ready", then: ended(OutReclaimed, "reclaim")},
		{name: "2. requested: silent", given: asked(EndHeartbeatStale), when: record(&ExitRecord{Cause: CauseTerminated, Signal: "TERM"}), want: "stale>ready",
			then: func(t *testing.T, b *board, events []eventlog.Event) {
				ended(OutStale, "heartbeats stopped")(t, b, events)
				equal(t, "counted", b.run(2).Counted, false)
				equal(t, "the signal", b.run(2).Signal, "TERM")
			}},
		{name: "2. requested: reclaimed", given: asked(EndReclaim), when: record(exited(1)), want: "reclaimed>ready", then: ended(OutReclaimed, "reclaim: 2h of 1h")},
		{name: "2. requested: over its time for the last time", want: "timed_out>ready; gave_up failures 2/2",
			given: func(b *board) {
				card(b)
				b.attempt("a", 1)
				b.wait(time.Hour)
				b.must(RequestEnd(EndRequest{Run: b.start("a"), Reason: EndMaxRuntime}))
			}, when: booking(nil)},
		{name: "orphans: as if nobody had asked", given: asked(EndOrphaned), when: booking(nil), want: "crashed>ready", then: ended(OutCrashed, "without a trace")},
		{name: "orphans: the record speaks", given: asked(EndOrphaned), when: record(exited(ExitTryLater)), want: "rate_limited>ready", then: ended(OutRateLimited, "75")},

		{name: "3. record: the supervisor was told to stop", given: started, when: record(&ExitRecord{Cause: CauseTerminated, Signal: "TERM"}),
			want: "reclaimed>ready interrupted", then: ended(OutReclaimed, "told to stop")},
		{name: "3. record: it could not start", given: started, when: record(&ExitRecord{Cause: CauseStartFailed, Error: "no such file"}),
			want: "spawn_failed>ready", then: func(t *testing.T, b *board, events []eventlog.Event) {
				ended(OutSpawnFailed, "no such file")(t, b, events)
				equal(t, "counted", b.run(2).Counted, true)
			}},
		{name: "3. record: it never started", given: started, when: record(&ExitRecord{Cause: CauseNeverStarted}), want: "spawn_failed>ready", then: ended(OutSpawnFailed, "never started")},
		{name: "3. record: the host had no room to start it", given: started, when: record(&ExitRecord{Cause: CauseStartFailed, Error: "no room", Infrastructure: true}),
			want: "spawn_failed>ready infrastructure", then: hostRefused},
		{name: "3. record: the host refused before it started", given: started, when: record(&ExitRecord{Cause: CauseNeverStarted, Infrastructure: true}),
			want: "spawn_failed>ready infrastructure", then: hostRefused},
		{name: "3. record: exit 0 without an answer", given: started, when: record(exited(0)), want: "protocol_violation>ready",
			then: func(t *testing.T, b *board, events []eventlog.Event) {
				ended(OutCrashed, "without an answer")(t, b, events)
				equal(t, "counted", b.run(2).Counted, false)
				equal(t, "a violation", b.run(2).Violation, true)
			}},
		{name: "3. record: exit 0 means done", given: cleanExit(CleanComplete), when: record(exited(0)), want: "completed by clean_exit",
			then: func(t *testing.T, b *board, events []eventlog.Event) {
				ended(OutCompleted, "")(t, b, events)
				equal(t, "the status", b.task("a").Status, Done)
			}},
		{name: "3. record: exit 0 means done and frees its children", want: "completed by clean_exit; promoted>ready parents_done",
			given: func(b *board) {
				cleanExit(CleanComplete)(b)
				b.create("child", func(d *Draft) { d.Parents = []string{b.id("a")} })
			}, when: record(exited(0))},
		{name: "3. record: exit 0 asks for a review", given: cleanExit(CleanReview), when: record(exited(0)), want: "review_requested",
			then: func(t *testing.T, b *board, events []eventlog.Event) {
				ended(OutReviewRequested, "")(t, b, events)
				equal(t, "the status", b.task("a").Status, Review)
			}},
		{name: "3. record: exit 75", given: started, when: record(exited(ExitTryLater)), want: "rate_limited>ready",
			then: func(t *testing.T, b *board, events []eventlog.Event) {
				ended(OutRateLimited, "try later")(t, b, events)
				equal(t, "held until", b.task("a").HoldUntil, b.now.Add(5*time.Minute))
				equal(t, "counted", b.run(2).Counted, false)
			}},
		{name: "3. record: exit 75 without a cool-down", want: "rate_limited>ready",
			given: func(b *board) { started(b); b.limits.RateLimitCooldown = 0 }, when: record(exited(ExitTryLater)),
			then: func(t *testing.T, b *board, events []eventlog.Event) {
				equal(t, "startable", b.task("a").Startable(b.now), true)
			}},
		{name: "3. record: exit 78 holds at once", given: started, when: record(exited(ExitFinal)), want: "crashed>ready final; gave_up final 1/1 sticky",
			then: ended(OutCrashed, "can never work")},
		{name: "3. record: another exit", given: started, when: record(exited(3)), want: "crashed>ready",
			then: func(t *testing.T, b *board, events []eventlog.Event) {
				ended(OutCrashed, "exited with 3")(t, b, events)
				equal(t, "counted", b.run(2).Counted, true)
			}},
		{name: "3. record: a signal", given: started, when: record(&ExitRecord{Cause: CauseSignaled, Signal: "SEGV"}), want: "crashed>ready", then: ended(OutCrashed, "signal SEGV")},
		{name: "3. record: a signal with a code that could mislead", given: started, want: "crashed>ready",
			when: record(&ExitRecord{Cause: CauseSignaled, Signal: "KILL", ExitCode: exited(0).ExitCode}), then: ended(OutCrashed, "signal KILL")},
		{name: "3. record: of neither", given: started, when: record(&ExitRecord{Cause: CauseExited}), want: "crashed>ready", then: ended(OutCrashed, "neither a code nor a signal")},
		{name: "3. record: it speaks although it was another boot", given: started, want: "crashed>ready",
			when: booking(func(e *Ending) { e.OtherBoot, e.Record = true, exited(3) }), then: ended(OutCrashed, "exited with 3")},

		{name: "4. another boot", given: started, when: booking(func(e *Ending) { e.OtherBoot = true }), want: "reclaimed>ready interrupted", then: ended(OutReclaimed, "interrupted")},
		{name: "4. elsewhere, its lease ran out", given: func(b *board) { started(b); b.wait(15 * time.Minute) },
			when: booking(func(e *Ending) { e.Unproven = true }), want: "reclaimed>ready interrupted unproven", then: ended(OutReclaimed, "another machine")},
		{name: "4. elsewhere, and it beat since somebody looked", says: "has a lease until",
			given: func(b *board) {
				started(b)
				b.wait(15 * time.Minute)
				b.must(Beat(b.id("a"), "", b.limits, own(b)))
			},
			when: booking(func(e *Ending) { e.Unproven = true }),
			then: func(t *testing.T, b *board, events []eventlog.Event) {
				equal(t, "the open run", b.task("a").CurrentRun, 2)
			}},
		{name: "4. elsewhere, the clock behind its lease: not over beyond doubt", given: func(b *board) { started(b); b.wait(-time.Hour) },
			when: booking(func(e *Ending) { e.Unproven = true }), says: "has a lease until"},
		{name: "5. without a trace", given: started, when: booking(nil), want: "crashed>ready", then: ended(OutCrashed, "without a trace: nothing is left")},
		{name: "5. without a trace, for the last time", given: func(b *board) { card(b); b.attempt("a", 1); b.wait(time.Hour); b.start("a") },
			when: booking(nil), want: "crashed>ready; gave_up failures 2/2"},
		{name: "evidence of any length is cut", given: started, want: "crashed>ready",
			when: booking(func(e *Ending) { e.Evidence = strings.Repeat("é", MaxError) }),
			then: func(t *testing.T, b *board, events []eventlog.Event) {
				d := one[*eventlog.Crashed](t, events)
				if len(d.Evidence) > MaxError+40 || !strings.Contains(d.Evidence, "bytes cut") {
					t.Errorf("the evidence has %d bytes", len(d.Evidence))
				}
			}},
	})
}

func TestBookCutOff(t *testing.T) {
	claimed := func(b *board) { card(b); b.claim("a") }
	cut := func(c CutOff) func(*board) Decider {
		return func(b *board) Decider { c.Run = b.task("a").LastRun; return BookCutOff(c, b.limits) }
	}
	gone := cut(CutOff{Interrupted: true, Evidence: "dead"})
	decide(t, []decision{
		{name: "the claimer is gone: not the card's failure", given: claimed, when: gone, want: "reclaimed>ready interrupted",
			then: func(t *testing.T, b *board, events []eventlog.Event) {
				equal(t, "startable at once", b.task("a").Startable(b.now), true)
				equal(t, "counted", b.run(2).Counted, false)
			}},
		{name: "it did not start in time: counted", given: claimed, when: cut(CutOff{Error: " died\n"}), want: "spawn_failed>ready",
			then: func(t *testing.T, b *board, events []eventlog.Event) {
				equal(t, "counted", b.run(2).Counted, true)
				equal(t, "the error", b.run(2).Error, "died")
				equal(t, "held", b.task("a").heldAt(b.now), true)
			}},
		{name: "the host refused: not counted, but not at once again", given: claimed, when: cut(CutOff{Error: "no memory", Infrastructure: true}),
			want: "spawn_failed>ready infrastructure",
			then: func(t *testing.T, b *board, events []eventlog.Event) {
				equal(t, "counted", b.run(2).Counted, false)
				equal(t, "held until", b.task("a").HoldUntil, b.now.Add(5*time.Minute))
				equal(t, "why", b.task("a").HoldReason, "the host refused to start it; cool-down")
			}},
		{name: "for the last time", want: "spawn_failed>ready; gave_up failures 2/2", when: cut(CutOff{Error: "died"}),
			given: func(b *board) {
				claimed(b)
				b.must(BookCutOff(CutOff{Run: 2, Error: "died"}, b.limits))
				b.wait(time.Hour)
				b.claim("a")
			}},
		{name: "a registration won the race", given: started, when: gone,
			then: func(t *testing.T, b *board, events []eventlog.Event) { equal(t, "the worker", b.task("a").Worker, 2) }},
		{name: "closed since", given: func(b *board) { claimed(b); b.must(Reclaim(b.id("a"), b.owner("a"), "x", "", false, Writer{})) }, when: gone},
		{name: "a manual claim has nobody to cut off", given: func(b *board) { card(b); b.manual("a", "ann", time.Hour) }, when: gone},
		{name: "no such run", given: card, when: func(b *board) Decider { return BookCutOff(CutOff{Run: 99}, b.limits) }},
	})
}

func TestExpireManual(t *testing.T) {
	claimed := func(wait time.Duration) func(*board) {
		return func(b *board) { card(b); b.manual("a", "ann", time.Hour); b.wait(wait) }
	}
	expire := func(b *board) Decider { return ExpireManual(b.task("a").LastRun) }
	decide(t, []decision{
		{name: "the lease ran out: held for a person", given: claimed(time.Hour), when: expire, want: "reclaimed>blocked; blocked",
			then: func(t *testing.T, b *board, events []eventlog.Event) {
				c := b.task("a")
				equal(t, "the status", c.Status, Blocked)
				equal(t, "the kind", c.BlockKind, NeedsInput)
				equal(t, "the outcome", b.run(2).Outcome, OutReclaimed)
				equal(t, "says who held it", strings.Contains(c.BlockReason, "by ann (run 2)"), true)
			}},
		{name: "not yet", given: claimed(time.Hour - 1000), when: expire},
		{name: "a beat moved it", given: func(b *board) {
			claimed(time.Hour)(b)
			b.must(Beat(b.id("a"), "", b.limits, Writer{}))
		}, when: expire},
		{name: "closed since", given: func(b *board) { claimed(time.Hour)(b); b.must(Complete(b.id("a"), Answer{}, Writer{})) }, when: expire},
		{name: "a dispatched claim", given: func(b *board) { card(b); b.claim("a"); b.wait(time.Hour) }, when: expire},
		{name: "a worker", given: func(b *board) { started(b); b.wait(time.Hour) }, when: expire},
		{name: "no such run", given: card, when: func(*board) Decider { return ExpireManual(99) }},
	})
}
