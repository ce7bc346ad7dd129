package projection

import (
	"testing"
	"time"

	"kanlog/eventlog"
)

func TestCancel(t *testing.T) {
	cancel := func(b *board) Decider { return Cancel(b.id("a"), b.owner("a"), "not needed", "alive", Writer{}) }
	held := func(t *testing.T, b *board, _ []eventlog.Event) {
		equal(t, "the status", b.task("a").Status, Blocked)
		equal(t, "what an operator is told", b.task("a").BlockReason, "cancelled: not needed")
		equal(t, "the limit it is parked under (0: only an operator frees it)", b.task("a").ParkedLimit, 0)
	}
	card := func(b *board) { b.create("a") }
	started := func(b *board) { card(b); b.start("a") }
	asked := func(reason string) func(b *board) {
		return func(b *board) { started(b); b.must(RequestEnd(EndRequest{Run: 2, Reason: reason})) }
	}
	decide(t, []decision{
		{name: "a card that waits", given: card, when: cancel, want: "blocked", then: held},
		{name: "a card in triage", given: func(b *board) { b.create("a", func(d *Draft) { d.Triage = true }) }, when: cancel, want: "blocked", then: held},
		{name: "a claim without a worker", given: func(b *board) { card(b); b.claim("a") }, when: cancel, want: "reclaimed>blocked; blocked", then: held},
		{name: "a manual claim", given: func(b *board) { card(b); b.manual("a", "ann", time.Hour) }, when: cancel, want: "reclaimed>blocked; blocked", then: held},
		{name: "a live worker: its end is requested, the card stays running", given: started, when: cancel, want: "termination_requested>blocked cancel",
			then: func(t *testing.T, b *board, _ []eventlog.Event) { equal(t, "the status", b.task("a").Status, Running) }},
		{name: "again", given: func(b *board) { started(b); b.must(cancel(b)) }, when: cancel, says: "asked to end before (cancel)"},
		{name: "after max runtime asked: the operator's word overrides", given: asked(EndMaxRuntime), when: cancel, want: "termination_requested>blocked cancel"},
		{name: "after a reclaim", given: asked(EndReclaim), when: cancel, want: "termination_requested>blocked cancel"},
		{name: "of an orphan", given: asked(EndOrphaned), when: cancel, want: "termination_requested>blocked cancel"},
		{name: "a worker that lives on after fail: held at once, and ended",
			given: func(b *board) { started(b); b.must(Fail(b.id("a"), "no", b.limits, b.worker("a", 2))) },
			when:  cancel, want: "blocked; termination_requested> reclaim", then: held},
		{name: "a plain gave_up becomes one that only an operator lifts",
			given: func(b *board) { card(b); b.attempt("a", 1); b.attempt("a", 1) }, when: cancel, want: "blocked", then: held},
		{name: "held already", given: func(b *board) { card(b); b.must(Block(b.id("a"), "why?", "", DefaultLimits(), Writer{})) }, when: cancel, says: "held before: why?"},
		{name: "done", given: func(b *board) { card(b); b.must(Complete(b.id("a"), Answer{}, Writer{})) }, when: cancel, kind: ErrState, says: "done; there is nothing to cancel"},
		{name: "archived", given: func(b *board) { card(b); b.must(Archive(b.id("a"), 0, "", "", Writer{})) }, when: cancel, kind: ErrState, says: "archived; there is nothing to cancel"},
		{name: "by its own worker", given: started,
			when: func(b *board) Decider { return Cancel(b.id("a"), 2, "", "", b.worker("a", 2)) }, kind: ErrState, says: "does not cancel its own card"},
		{name: "of a card that went on to another run since it was looked at", given: func(b *board) { card(b); b.attempt("a", 1); b.wait(time.Hour); b.start("a") },
			when: func(b *board) Decider { return Cancel(b.id("a"), 2, "", "", Writer{}) }, kind: ErrState, says: "has begun meanwhile"},
	})
}

