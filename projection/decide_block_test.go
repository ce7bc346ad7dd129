package projection

import (
	"strings"
	"testing"
	"time"

	"kanlog/eventlog"
)

// blocks starts card a and lets its worker block it.
func (b *board) blocks(kind string, limit int64) {
	b.t.Helper()
	b.wait(time.Hour)
	run, l := b.start("a"), b.limits
	l.BlockLimit = limit
	b.must(Block(b.id("a"), "which port?", kind, l, b.worker("a", run)))
	b.ends(run, 0)
}

func (b *board) unblocks() { b.t.Helper(); b.must(Unblock(b.id("a"), Writer{})) }

func TestBlockForADependency(t *testing.T) {
	depends := func(w func(*board) Writer) func(*board) Decider {
		return func(b *board) Decider { return Block(b.id("a"), "sub-tasks", Dependency, b.limits, w(b)) }
	}
	nobody := func(*board) Writer { return Writer{} }
	// linked is card a at work, which has found out that it needs p.
	linked := func(b *board) { couple(b); b.must(Link(b.id("p"), b.id("a"), b.worker("a", b.start("a")))) }
	spent := func(b *board) {
		couple(b)
		b.attempt("a", 1)
		b.wait(time.Hour)
		run := b.start("a")
		b.must(Link(b.id("p"), b.id("a"), b.worker("a", run)))
		b.ends(run, 1)
	}
	decide(t, []decision{
		// C070: resume me when my sub-tasks are done.
		{name: "its worker, with an open parent: the card waits and goes on by itself", given: linked, when: depends(own), want: "blocked>todo",
			then: func(t *testing.T, b *board, _ []eventlog.Event) {
				c := b.task("a")
				equal(t, "the status", c.Status, Todo)
				equal(t, "the block", c.BlockKind+c.BlockReason, "")
				equal(t, "blocks that count", c.WorkerBlocks, 0)
				equal(t, "the outcome", b.run(c.LastRun).Outcome, OutBlocked)
				equal(t, "what the next attempt learns", b.run(c.LastRun).Summary, "sub-tasks")
				equal(t, "the worker stays on record", c.Worker, c.LastRun)
				b.done("p")
				equal(t, "the status then", b.task("a").Status, Ready)
				equal(t, "startable beside the old process", b.task("a").Startable(b.now), false)
				b.ends(c.LastRun, 0)
				equal(t, "startable when that is gone", b.task("a").Startable(b.now), true)
			}},
		{name: "its worker, nothing open: a person has to look", given: started, when: depends(own), want: "blocked",
			then: func(t *testing.T, b *board, events []eventlog.Event) {
				d := one[*eventlog.Blocked](t, events)
				equal(t, "the kind", d.BlockKind, NeedsInput)
				equal(t, "what was asked for", d.RequestedKind, Dependency)
				equal(t, "the status", b.task("a").Status, Blocked)
			}},
		{name: "its parent is done by now", given: func(b *board) { linked(b); b.done("p") }, when: depends(own), want: "blocked"},
		{name: "a card that waits already", given: waiting, when: depends(nobody), says: "waits already"},
		{name: "a card in triage", kind: ErrState, says: "in triage; it waits for what it depends on once", when: depends(nobody),
			given: func(b *board) {
				b.create("p")
				b.create("a", func(d *Draft) { d.Parents, d.Triage = []string{b.id("p")}, true })
			}},
		{name: "a card that gave up waits for what it lacks", given: spent, when: depends(nobody), want: "blocked>todo",
			then: func(t *testing.T, b *board, _ []eventlog.Event) { equal(t, "parked", b.task("a").ParkedLimit, 0) }},
		{name: "a card that gave up is held by a word about its kind", given: func(b *board) { card(b); b.attempt("a", 1); b.attempt("a", 1) }, want: "blocked",
			when: func(b *board) Decider { return Block(b.id("a"), "no key", Capability, b.limits, Writer{}) },
			then: func(t *testing.T, b *board, _ []eventlog.Event) {
				equal(t, "parked", b.task("a").ParkedLimit, 0)
				equal(t, "the kind", b.task("a").BlockKind, Capability)
			}},
		{name: "a card that gave up, without a kind", given: func(b *board) { card(b); b.attempt("a", 1); b.attempt("a", 1) }, kind: ErrState, says: "blocked before: 2 of 2",
			when: func(b *board) Decider { return Block(b.id("a"), "no key", "", b.limits, Writer{}) }},
	})
}

