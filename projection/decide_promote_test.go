package projection

import (
	"testing"
	"time"

	"kanlog/eventlog"
)

func TestPromoteByHand(t *testing.T) {
	promote := func(b *board) Decider { return Promote(b.id("a"), Writer{}) }
	decide(t, []decision{
		{name: "out of triage", given: everyStatus[Triage], when: promote, want: "promoted>ready by_hand"},
		{name: "before its time, which it forgets", given: everyStatus[Scheduled], when: promote, want: "promoted>ready by_hand",
			then: func(t *testing.T, b *board, _ []eventlog.Event) {
				equal(t, "due", b.task("a").NotBefore, 0)
				equal(t, "startable", b.task("a").Startable(b.now), true)
			}},
		{name: "a card that gave up, with a fresh budget", given: func(b *board) { card(b); b.attempt("a", 1); b.attempt("a", 1) }, when: promote, want: "promoted>ready by_hand",
			then: func(t *testing.T, b *board, _ []eventlog.Event) {
				c, err := b.view().CountsOf(b.task("a"))
				equal(t, "failures", c.Failures, 0)
				equal(t, "the error", err, nil)
				equal(t, "parked", b.task("a").ParkedLimit, 0)
			}},
		{name: "a card blocked by a person", given: everyStatus[Blocked], when: promote, want: "promoted>ready by_hand",
			then: func(t *testing.T, b *board, _ []eventlog.Event) {
				equal(t, "the reason", b.task("a").BlockReason, "")
			}},
		{name: "beside an open parent: it says which", given: func(b *board) { waiting(b); b.must(Block(b.id("p"), "no key", "", b.limits, Writer{})) }, when: promote,
			kind: ErrState, says: "(blocked: no key); complete, archive or unlink what it waits for first"},
		{name: "a blocked card beside an open parent", given: func(b *board) { waiting(b); b.must(Block(b.id("a"), "x", "", b.limits, Writer{})) }, when: promote, kind: ErrState, says: "waits for t_"},
		{name: "in triage beside an open parent", kind: ErrState, says: "waits for t_", when: promote,
			given: func(b *board) {
				b.create("p")
				b.create("a", func(d *Draft) { d.Parents, d.Triage = []string{b.id("p")}, true })
			}},
		{name: "beside many open parents: a few are named", kind: ErrState, says: ", 2 more; complete", when: promote,
			given: func(b *board) {
				for _, p := range []string{"1", "2", "3", "4", "5", "6", "7"} {
					b.create(p)
				}
				b.under("a", "1", "2", "3", "4", "5", "6", "7")
			}},
		{name: "beside six: the sixth is one more", kind: ErrState, says: ", 1 more; complete", when: promote,
			given: func(b *board) {
				for _, p := range []string{"1", "2", "3", "4", "5", "6"} {
					b.create(p)
				}
				b.under("a", "1", "2", "3", "4", "5", "6")
			}},
		{name: "ready, with what holds it", given: func(b *board) { card(b); b.ends(b.start("a"), 1) }, when: promote, kind: ErrState, says: "ready already: back-off until 2023-"},
		{name: "by its own worker", given: started, when: func(b *board) Decider { return Promote(b.id("a"), own(b)) }, kind: ErrState, says: "a worker does not promote its own card"},
		{name: "beside the process of its last run: it starts when that is gone", want: "promoted>ready by_hand", when: promote,
			given: func(b *board) { started(b); b.must(Block(b.id("a"), "x", "", b.limits, own(b))) },
			then: func(t *testing.T, b *board, _ []eventlog.Event) {
				equal(t, "startable", b.task("a").Startable(b.now), false)
				b.ends(2, 0)
				equal(t, "startable then", b.task("a").Startable(b.now), true)
			}},
		{name: "the later word beats a cancel that is still under way", want: "promoted>ready by_hand; termination_requested> reclaim", when: promote,
			given: func(b *board) {
				started(b)
				b.must(Cancel(b.id("a"), 2, "", "", Writer{}))
				b.must(Block(b.id("a"), "x", "", b.limits, own(b)))
			},
			then: func(t *testing.T, b *board, _ []eventlog.Event) {
				b.ends(2, 0)
				equal(t, "the status when the process is gone", b.task("a").Status, Ready)
			}},
	})
}

func TestPromoteDueIntoAReview(t *testing.T) {
	due := func(b *board) Decider { return PromoteDue(b.id("a")) }
	decide(t, []decision{
		{name: "a review that was put off", want: "promoted>review due", when: due,
			given: func(b *board) {
				reviewedBy("rev")(b)
				b.must(Defer(b.id("a"), time.Hour, "", b.limits, Writer{}))
				b.wait(time.Hour)
			}},
		{name: "not before", when: due, given: func(b *board) { reviewedBy("rev")(b); b.must(Defer(b.id("a"), time.Hour, "", b.limits, Writer{})) }},
	})
}
