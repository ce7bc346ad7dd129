package projection

import (
	"fmt"
	"testing"
	"time"

	"kanlog/eventlog"
)

func card(b *board) { b.create("a") }

func TestClaim(t *testing.T) {
	claim := func(with ...func(*ClaimFor)) func(b *board) Decider {
		return func(b *board) Decider {
			c := b.claimFor("a")
			for _, f := range with {
				f(&c)
			}
			return Claim(c, Writer{})
		}
	}
	byHand := func(c *ClaimFor) { c.Origin, c.Holder = OriginManual, "ann" }
	held := func(b *board) {
		b.create("a")
		b.must(Fail(b.id("a"), "no", b.limits, Writer{Card: b.id("a"), Run: b.start("a")}))
		b.must(BookEnd(Ending{Run: b.task("a").LastRun}, b.limits))
	}
	decide(t, []decision{
		{name: "a ready card", given: card, when: claim(), want: "claimed",
			then: func(t *testing.T, b *board, events []eventlog.Event) {
				run := b.task("a").CurrentRun
				equal(t, "the run", run, b.head().Seq)
				equal(t, "the status", b.task("a").Status, Running)
				equal(t, "the deadline", b.run(run).Deadline, b.now.Add(30*time.Second))
			}},
		{name: "of a branch that another card's run is at work on", kind: ErrState, says: "the branch b of /repo is in use by ",
			given: func(b *board) {
				for _, title := range []string{"first", "a"} {
					b.create(title, func(d *Draft) { d.WorkspaceKind, d.WorkspacePath, d.Branch = Worktree, "/repo", "b" })
				}
				b.start("first")
			}, when: claim()},
		{name: "of a directory that another card's run is at work in", kind: ErrState, says: "the directory /d is in use by ",
			given: func(b *board) {
				for _, title := range []string{"first", "a"} {
					b.create(title, func(d *Draft) { d.WorkspaceKind, d.WorkspacePath = Dir, "/d" })
				}
				b.start("first")
			}, when: claim()},
		{name: "of a directory that both share", want: "claimed",
			given: func(b *board) {
				for _, title := range []string{"first", "a"} {
					b.create(title, func(d *Draft) { d.WorkspaceKind, d.WorkspacePath = Shared, "/d" })
				}
				b.start("first")
			}, when: claim()},
		{name: "by hand it is a person's matter", want: "claimed",
			given: func(b *board) {
				for _, title := range []string{"first", "a"} {
					b.create(title, func(d *Draft) { d.WorkspaceKind, d.WorkspacePath, d.Branch = Worktree, "/repo", "b" })
				}
				b.start("first")
			}, when: claim(byHand)},
		{name: "by hand: the lease is the deadline", given: card, when: claim(byHand), want: "claimed",
			then: func(t *testing.T, b *board, events []eventlog.Event) {
				equal(t, "the lease", b.run(b.task("a").CurrentRun).ClaimExpires, b.now.Add(15*time.Minute))
			}},
		{name: "a lease of a fraction is rounded up and is not over at once", given: card,
			when: claim(byHand, func(c *ClaimFor) { c.TTL = 1500 * time.Millisecond }), want: "claimed",
			then: func(t *testing.T, b *board, events []eventlog.Event) {
				r := b.run(b.task("a").CurrentRun)
				equal(t, "the lease", r.ClaimExpires, b.now.Add(2*time.Second))
				equal(t, "over at once", r.LeaseOver(b.now), false)
			}},
		{name: "the card's own runtime cap wins", want: "claimed",
			given: func(b *board) { b.create("a", func(d *Draft) { d.MaxRuntime = time.Minute }) },
			when:  claim(func(c *ClaimFor) { c.MaxRuntime = time.Hour }),
			then: func(t *testing.T, b *board, events []eventlog.Event) {
				equal(t, "the cap", b.run(b.task("a").CurrentRun).MaxRuntimeSeconds, 60)
			}},
		{name: "the card's own word that there is none wins too", want: "claimed",
			given: func(b *board) { b.create("a", func(d *Draft) { d.MaxRuntime = NoLimit }) },
			when:  claim(func(c *ClaimFor) { c.MaxRuntime = time.Hour }),
			then: func(t *testing.T, b *board, events []eventlog.Event) {
				equal(t, "the cap", b.run(b.task("a").CurrentRun).MaxRuntimeSeconds, 0)
			}},
		{name: "the profile's runtime cap otherwise", given: card, want: "claimed",
			when: claim(func(c *ClaimFor) { c.MaxRuntime = time.Hour }),
			then: func(t *testing.T, b *board, events []eventlog.Event) {
				equal(t, "the cap", b.run(b.task("a").CurrentRun).MaxRuntimeSeconds, 3600)
			}},
		{name: "a name with a blank at its end", given: card, kind: ErrInvalid, says: "blank",
			when: claim(func(c *ClaimFor) { c.Holder = "ann " })},
		{name: "no time at all", given: card, kind: ErrInvalid, says: "out of range",
			when: claim(func(c *ClaimFor) { c.TTL = time.Second - 1 })},
		{name: "for ever", given: card, kind: ErrInvalid, says: "out of range",
			when: claim(func(c *ClaimFor) { c.TTL = MaxDuration + 1 })},
		{name: "no such card", given: card, kind: ErrNotFound, says: "t_none",
			when: claim(func(c *ClaimFor) { c.Task = "t_none" })},
		{name: "claimed by the dispatcher", given: func(b *board) { card(b); b.claim("a") },
			when: claim(byHand), kind: ErrState, says: "already claimed by the dispatcher, run 2"},
		{name: "claimed by ann", given: func(b *board) { card(b); b.manual("a", "ann", time.Hour) },
			when: claim(), kind: ErrState, says: "already claimed by ann, run 2"},
		{name: "the process of the run before may live", kind: ErrState, says: "the process of run 2 has not ended",
			given: func(b *board) {
				card(b)
				b.must(Fail(b.id("a"), "no", b.limits, b.worker("a", b.start("a"))))
				b.wait(time.Hour)
			},
			when: claim()},
		{name: "in triage", given: func(b *board) { b.create("a", func(d *Draft) { d.Triage = true }) },
			when: claim(), kind: ErrState, says: "cannot be claimed: triage"},
		{name: "before its time", given: func(b *board) { b.create("a", func(d *Draft) { d.NotBefore = b.now + 1 }) },
			when: claim(), kind: ErrState, says: "cannot be claimed: scheduled"},
		{name: "with an open parent", kind: ErrState, says: "cannot be claimed: todo",
			given: func(b *board) { b.create("p"); b.create("a", func(d *Draft) { d.Parents = []string{b.id("p")} }) },
			when:  claim()},
		{name: "blocked, with the reason", given: func(b *board) { card(b); b.must(Block(b.id("a"), "ask ann", "", DefaultLimits(), Writer{})) },
			when: claim(), kind: ErrState, says: "cannot be claimed: blocked: ask ann"},
		{name: "done", given: func(b *board) { card(b); b.must(Complete(b.id("a"), Answer{}, Writer{})) },
			when: claim(), kind: ErrState, says: "cannot be claimed: done"},
		{name: "ready by a forged event, its parent open", kind: ErrState, says: "waits for",
			given: func(b *board) {
				b.create("p")
				b.create("a", func(d *Draft) { d.Parents = []string{b.id("p")} })
				b.forge(event(b.id("a"), 0, &eventlog.Promoted{To: Ready}))
			},
			when: claim()},
		{name: "reassigned since the dispatcher looked", kind: ErrState, says: `assigned to "other" by now`,
			given: func(b *board) { card(b); b.must(Assign(b.id("a"), "other", Writer{})) },
			when:  claim(func(c *ClaimFor) { c.Assignee = "coder" })},
		{name: "held by a back-off", given: held, when: claim(), kind: ErrState, says: "back-off"},
		{name: "a back-off does not hold a person", given: held, when: claim(byHand), want: "claimed"},
		{name: "a back-off that has passed", given: func(b *board) { held(b); b.wait(time.Minute) }, when: claim(), want: "claimed"},
		{name: "a back-off from the future: the clock went back",
			given: func(b *board) { held(b); b.wait(-ClockSlack - time.Second) }, when: claim(), want: "claimed"},
		{name: "a back-off booked after the tick had read its time", kind: ErrState, says: "back-off",
			given: func(b *board) { held(b); b.wait(-ClockSlack) }, when: claim()},
		{name: "the board is full", kind: ErrState, says: "the board's cap is reached: 1 of 1 running",
			given: func(b *board) { card(b); b.create("x"); b.claim("x") },
			when:  claim(func(c *ClaimFor) { c.Caps.Board = 1 })},
		{name: "the profile is full", kind: ErrState, says: "the cap of coder is reached: 1 of 1 running",
			given: func(b *board) { card(b); b.create("x"); b.claim("x") },
			when:  claim(func(c *ClaimFor) { c.Caps = Caps{Board: 5, Profile: 1} })},
		{name: "another profile's runs take no slot of this one", want: "claimed",
			given: func(b *board) { card(b); b.create("x", func(d *Draft) { d.Assignee = "other" }); b.claim("x") },
			when:  claim(func(c *ClaimFor) { c.Caps = Caps{Board: 5, Profile: 1} })},
		{name: "a closed run whose process may live takes a slot", kind: ErrState, says: "cap is reached: 1 of 1 running",
			given: func(b *board) {
				card(b)
				b.create("x")
				b.must(Complete(b.id("x"), Answer{}, b.worker("x", b.start("x"))))
			},
			when: claim(func(c *ClaimFor) { c.Caps.Board = 1 })},
		{name: "by a worker of another card", kind: ErrFenced, says: "may not claim another card",
			given: func(b *board) { card(b); b.create("x"); b.start("x") },
			when:  func(b *board) Decider { return Claim(b.claimFor("a"), b.worker("x", b.task("x").CurrentRun)) }},
	})
}

