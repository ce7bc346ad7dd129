package projection

import "testing"

// A run that was taken away from a worker that lives on (reclaim --force) is over
// for it beside its own card too: what it would create or say now belongs to an
// attempt that somebody else has been told to make.
func TestARunTakenAwayWritesNothingAside(t *testing.T) {
	taken := func(b *board) {
		b.create("a")
		b.create("x")
		b.start("x")
		b.must(Reclaim(b.id("x"), b.owner("x"), "it hangs", "held", true, Writer{}))
	}
	own := func(b *board) Writer { return b.worker("x", b.task("x").LastRun) }
	decide(t, []decision{
		{name: "create", given: taken, want: "fenced", kind: ErrFenced, says: "is not open any more (it ended as reclaimed",
			when: func(b *board) Decider { return Create(draft("new"), own(b)) }},
		{name: "comment on another card", given: taken, want: "fenced", kind: ErrFenced, says: "is not open any more (it ended as reclaimed",
			when: func(b *board) Decider { return AddComment(b.id("a"), "x", "hello", own(b)) }},
	})
}