func TestArchive(t *testing.T) {
	archive := func(b *board) Decider { return Archive(b.id("a"), b.owner("a"), "old", "alive", Writer{}) }
	away := func(t *testing.T, b *board, _ []eventlog.Event) {
		equal(t, "the status", b.task("a").Status, Archived)
	}
	card := func(b *board) { b.create("a") }
	started := func(b *board) { card(b); b.start("a") }
	child := func(b *board) { b.create("child", func(d *Draft) { d.Parents = []string{b.id("a")} }) }
	decide(t, []decision{
		{name: "a card that waits", given: card, when: archive, want: "archived", then: away},
		{name: "its children wait no longer", given: func(b *board) { card(b); child(b) }, when: archive, want: "archived; promoted>ready parents_done", then: away},
		{name: "done", given: func(b *board) { card(b); b.must(Complete(b.id("a"), Answer{}, Writer{})) }, when: archive, want: "archived", then: away},
		{name: "held back", given: func(b *board) { card(b); b.attempt("a", 1) }, when: archive, want: "archived", then: func(t *testing.T, b *board, _ []eventlog.Event) {
			equal(t, "its hold", b.task("a").HoldUntil, 0)
		}},
		{name: "given up", given: func(b *board) { card(b); b.attempt("a", 1); b.attempt("a", 1) }, when: archive, want: "archived", then: func(t *testing.T, b *board, _ []eventlog.Event) {
			equal(t, "the cards a raised limit would free", len(b.view().Parked(100)), 0)
		}},
		{name: "a claim without a worker", given: func(b *board) { card(b); b.claim("a") }, when: archive, want: "reclaimed>ready; archived", then: away},
		{name: "a live worker: its end is requested, the card stays running", given: func(b *board) { started(b); child(b) }, when: archive, want: "termination_requested>archived archive",
			then: func(t *testing.T, b *board, _ []eventlog.Event) {
				equal(t, "the status", b.task("a").Status, Running)
				equal(t, "that of its child", b.task("child").Status, Todo)
			}},
		{name: "again while it ends", given: func(b *board) { started(b); b.must(archive(b)) }, when: archive, says: "asked to end before (archive)"},
		{name: "after a cancel: the last word counts", given: func(b *board) { started(b); b.must(Cancel(b.id("a"), 2, "", "", Writer{})) }, when: archive, want: "termination_requested>archived archive"},
		{name: "a worker that lives on after its answer: put away at once, and ended",
			given: func(b *board) { started(b); b.must(Complete(b.id("a"), Answer{}, b.worker("a", 2))) },
			when:  archive, want: "archived; termination_requested> reclaim", then: away},
		{name: "again", given: func(b *board) { card(b); b.must(archive(b)) }, when: archive, says: "archived before"},
		{name: "by its own worker", given: started,
			when: func(b *board) Decider { return Archive(b.id("a"), 2, "", "", b.worker("a", 2)) }, kind: ErrState, says: "does not archive its own card"},
	})
}