func TestRegister(t *testing.T) {
	claimed := func(b *board) { card(b); b.claim("a") }
	register := func(with ...func(*board, *Registration)) func(b *board) Decider {
		return func(b *board) Decider {
			g := b.registration("a", b.task("a").LastRun)
			for _, f := range with {
				f(b, &g)
			}
			return Register(g)
		}
	}
	decide(t, []decision{
		{name: "the first", given: claimed, when: register(), want: "spawned",
			then: func(t *testing.T, b *board, events []eventlog.Event) {
				r := b.run(b.task("a").CurrentRun)
				equal(t, "the retained worker", b.task("a").Worker, r.ID)
				equal(t, "the lease", r.ClaimExpires, b.now.Add(15*time.Minute))
				equal(t, "the pid", r.PID, 1002)
			}},
		{name: "the lease runs from here, not from the claim", want: "spawned",
			given: func(b *board) { claimed(b); b.wait(20 * time.Second) }, when: register(),
			then: func(t *testing.T, b *board, events []eventlog.Event) {
				equal(t, "the lease", b.run(b.task("a").CurrentRun).ClaimExpires, b.now.Add(15*time.Minute))
			}},
		{name: "the same again", given: func(b *board) { card(b); b.start("a") }, when: register(), says: "registered before"},
		{name: "another pid", given: func(b *board) { card(b); b.start("a") }, kind: ErrFenced, says: "another supervisor, pid 1002",
			when: register(func(_ *board, g *Registration) { g.Worker.PID++ })},
		{name: "the same pid, born later", given: func(b *board) { card(b); b.start("a") }, kind: ErrFenced, says: "another supervisor",
			when: register(func(_ *board, g *Registration) { g.Worker.Fingerprint = "boot:1|99" })},
		{name: "the same process with another token", given: func(b *board) { card(b); b.start("a") }, kind: ErrFenced, says: "another supervisor",
			when: register(func(_ *board, g *Registration) { g.Token = "board/9" })},
		{name: "too late: the claim was cut off", kind: ErrFenced, says: "run 2 is not open any more (it ended as reclaimed", want: "fenced",
			given: func(b *board) { claimed(b); b.must(BookCutOff(CutOff{Run: 2, Interrupted: true}, b.limits)) }, when: register()},
		{name: "too late: another run is open", kind: ErrFenced, says: "which is 4", want: "fenced",
			given: func(b *board) {
				claimed(b)
				b.must(BookCutOff(CutOff{Run: 2, Interrupted: true}, b.limits))
				b.claim("a")
			},
			when: register(func(_ *board, g *Registration) { g.Run = 2 })},
		{name: "without a run", given: claimed, kind: ErrFenced, says: "no run is given", want: "fenced",
			when: register(func(_ *board, g *Registration) { g.Run = 0 })},
		{name: "for a manual claim", given: func(b *board) { card(b); b.manual("a", "ann", time.Hour) }, when: register(),
			kind: ErrFenced, says: "takes no supervisor"},
		{name: "for a run that was asked to end", kind: ErrFenced, says: "asked to end (reclaim)",
			given: func(b *board) {
				claimed(b)
				b.forge(event(b.id("a"), 2, &eventlog.TerminationRequested{Reason: EndReclaim}))
			},
			when: register()},
	})
}

