package projection

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"kanlog/eventlog"
)

// built is card p, done, and a, which was built on it.
func built(b *board) { waiting(b); b.done("p") }

func reopenP(b *board) Decider { return Reopen(b.id("p"), "wrong", Writer{}) }

func TestReopen(t *testing.T) {
	reopen := func(b *board) Decider { return Reopen(b.id("a"), "wrong", Writer{}) }
	decide(t, []decision{
		{name: "a card that is done, with fresh budgets", want: "reopened>ready", when: reopen,
			given: func(b *board) { card(b); b.attempt("a", 1); b.must(Complete(b.id("a"), Answer{Result: "r"}, Writer{})) },
			then: func(t *testing.T, b *board, _ []eventlog.Event) {
				c := b.task("a")
				equal(t, "what it was", c.Result+c.LastError, "")
				equal(t, "completed at", c.CompletedAt, 0)
				equal(t, "what it was keeps standing in its run", b.run(c.LastRun).Result, "r")
				n, err := b.view().CountsOf(c)
				equal(t, "counts", n, Counts{})
				equal(t, "the error", err, nil)
			}},
		{name: "a card in review", given: reviewedBy("rev"), when: reopen, want: "reopened>ready",
			then: func(t *testing.T, b *board, _ []eventlog.Event) {
				equal(t, "in review", b.task("a").ReviewedRun, 0)
				equal(t, "the lane", b.task("a").Lane(), LaneReady)
			}},
		{name: "before its time", want: "reopened>scheduled", when: reopen, given: func(b *board) { everyStatus[Scheduled](b); b.done("a") }},
		{name: "beside the process of its last run: it starts when that is gone", want: "reopened>ready", when: reopen,
			given: func(b *board) { started(b); b.must(Complete(b.id("a"), Answer{}, own(b))) },
			then: func(t *testing.T, b *board, _ []eventlog.Event) {
				equal(t, "startable", b.task("a").Startable(b.now), false)
				if _, err := b.try(operator, Claim(b.claimFor("a"), Writer{})); err == nil {
					t.Error("it was claimed beside that process (I2)")
				}
				b.ends(2, 0)
				equal(t, "startable when it is gone", b.task("a").Startable(b.now), true)
			}},
		{name: "the later word beats a cancel that the completion beat", want: "reopened>ready; termination_requested> reclaim", when: reopen,
			given: func(b *board) {
				started(b)
				b.must(Cancel(b.id("a"), 2, "", "", Writer{}))
				b.must(Complete(b.id("a"), Answer{}, own(b)))
			},
			then: func(t *testing.T, b *board, _ []eventlog.Event) {
				b.ends(2, 0)
				equal(t, "the status when the process is gone", b.task("a").Status, Ready)
			}},
		{name: "for no reason", given: everyStatus[Done], kind: ErrInvalid, says: "reopen needs --reason", when: func(b *board) Decider { return Reopen(b.id("a"), " ", Writer{}) }},
		{name: "for a reason too long", given: everyStatus[Done], kind: ErrInvalid, says: "the reason has",
			when: func(b *board) Decider { return Reopen(b.id("a"), strings.Repeat("x", MaxReason+1), Writer{}) }},
		{name: "by its late worker", given: func(b *board) { started(b); b.must(Complete(b.id("a"), Answer{}, own(b))) }, want: "fenced", kind: ErrFenced, says: "not open any more",
			when: func(b *board) Decider { return Reopen(b.id("a"), "x", own(b)) }},
		{name: "a card in review whose children wait: they wait on", want: "reopened>ready", when: reopen,
			given: func(b *board) { reviewedBy("")(b); b.under("child", "a") }},
	})
}

