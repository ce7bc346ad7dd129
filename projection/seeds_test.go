package projection

import "testing"

// What docs/seeds.md says of the invariants of the reference, and what no other
// test shows.

// That an end waits is on record once for a run and a reason; the next run that
// waits for the same reason says so again.
func TestTheNextRunIsDeferredAnew(t *testing.T) {
	b := newBoard(t)
	b.limits.RetryBackoff = 0
	b.create("a")
	deferred := func() int {
		run := b.start("a")
		b.must(RequestEnd(EndRequest{Run: run, Reason: EndMaxRuntime}))
		n := 0
		for range 3 {
			n += len(b.must(DeferEnd(run, "unreadable", "held", 0)).Commit.Events)
		}
		b.must(BookEnd(Ending{Run: run}, b.limits))
		return n
	}
	b.limits.FailureLimit = 9
	equal(t, "events of the first run", deferred(), 1)
	equal(t, "events of the second run", deferred(), 1)
}

// Who blocked a card on purpose waits for a person, not for its parents.
func TestABlockStaysWhenTheParentsAreDone(t *testing.T) {
	b := newBoard(t)
	b.create("parent")
	b.create("held", func(d *Draft) { d.Parents, d.Blocked, d.BlockReason = []string{b.id("parent")}, true, "ask ann" })
	b.create("waits", func(d *Draft) { d.Parents = []string{b.id("parent")} })
	b.must(Block(b.id("waits"), "ask ann, too", "", DefaultLimits(), Writer{}))
	b.create("free", func(d *Draft) { d.Parents = []string{b.id("parent")} })
	b.must(Complete(b.id("parent"), Answer{}, Writer{}))
	equal(t, "a child that only waited", b.task("free").Status, Ready)
	for _, title := range []string{"held", "waits"} {
		equal(t, title, b.task(title).Status, Blocked)
		b.must(PromoteDue(b.id(title)))
		b.must(PromoteParked(b.id(title), b.limits))
		equal(t, title+", after a tick", b.task(title).Status, Blocked)
		b.must(Unblock(b.id(title), Writer{}))
		equal(t, title+", unblocked", b.task(title).Status, Ready)
	}
}