func TestBlockLoop(t *testing.T) {
	block := func(kind string, limit int64) func(*board) Decider {
		return func(b *board) Decider {
			l := b.limits
			l.BlockLimit = limit
			return Block(b.id("a"), "which port?", kind, l, own(b))
		}
	}
	after := func(kinds ...string) func(*board) {
		return func(b *board) {
			card(b)
			for _, k := range kinds {
				b.blocks(k, 0)
				b.unblocks()
			}
			b.wait(time.Hour)
			b.start("a")
		}
	}
	triage := func(t *testing.T, b *board, events []eventlog.Event) {
		d := one[*eventlog.BlockLoop](t, events)
		equal(t, "times, of", [2]int64{d.Times, d.Limit}, [2]int64{3, 3})
		equal(t, "the status", b.task("a").Status, Triage)
		why, err := b.view().Why(b.task("a"), b.now, Admission{})
		if err != nil || !strings.Contains(why, "blocked it 3 times for the same kind of reason (needs_input: which port?)") || !strings.Contains(why, "kanlog promote") {
			t.Errorf("why: %q, %v", why, err)
		}
	}
	decide(t, []decision{
		{name: "the third time, whoever unblocked it", given: after("", NeedsInput), when: block("", 3), want: "blocked; block_loop_detected", then: triage},
		{name: "the second", given: after(""), when: block("", 3), want: "blocked"},
		{name: "another kind between", given: after("", Transient), when: block("", 2), want: "blocked",
			then: func(t *testing.T, b *board, _ []eventlog.Event) { equal(t, "times", b.task("a").WorkerBlocks, 1) }},
		{name: "a dependency that could not be had counts as what it became", given: after("", Dependency), when: block("", 3), want: "blocked; block_loop_detected"},
		{name: "no limit", given: after("", "", "", "", ""), when: block("", 0), want: "blocked",
			then: func(t *testing.T, b *board, _ []eventlog.Event) { equal(t, "times", b.task("a").WorkerBlocks, 6) }},
		{name: "a failure between does not help", want: "blocked; block_loop_detected", when: block("", 2),
			given: func(b *board) { after("")(b); b.ends(b.task("a").CurrentRun, 1); b.wait(time.Hour); b.start("a") }},
		{name: "a completion between begins anew", want: "blocked", when: block("", 2),
			given: func(b *board) {
				after("")(b)
				run := b.task("a").CurrentRun
				b.must(Complete(b.id("a"), Answer{}, b.worker("a", run)))
				b.ends(run, 0)
				b.must(Reopen(b.id("a"), "wrong", Writer{}))
				b.start("a")
			}},
		{name: "a person's block does not count", want: "blocked", when: block("", 2),
			given: func(b *board) {
				card(b)
				for range 3 {
					b.must(Block(b.id("a"), "later", "", b.limits, Writer{}))
					b.unblocks()
				}
				b.start("a")
			}},
		{name: "out of triage it begins anew", want: "blocked", when: block("", 2),
			given: func(b *board) {
				card(b)
				b.blocks("", 2)
				b.unblocks()
				b.blocks("", 2)
				b.must(Promote(b.id("a"), Writer{}))
				b.start("a")
			}},
	})
}

func TestUnblockOutOfAReview(t *testing.T) {
	unblock := func(b *board) Decider { return Unblock(b.id("a"), Writer{}) }
	held := func(b *board) { reviewedBy("rev")(b); b.must(Block(b.id("a"), "x", "", b.limits, Writer{})) }
	decide(t, []decision{
		{name: "it goes back to its review", given: held, when: unblock, want: "unblocked>review",
			then: func(t *testing.T, b *board, _ []eventlog.Event) { equal(t, "in review", b.task("a").ReviewedRun, 2) }},
		{name: "by hand", given: held, when: func(b *board) Decider { return Promote(b.id("a"), Writer{}) }, want: "promoted>review by_hand"},
		{name: "after the reviewer failed too often", want: "unblocked>review", when: unblock,
			given: func(b *board) {
				reviewedBy("rev")(b)
				for range 2 {
					b.wait(time.Hour)
					b.ends(b.startReview("a"), 1)
				}
			}},
		{name: "by its worker", given: started, kind: ErrState, says: "not blocked but running", when: func(b *board) Decider { return Unblock(b.id("a"), own(b)) }},
	})
}