func TestExtend(t *testing.T) {
	started := func(b *board) { card(b); b.start("a") }
	extend := func(b *board) Decider { return Extend(b.task("a").LastRun) }
	decide(t, []decision{
		{name: "the lease ran out", given: func(b *board) { started(b); b.wait(15 * time.Minute) }, when: extend, want: "claim_extended",
			then: func(t *testing.T, b *board, events []eventlog.Event) {
				d := one[*eventlog.ClaimExtended](t, events)
				equal(t, "the lease before", d.ClaimExpiresWas, b.now)
				equal(t, "the lease", b.run(2).ClaimExpires, b.now.Add(15*time.Minute))
				equal(t, "the worker", d.WorkerPID, 1002)
			}},
		{name: "the clock went back behind the lease", given: func(b *board) { started(b); b.wait(-ClockSlack - time.Second) }, when: extend, want: "claim_extended"},
		{name: "a lease written after the tick had read its time", given: func(b *board) { started(b); b.wait(-ClockSlack) }, when: extend},
		{name: "not yet", given: func(b *board) { started(b); b.wait(15*time.Minute - 1) }, when: extend},
		{name: "no worker", given: func(b *board) { card(b); b.claim("a"); b.wait(time.Hour) }, when: extend},
		{name: "asked to end", when: extend, given: func(b *board) {
			started(b)
			b.must(RequestEnd(EndRequest{Run: 2, Reason: EndReclaim}))
			b.wait(time.Hour)
		}},
		{name: "answered since", when: extend, given: func(b *board) {
			started(b)
			b.must(Complete(b.id("a"), Answer{}, b.worker("a", 2)))
			b.wait(time.Hour)
		}},
		{name: "no such run", given: card, when: func(*board) Decider { return Extend(99) }},
	})
}

