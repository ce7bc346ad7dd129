package projection

import (
	"errors"
	"testing"
	"time"

	"kanlog/eventlog"
)

func TestWork(t *testing.T) {
	noLock := errors.New("no lock")
	asked := 0
	work := func(with ...func(*ClaimFor)) func(b *board) Decider {
		return func(b *board) Decider {
			c := b.claimFor("a")
			c.Origin, c.Holder = "", "ann"
			for _, f := range with {
				f(&c)
			}
			asked = 0
			return Work(c, func(run uint64) (Registration, error) {
				asked++
				g := b.registration("a", run)
				g.Task, g.Run = "", 0 // they are Work's to know
				return g, nil
			}, Writer{})
		}
	}
	none := func(t *testing.T, b *board, _ []eventlog.Event) { equal(t, "locks taken for a refusal", asked, 0) }
	decide(t, []decision{
		{name: "claimed and registered in one commit", given: card, when: work(), want: "claimed; spawned",
			then: func(t *testing.T, b *board, events []eventlog.Event) {
				r := b.run(b.task("a").CurrentRun)
				equal(t, "the run", r.ID, events[1].Run)
				equal(t, "the run is the claim's number", r.ID, b.head().Seq-1)
				equal(t, "commits", b.head().Commit, 2)
				equal(t, "its origin", r.Origin, OriginWork)
				equal(t, "its holder", r.Holder, "ann")
				equal(t, "its supervisor", r.PID, 1000+int(r.ID))
				equal(t, "its lease", r.ClaimExpires, b.now.Add(15*time.Minute))
				equal(t, "its state", r.State(), StateRunning)
			}},
		{name: "the same supervisor may say so again", given: card, want: "claimed; spawned", when: work(),
			then: func(t *testing.T, b *board, _ []eventlog.Event) {
				run := b.task("a").CurrentRun
				equal(t, "the note", b.must(Register(b.registration("a", run))).Note, "registered before")
			}},
		{name: "caps do not refuse a person", given: func(b *board) { card(b); b.create("x"); b.claim("x") },
			when: work(func(c *ClaimFor) { c.Caps = Caps{Board: 1, Profile: 1} }), want: "claimed; spawned"},
		{name: "its run counts against the caps of others", given: func(b *board) {
			card(b)
			b.create("x")
			b.must(work()(b))
		}, when: func(b *board) Decider {
			c := b.claimFor("x")
			c.Caps.Board = 1
			return Claim(c, Writer{})
		}, kind: ErrState, says: "cap is reached: 1 of 1"},
		{name: "a review", want: "claimed; spawned", given: func(b *board) {
			card(b)
			b.must(RequestReview(b.id("a"), Answer{}, "critic", nil, Writer{}))
		}, when: work(func(c *ClaimFor) { c.Assignee = "critic" }),
			then: func(t *testing.T, b *board, _ []eventlog.Event) {
				equal(t, "the lane", b.run(b.task("a").CurrentRun).Lane, LaneReview)
			}},
		{name: "on a paused board", given: func(b *board) { card(b); b.must(PauseBoard("new kernel", Writer{})) },
			when: work(), kind: ErrState, says: "new kernel", then: none},
		{name: "held by a back-off", kind: ErrState, says: "back-off", then: none, when: work(), given: func(b *board) {
			card(b)
			b.must(Fail(b.id("a"), "no", b.limits, b.worker("a", b.start("a"))))
			b.must(BookEnd(Ending{Run: b.task("a").LastRun}, b.limits))
		}},
		{name: "before its time", given: func(b *board) { b.create("a", func(d *Draft) { d.NotBefore = b.now + 1 }) },
			when: work(), kind: ErrState, says: "scheduled", then: none},
		{name: "assigned to another since", given: func(b *board) { card(b); b.must(Assign(b.id("a"), "other", Writer{})) },
			when: work(func(c *ClaimFor) { c.Assignee = "coder" }), kind: ErrState, says: `assigned to "other" by now`, then: none},
		{name: "another pull worker has it", given: func(b *board) { card(b); b.must(work()(b)) },
			when: work(), kind: ErrState, says: "already claimed by ann, run 2", then: none},
		{name: "its lock cannot be taken", given: card, kind: noLock, says: "no lock", when: func(b *board) Decider {
			return Work(b.claimFor("a"), func(uint64) (Registration, error) { return Registration{}, noLock }, Writer{})
		}},
		{name: "in a worker of another card", kind: ErrFenced, says: "may not claim another card",
			given: func(b *board) { card(b); b.create("x"); b.start("x") },
			when: func(b *board) Decider {
				return Work(b.claimFor("a"), nil, b.worker("x", b.task("x").CurrentRun))
			}},
	})
}

// A pull worker's command is not the profile's: it neither trips the breaker of its
// assignee nor says that the profile works again.
func TestWorkSaysNothingAboutTheProfile(t *testing.T) {
	for _, outcome := range []string{OutCompleted, OutFailed, OutTimedOut} {
		how, breaks := alikeness(&Run{Origin: OriginWork, Outcome: outcome})
		equal(t, outcome+": how", how, "")
		equal(t, outcome+": breaks", breaks, false)
	}
}