func TestReopenTakesBackWhatWasBuiltOnIt(t *testing.T) {
	stands := func(status string) func(*testing.T, *board, []eventlog.Event) {
		return func(t *testing.T, b *board, _ []eventlog.Event) {
			equal(t, "the status", b.task("a").Status, status)
			equal(t, "in review", b.task("a").ReviewedRun, 0)
		}
	}
	runs := func(b *board) { built(b); b.start("a") }
	reviewing := func(b *board) { built(b); reviewedBy("rev")(b); b.startReview("a") }
	cancelled := func(b *board) { b.must(Cancel(b.id("a"), b.owner("a"), "", "", Writer{})) }
	// asked is a run that is being ended since p was reopened, and p done again.
	asked := func(b *board) { runs(b); b.must(reopenP(b)); b.done("p") }
	decide(t, []decision{
		{name: "ready", given: built, when: reopenP, want: "reopened>ready; retracted ready>todo", then: stands(Todo)},
		{name: "held", given: func(b *board) { built(b); b.ends(b.start("a"), 1) }, when: reopenP, want: "reopened>ready; retracted ready>todo",
			then: func(t *testing.T, b *board, _ []eventlog.Event) { equal(t, "held", b.task("a").HoldUntil, 0) }},
		{name: "ready beside a process", given: func(b *board) { runs(b); b.must(Fail(b.id("a"), "x", b.limits, own(b))) }, when: reopenP, want: "reopened>ready; retracted ready>todo",
			then: func(t *testing.T, b *board, _ []eventlog.Event) {
				equal(t, "the worker stays on record", b.task("a").Worker, b.task("a").LastRun)
			}},
		{name: "scheduled", given: func(b *board) { built(b); b.must(Defer(b.id("a"), time.Hour, "", b.limits, Writer{})) }, when: reopenP, want: "reopened>ready; retracted scheduled>todo", then: stands(Todo)},
		{name: "in review", given: func(b *board) { built(b); reviewedBy("rev")(b) }, when: reopenP, want: "reopened>ready; retracted review>todo",
			then: func(t *testing.T, b *board, e []eventlog.Event) {
				stands(Todo)(t, b, e)
				b.done("p")
				equal(t, "the status then: it is done anew, not reviewed", b.task("a").Status, Ready)
			}},
		{name: "in review, its process there", want: "reopened>ready; retracted review>todo", when: reopenP,
			given: func(b *board) { runs(b); b.must(RequestReview(b.id("a"), Answer{}, "rev", nil, own(b))) }, then: stands(Todo)},
		{name: "done", given: func(b *board) { built(b); b.must(Complete(b.id("a"), Answer{Result: "r"}, Writer{})) }, when: reopenP, want: "reopened>ready; retracted done>todo",
			then: func(t *testing.T, b *board, e []eventlog.Event) {
				stands(Todo)(t, b, e)
				equal(t, "the result", b.task("a").Result, "")
				equal(t, "completed at", b.task("a").CompletedAt, 0)
			}},
		{name: "blocked: it waits for a person, then for its parent", given: func(b *board) { built(b); b.must(Block(b.id("a"), "x", "", b.limits, Writer{})) }, when: reopenP, want: "reopened>ready",
			then: func(t *testing.T, b *board, _ []eventlog.Event) {
				b.unblocks()
				equal(t, "the status", b.task("a").Status, Todo)
			}},
		{name: "blocked in its review: what was handed in is void", want: "reopened>ready; retracted blocked>blocked", when: reopenP,
			given: func(b *board) { built(b); reviewedBy("rev")(b); b.must(Block(b.id("a"), "x", "", b.limits, Writer{})) },
			then: func(t *testing.T, b *board, e []eventlog.Event) {
				stands(Blocked)(t, b, e)
				equal(t, "the reason stays", b.task("a").BlockReason, "x")
			}},
		{name: "put away", given: func(b *board) { built(b); b.must(Archive(b.id("a"), 0, "", "", Writer{})) }, when: reopenP, want: "reopened>ready", then: stands(Archived)},
		{name: "claimed, no worker yet", given: func(b *board) { built(b); b.claim("a") }, when: reopenP, want: "reopened>ready; reclaimed>todo; retracted running>todo",
			then: func(t *testing.T, b *board, e []eventlog.Event) {
				stands(Todo)(t, b, e)
				if _, err := b.try(operator, Register(b.registration("a", b.task("a").LastRun))); err == nil {
					t.Error("a supervisor that came late was let in (I3)")
				}
			}},
		{name: "claimed by hand", given: func(b *board) { built(b); b.manual("a", "ann", time.Hour) }, when: reopenP, want: "reopened>ready; reclaimed>todo; retracted running>todo", then: stands(Todo)},
		{name: "running: it is ended first", given: runs, when: reopenP, want: "reopened>ready; termination_requested>todo reopened",
			then: func(t *testing.T, b *board, _ []eventlog.Event) {
				equal(t, "the status", b.task("a").Status, Running)
				run := b.task("a").CurrentRun
				b.ends(run, 0)
				equal(t, "the status when it has ended", b.task("a").Status, Todo)
				equal(t, "the outcome", b.run(run).Outcome, OutReclaimed)
				equal(t, "the error", strings.HasPrefix(b.run(run).Error, "reopened: "+b.id("p")), true)
			}},
		{name: "running over its time: what is asked last counts", given: func(b *board) { runs(b); b.must(RequestEnd(EndRequest{Run: b.owner("a"), Reason: EndMaxRuntime})) },
			when: reopenP, want: "reopened>ready; termination_requested>todo reopened"},
		{name: "running, being cancelled: it stays cancelled", given: func(b *board) { runs(b); cancelled(b) }, when: reopenP, want: "reopened>ready"},
		{name: "running, asked before", given: func(b *board) { asked(b) }, when: reopenP, want: "reopened>ready"},
		{name: "being reviewed: the reviewer is ended, and what it looks at is void at once", given: reviewing, when: reopenP,
			want: "reopened>ready; termination_requested>todo reopened; retracted running>running",
			then: func(t *testing.T, b *board, _ []eventlog.Event) {
				run := b.task("a").CurrentRun
				for name, do := range map[string]Decider{
					"approve":         Approve(b.id("a"), Answer{}, 0, own(b)),
					"request-changes": RequestChanges(b.id("a"), "no", 0, b.limits, own(b)),
				} {
					if _, err := b.try(operator, do); err == nil || !strings.Contains(err.Error(), fmt.Sprintf("%s refused: what run %d reviews was taken back, since %s was reopened", name, run, b.id("p"))) {
						t.Errorf("%s: %v", name, err)
					}
				}
				b.done("p")
				b.ends(run, 0)
				equal(t, "the status when it has ended", b.task("a").Status, Ready)
			}},
		{name: "being reviewed and cancelled: not reviewed after an unblock", want: "reopened>ready; retracted running>running", when: reopenP,
			given: func(b *board) { reviewing(b); cancelled(b) },
			then: func(t *testing.T, b *board, _ []eventlog.Event) {
				b.ends(b.owner("a"), 0)
				equal(t, "the status when it has ended", b.task("a").Status, Blocked)
				b.done("p")
				b.unblocks()
				equal(t, "the status then", b.task("a").Status, Ready)
			}},
		{name: "an answer of a run that began before: not even if p is done again", given: asked, kind: ErrState, says: "is being ended: t_",
			when: func(b *board) Decider { return Complete(b.id("a"), Answer{}, own(b)) }},
		{name: "nor is it handed in", given: asked, kind: ErrState, says: "which its work was built on, was reopened",
			when: func(b *board) Decider { return RequestReview(b.id("a"), Answer{}, "", nil, own(b)) }},
		{name: "fail is an answer", given: asked, want: "failed>ready", when: func(b *board) Decider { return Fail(b.id("a"), "stop", b.limits, own(b)) },
			then: func(t *testing.T, b *board, _ []eventlog.Event) {
				b.ends(b.owner("a"), 0)
				equal(t, "the status when it has ended", b.task("a").Status, Ready)
			}},
		{name: "reclaim asks for nothing more", given: asked, says: "was asked to end before (reopened)",
			when: func(b *board) Decider { return Reclaim(b.id("a"), b.owner("a"), "x", "", false, Writer{}) }},
		{name: "p done again when it has ended: it begins anew", given: asked, want: "reclaimed>ready; retracted running>ready",
			when: func(b *board) Decider { return BookEnd(Ending{Run: b.owner("a"), Record: exited(0)}, b.limits) }},
		{name: "what linked itself to p while p was open and runs on", want: "reopened>ready", when: func(b *board) Decider { return Reopen(b.id("base"), "x", Writer{}) },
			given: func(b *board) {
				b.create("base")
				b.under("p", "base")
				b.done("base")
				card(b)
				b.must(Link(b.id("p"), b.id("a"), b.worker("a", b.start("a"))))
				b.must(Block(b.id("p"), "x", "", b.limits, Writer{}))
			},
			then: func(t *testing.T, b *board, _ []eventlog.Event) {
				equal(t, "asked to end", b.run(b.owner("a")).EndRequestedAt, 0)
			}},
	})
}

// A whole subtree is taken back, each card once, though not through what was put
// away; and it goes on again from the top.
func TestReopenAGrandparent(t *testing.T) {
	b := newBoard(t)
	b.create("top")
	b.under("left", "top")
	b.under("right", "top")
	b.under("away", "top")
	b.under("bottom", "left", "right")
	b.under("leaf", "bottom")
	b.under("beside", "away")
	b.create("other")
	b.done("top", "left", "right", "away", "bottom", "leaf", "beside", "other")
	b.must(Archive(b.id("away"), 0, "", "", Writer{}))
	head := b.head()
	b.must(Reopen(b.id("top"), "wrong", Writer{}))
	equal(t, "the commits", b.head().Commit, head.Commit+1)
	equal(t, "the events", len(b.since(head.Commit)), 5)
	want := map[string]string{
		"top": Ready, "left": Todo, "right": Todo, "bottom": Todo, "leaf": Todo, "away": Archived, "beside": Done, "other": Done,
	}
	for title, status := range want {
		equal(t, title, b.task(title).Status, status)
	}
	b.done("top", "right", "left", "bottom", "leaf")
	equal(t, "events of a second completion", b.task("leaf").Status, Done)
}