func TestRequestEnd(t *testing.T) {
	started := func(b *board) { card(b); b.start("a") }
	request := func(reason string) func(*board) Decider {
		return func(b *board) Decider {
			return RequestEnd(EndRequest{Run: b.task("a").LastRun, Reason: reason, Detail: "because", Evidence: "alive"})
		}
	}
	decide(t, []decision{
		{name: "an open run", given: started, when: request(EndMaxRuntime), want: "termination_requested>ready max_runtime",
			then: func(t *testing.T, b *board, events []eventlog.Event) {
				r := b.run(2)
				equal(t, "asked at", r.EndRequestedAt, b.now)
				equal(t, "still open", r.Open(), true)
				equal(t, "the status", b.task("a").Status, Running)
			}},
		{name: "orphans: the classifier decides what becomes of the card", given: started, when: request(EndOrphaned), want: "termination_requested> orphaned"},
		{name: "a closed run whose process lives", when: request(EndTerminalGrace), want: "termination_requested> terminal_grace",
			given: func(b *board) { started(b); b.must(Complete(b.id("a"), Answer{}, b.worker("a", 2))) }},
		{name: "once", given: func(b *board) { started(b); b.must(RequestEnd(EndRequest{Run: 2, Reason: EndMaxRuntime})) }, when: request(EndReclaim)},
		{name: "no worker", given: func(b *board) { card(b); b.claim("a") }, when: request(EndMaxRuntime)},
		{name: "gone by now", given: func(b *board) { started(b); b.ends(2, 1) }, when: request(EndMaxRuntime)},
		{name: "no such run", given: card, when: func(*board) Decider { return RequestEnd(EndRequest{Run: 99, Reason: EndReclaim}) }},
	})
}