// What was wished for a card holds when its processes are gone, whatever its
// worker said to its SIGTERM.
func TestEndsThatWereWishedFor(t *testing.T) {
	cancel := func(b *board) { b.must(Cancel(b.id("a"), 2, "enough", "alive", Writer{})) }
	archive := func(b *board) { b.must(Archive(b.id("a"), 2, "enough", "alive", Writer{})) }
	reclaim := func(b *board) { b.must(Reclaim(b.id("a"), 2, "enough", "alive", false, Writer{})) }
	completes := func(b *board) { b.must(Complete(b.id("a"), Answer{}, b.worker("a", 2))) }
	fails := func(b *board) { b.must(Fail(b.id("a"), "told to end", b.limits, b.worker("a", 2))) }
	defers := func(b *board) { b.must(Defer(b.id("a"), time.Hour, "", b.limits, b.worker("a", 2))) }
	blocks := func(b *board) { b.must(Block(b.id("a"), "why?", "", DefaultLimits(), b.worker("a", 2))) }
	lastFails := func(b *board) {
		l := b.limits
		l.FailureLimit = 1
		b.must(Fail(b.id("a"), "told to end", l, b.worker("a", 2)))
	}
	unblocks := func(b *board) { b.must(Unblock(b.id("a"), Writer{})) }
	gone := func(*board) Decider { return BookEnd(Ending{Run: 2, Record: exited(143)}, DefaultLimits()) }
	forced := func(b *board) Decider { return Reclaim(b.id("a"), 2, "it hangs", "held", true, Writer{}) }
	for _, c := range []struct {
		name   string
		steps  []func(*board)
		end    func(*board) Decider
		want   string
		status string
	}{
		{"cancelled", []func(*board){cancel}, gone, "reclaimed>blocked; blocked", Blocked},
		{"archived", []func(*board){archive}, gone, "reclaimed>ready; archived; promoted>ready parents_done", Archived},
		{"reclaimed", []func(*board){reclaim}, gone, "reclaimed>ready", Ready},
		{"reclaimed, then cancelled", []func(*board){reclaim, cancel}, gone, "reclaimed>blocked; blocked", Blocked},
		{"cancelled, then reclaimed", []func(*board){cancel, reclaim}, gone, "reclaimed>ready", Ready},
		{"cancelled, and it completes", []func(*board){cancel, completes}, gone, "terminal_worker_reaped", Done},
		{"cancelled, and it fails", []func(*board){cancel, fails}, gone, "terminal_worker_reaped; blocked", Blocked},
		{"cancelled, and it defers", []func(*board){cancel, defers}, gone, "terminal_worker_reaped; blocked", Blocked},
		{"cancelled, and it blocks", []func(*board){cancel, blocks}, gone, "terminal_worker_reaped", Blocked},
		{"cancelled, and it fails for the last time", []func(*board){cancel, lastFails}, gone, "terminal_worker_reaped; blocked", Blocked},
		{"cancelled, it blocks, and is unblocked", []func(*board){cancel, blocks, unblocks}, gone, "terminal_worker_reaped", Ready},
		{"cancelled, it fails for the last time, and is unblocked", []func(*board){cancel, lastFails, unblocks}, gone, "terminal_worker_reaped", Ready},
		{"archived, and it completes", []func(*board){archive, completes}, gone, "terminal_worker_reaped; archived", Archived},
		{"archived, and it fails", []func(*board){archive, fails}, gone, "terminal_worker_reaped; archived; promoted>ready parents_done", Archived},
		{"reclaimed, and it fails", []func(*board){reclaim, fails}, gone, "terminal_worker_reaped", Ready},
		{"cancelled, and released by force", []func(*board){cancel}, forced, "reclaimed>blocked forced; blocked", Blocked},
		{"archived, and released by force", []func(*board){archive}, forced, "reclaimed>ready forced; archived; promoted>ready parents_done", Archived},
		{"cancelled, it fails, and is released by force", []func(*board){cancel, fails}, forced, "exited; blocked", Blocked},
	} {
		t.Run(c.name, func(t *testing.T) {
			decision{given: func(b *board) {
				b.create("a")
				b.start("a")
				b.create("child", func(d *Draft) { d.Parents = []string{b.id("a")} })
				for _, step := range c.steps {
					step(b)
				}
			}, when: c.end, want: c.want, then: func(t *testing.T, b *board, _ []eventlog.Event) {
				equal(t, "the status", b.task("a").Status, c.status)
				equal(t, "the run that owns it", b.task("a").Owner(), 0)
				if c.status == Blocked {
					equal(t, "the limit it is parked under (0: only an operator frees it)", b.task("a").ParkedLimit, 0)
				}
			}}.check(t)
		})
	}
}

// An operator's second word must not put off the kill: the graces count from
// the first request.
func TestASecondRequestKeepsTheGrace(t *testing.T) {
	b := newBoard(t)
	b.create("a")
	run := b.start("a")
	b.must(Reclaim(b.id("a"), run, "x", "alive", false, Writer{}))
	first := b.now
	b.wait(time.Minute)
	b.must(Cancel(b.id("a"), run, "", "alive", Writer{}))
	equal(t, "the end is requested since", b.run(run).EndRequestedAt, first)
	equal(t, "for", b.run(run).EndReason, EndCancel)
}

// A key belongs to a card until it is archived.
func TestArchiveGivesTheKeyBack(t *testing.T) {
	b := newBoard(t)
	keyed := func(d *Draft) { d.Key = "once" }
	first := b.create("a", keyed)
	b.must(Archive(first, 0, "", "", Writer{}))
	second := b.must(Create(draft("another", keyed), Writer{})).Task
	if second == first {
		t.Fatal("the key of an archived card still makes that card")
	}
	equal(t, "the card of the key from now on", b.must(Create(draft("another", keyed), Writer{})).Task, second)
}