func TestDeferEnd(t *testing.T) {
	asked := func(b *board) { card(b); b.start("a"); b.must(RequestEnd(EndRequest{Run: 2, Reason: EndReclaim})) }
	wait := func(reason string) func(*board) Decider {
		return func(*board) Decider { return DeferEnd(2, reason, "held", 0) }
	}
	decide(t, []decision{
		{name: "first", given: asked, when: wait("unreadable"), want: "reclaim_deferred",
			then: func(t *testing.T, b *board, events []eventlog.Event) {
				equal(t, "the reason", b.run(2).DeferredReason, "unreadable")
				equal(t, "the status", b.task("a").Status, Running)
			}},
		{name: "once for a reason", given: func(b *board) { asked(b); b.must(DeferEnd(2, "unreadable", "", 0)) }, when: wait("unreadable")},
		{name: "again for another", given: func(b *board) { asked(b); b.must(DeferEnd(2, "unreadable", "", 0)) }, when: wait("foreign"), want: "reclaim_deferred"},
		{name: "in turn: not again", given: func(b *board) {
			asked(b)
			b.must(DeferEnd(2, "unreadable", "", 0))
			b.must(DeferEnd(2, "foreign", "", 0))
		}, when: wait("unreadable")},
		{name: "for more reasons than anybody needs", given: func(b *board) {
			asked(b)
			for i := range MaxDeferred {
				b.must(DeferEnd(2, fmt.Sprint("reason ", i), "", 0))
			}
		}, when: wait("one more")},
		{name: "nobody asked", given: func(b *board) { card(b); b.start("a") }, when: wait("unreadable")},
		{name: "gone by now", given: func(b *board) { asked(b); b.ends(2, 0) }, when: wait("unreadable")},
		{name: "a lease that would run out sooner is moved", given: func(b *board) { asked(b); b.wait(14 * time.Minute) }, want: "reclaim_deferred",
			when: func(*board) Decider { return DeferEnd(2, "unreadable", "held", 2*time.Minute) },
			then: func(t *testing.T, b *board, _ []eventlog.Event) {
				equal(t, "the lease", b.run(2).ClaimExpires, b.now.Add(2*time.Minute))
			}},
		{name: "one that runs longer stays", given: asked, want: "reclaim_deferred",
			when: func(*board) Decider { return DeferEnd(2, "unreadable", "held", 2*time.Minute) },
			then: func(t *testing.T, b *board, _ []eventlog.Event) {
				equal(t, "the lease", b.run(2).ClaimExpires, b.now.Add(15*time.Minute))
			}},
	})
}

func TestReclaim(t *testing.T) {
	reclaim := func(force bool) func(*board) Decider {
		return func(b *board) Decider {
			return Reclaim(b.id("a"), b.owner("a"), "wrong", "alive: pid 1002", force, Writer{})
		}
	}
	started := func(b *board) { card(b); b.start("a") }
	replaced := func(b *board) { card(b); b.attempt("a", 1); b.wait(time.Hour); b.start("a") }
	seen := func(run uint64, force bool) func(*board) Decider {
		return func(b *board) Decider { return Reclaim(b.id("a"), run, "wrong", "dead", force, Writer{}) }
	}
	retained := func(b *board) { started(b); b.must(Fail(b.id("a"), "no", b.limits, b.worker("a", 2))) }
	decide(t, []decision{
		{name: "no worker: closed at once", given: func(b *board) { card(b); b.claim("a") }, when: reclaim(false), want: "reclaimed>ready"},
		{name: "no worker, forced: nothing to warn of", given: func(b *board) { card(b); b.claim("a") }, when: reclaim(true), want: "reclaimed>ready"},
		{name: "a manual claim", given: func(b *board) { card(b); b.manual("a", "ann", time.Hour) }, when: reclaim(false), want: "reclaimed>ready"},
		{name: "a worker: asked to end", given: started, when: reclaim(false), want: "termination_requested>ready reclaim",
			then: func(t *testing.T, b *board, events []eventlog.Event) {
				equal(t, "the open run", b.task("a").CurrentRun, 2)
			}},
		{name: "asked before", given: func(b *board) { started(b); b.must(RequestEnd(EndRequest{Run: 2, Reason: EndMaxRuntime})) }, when: reclaim(false), want: "termination_requested>ready reclaim"},
		{name: "asked before in the same words", given: func(b *board) { started(b); b.must(Reclaim(b.id("a"), 2, "x", "", false, Writer{})) }, when: reclaim(false), says: "asked to end before (reclaim)"},
		{name: "a worker, forced: released without proof", given: started, when: reclaim(true), want: "reclaimed>ready forced",
			then: func(t *testing.T, b *board, events []eventlog.Event) {
				d := one[*eventlog.Reclaimed](t, events)
				equal(t, "the warning", d.Warning, "a process may still be alive")
				equal(t, "the evidence", d.Evidence, "alive: pid 1002")
				equal(t, "the retained worker", b.task("a").Worker, 0)
			}},
		{name: "forced although it was asked before", when: reclaim(true), want: "reclaimed>ready forced",
			given: func(b *board) { started(b); b.must(RequestEnd(EndRequest{Run: 2, Reason: EndReclaim})) }},
		{name: "a closed run whose process lives: asked to end", given: retained, when: reclaim(false), want: "termination_requested> reclaim"},
		{name: "a closed run, forced", given: retained, when: reclaim(true), want: "exited",
			then: func(t *testing.T, b *board, events []eventlog.Event) {
				equal(t, "the retained worker", b.task("a").Worker, 0)
			}},
		{name: "nothing runs", given: card, when: reclaim(false), kind: ErrState, says: "there is nothing to reclaim"},
		{name: "nothing runs, forced", given: card, when: reclaim(true), kind: ErrState, says: "there is nothing to reclaim"},
		{name: "another run than the operator saw", given: replaced, when: seen(2, false), kind: ErrState, says: "has begun meanwhile; look again"},
		{name: "another run than the operator saw, forced", given: replaced, when: seen(2, true), kind: ErrState, says: "has begun meanwhile; look again"},
		{name: "a run where the operator saw none", given: started, when: seen(0, true), kind: ErrState, says: "run 2 has begun meanwhile"},
		{name: "a claim without a worker that the operator did not see", kind: ErrState, says: "has begun meanwhile",
			given: func(b *board) { card(b); b.attempt("a", 1); b.wait(time.Hour); b.claim("a") }, when: seen(2, false)},
		{name: "without a reason", given: started, kind: ErrInvalid, says: "needs --reason",
			when: func(b *board) Decider { return Reclaim(b.id("a"), b.owner("a"), " ", "", false, Writer{}) }},
		{name: "a worker its own run", given: started, kind: ErrState, says: "does not reclaim its own card",
			when: func(b *board) Decider { return Reclaim(b.id("a"), b.owner("a"), "x", "", false, b.worker("a", 2)) }},
		{name: "no such card", given: card, kind: ErrNotFound, says: "t_none",
			when: func(*board) Decider { return Reclaim("t_none", 0, "x", "", false, Writer{}) }},
		{name: "resets the budget", want: "reclaimed>ready",
			given: func(b *board) { card(b); b.attempt("a", 1); b.wait(time.Hour); b.claim("a") }, when: reclaim(false),
			then: func(t *testing.T, b *board, events []eventlog.Event) {
				c, err := b.view().CountsOf(b.task("a"))
				if err != nil {
					t.Fatal(err)
				}
				equal(t, "the failures", c.Failures, 0)
			}},
	})
}
