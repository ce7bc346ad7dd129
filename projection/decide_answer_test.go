package projection

import (
	"strings"
	"testing"
	"time"

	"kanlog/eventlog"
)

func started(b *board) { card(b); b.start("a") }

// own is the worker of card a's open run.
func own(b *board) Writer { return b.worker("a", b.task("a").LastRun) }

func TestComplete(t *testing.T) {
	complete := func(b *board) Decider { return Complete(b.id("a"), Answer{Summary: "did it"}, own(b)) }
	byOperator := func(b *board) Decider { return Complete(b.id("a"), Answer{}, Writer{}) }
	with := func(a Answer) func(*board) Decider {
		return func(b *board) Decider { return Complete(b.id("a"), a, own(b)) }
	}
	decide(t, []decision{
		{name: "by its worker", given: started, when: complete, want: "completed by answer",
			then: func(t *testing.T, b *board, events []eventlog.Event) {
				c, r := b.task("a"), b.run(2)
				equal(t, "the status", c.Status, Done)
				equal(t, "the open run", c.CurrentRun, 0)
				equal(t, "the worker stays on record", c.Worker, 2)
				equal(t, "the outcome", r.Outcome, OutCompleted)
				equal(t, "the result", c.Result, "did it")
			}},
		{name: "frees the children that waited only for it, in the same commit",
			given: func(b *board) {
				started(b)
				b.create("other")
				b.create("child", func(d *Draft) { d.Parents = []string{b.id("a")} })
				b.create("later", func(d *Draft) { d.Parents = []string{b.id("a")}; d.NotBefore = b.now.Add(time.Hour) })
				b.create("both", func(d *Draft) { d.Parents = []string{b.id("a"), b.id("other")} })
				b.create("parked", func(d *Draft) {
					d.Parents, d.Blocked, d.BlockReason = []string{b.id("a")}, true, "wait"
				})
			},
			// In the order of the children's ids.
			when: complete, want: "completed by answer; promoted>scheduled parents_done; promoted>ready parents_done",
			then: func(t *testing.T, b *board, events []eventlog.Event) {
				equal(t, "child", b.task("child").Status, Ready)
				equal(t, "later", b.task("later").Status, Scheduled)
				equal(t, "both", b.task("both").Status, Todo)
				equal(t, "parked", b.task("parked").Status, Blocked)
			}},
		{name: "a card that nobody claimed opens and closes a run of its own", given: card, when: byOperator, want: "completed by answer",
			then: func(t *testing.T, b *board, events []eventlog.Event) {
				r := b.run(2)
				equal(t, "the run's outcome", r.Outcome, OutCompleted)
				equal(t, "the newest run", b.task("a").LastRun, 2)
				equal(t, "the open run", b.task("a").CurrentRun, 0)
			}},
		{name: "a manual claim, by an operator", given: func(b *board) { card(b); b.manual("a", "ann", time.Hour) }, when: byOperator, want: "completed by answer",
			then: func(t *testing.T, b *board, events []eventlog.Event) {
				equal(t, "the run's outcome", b.run(2).Outcome, OutCompleted)
			}},
		{name: "blocked before", given: func(b *board) { card(b); b.must(Block(b.id("a"), "x", "", DefaultLimits(), Writer{})) }, when: byOperator, want: "completed by answer",
			then: func(t *testing.T, b *board, events []eventlog.Event) {
				equal(t, "the block", b.task("a").BlockReason, "")
			}},
		{name: "an answer arrives after the end was requested: the answer wins", when: complete, want: "completed by answer",
			given: func(b *board) { started(b); b.must(RequestEnd(EndRequest{Run: 2, Reason: EndMaxRuntime})) }},
		{name: "a dispatched run from outside", given: started, when: byOperator, kind: ErrState, says: "running (run 2); use reclaim"},
		{name: "a dispatched run that has no worker yet, from outside", given: func(b *board) { card(b); b.claim("a") }, when: byOperator, kind: ErrState, says: "running (run 2)"},
		{name: "an operator who names the run answers for its worker", given: started, want: "completed by answer",
			when: func(b *board) Decider { return Complete(b.id("a"), Answer{}, Writer{Run: 2}) }},
		{name: "a parent is open", kind: ErrState, says: "cannot be done before its parent",
			given: func(b *board) { b.create("p"); b.create("a", func(d *Draft) { d.Parents = []string{b.id("p")} }) }, when: byOperator},
		{name: "the process of an earlier run may live", kind: ErrState, says: "the process of run 2 has not ended",
			given: func(b *board) { started(b); b.must(Fail(b.id("a"), "no", b.limits, own(b))) }, when: byOperator},
		{name: "done before", given: func(b *board) { card(b); b.must(Complete(b.id("a"), Answer{}, Writer{})) }, when: byOperator, kind: ErrState, says: "already done"},
		{name: "twice by the same worker", given: func(b *board) { started(b); b.must(Complete(b.id("a"), Answer{}, own(b))) }, when: complete,
			kind: ErrFenced, says: "run 2 is not open any more (it ended as completed", want: "fenced"},
		{name: "by a run that nobody had", given: card, kind: ErrFenced, says: "no run 999 is open (the card never had such a run",
			when: func(b *board) Decider { return Complete(b.id("a"), Answer{}, Writer{Run: 999}) }},
		{name: "no such card", given: card, kind: ErrNotFound, says: "t_none",
			when: func(*board) Decider { return Complete("t_none", Answer{}, Writer{}) }},
		{name: "a summary too long", given: started, when: with(Answer{Summary: strings.Repeat("x", MaxSummary+1)}), kind: ErrInvalid, says: "the summary has 16385 bytes"},
		{name: "a result that is no text", given: started, when: with(Answer{Result: "\xff"}), kind: ErrInvalid, says: "not valid UTF-8"},
		{name: "a result with NUL", given: started, when: with(Answer{Result: "a\x00"}), kind: ErrInvalid, says: "NUL byte at offset 1"},
		{name: "metadata that is not JSON", given: started, when: with(Answer{Metadata: []byte("{")}), kind: ErrInvalid, says: "not JSON"},
		{name: "metadata that is not UTF-8", given: started, when: with(Answer{Metadata: []byte("{\"a\":\"\xff\"}")}), kind: ErrInvalid, says: "not JSON in UTF-8"},
		{name: "metadata too long", given: started, when: with(Answer{Metadata: []byte(`"` + strings.Repeat("x", MaxMetadata) + `"`)}), kind: ErrInvalid, says: "the metadata has"},
		{name: "metadata stays as it was given", given: started, when: with(Answer{Metadata: []byte(`{ "n": 1.0e3 }`)}), want: "completed by answer",
			then: func(t *testing.T, b *board, events []eventlog.Event) {
				equal(t, "the metadata", string(b.run(2).Metadata), `{ "n": 1.0e3 }`)
			}},
	})
}

func TestFail(t *testing.T) {
	fail := func(b *board) Decider { return Fail(b.id("a"), "no such file", b.limits, own(b)) }
	decide(t, []decision{
		{name: "counts and waits", given: started, when: fail, want: "failed>ready",
			then: func(t *testing.T, b *board, events []eventlog.Event) {
				c := b.task("a")
				equal(t, "the outcome", b.run(2).Outcome, OutFailed)
				equal(t, "counted", b.run(2).Counted, true)
				equal(t, "the last error", c.LastError, "no such file")
				equal(t, "held", c.heldAt(b.now), true)
				equal(t, "the worker stays on record", c.Worker, 2)
			}},
		{name: "the last of the budget", given: func(b *board) { card(b); b.attempt("a", 1); b.wait(time.Hour); b.start("a") },
			when: fail, want: "failed>ready; gave_up failures 2/2",
			then: func(t *testing.T, b *board, events []eventlog.Event) {
				c := b.task("a")
				equal(t, "the status", c.Status, Blocked)
				equal(t, "the limit it is parked under", c.ParkedLimit, 2)
				equal(t, "the hold", c.HoldUntil, 0)
				equal(t, "names the last error", strings.Contains(c.BlockReason, "no such file"), true)
			}},
		{name: "a card's own limit", given: func(b *board) { b.create("a", func(d *Draft) { d.MaxRetries = 1 }); b.start("a") },
			when: fail, want: "failed>ready; gave_up failures 1/1"},
		{name: "without a reason", given: started, kind: ErrInvalid, says: "needs a reason",
			when: func(b *board) Decider { return Fail(b.id("a"), " \n", b.limits, own(b)) }},
		{name: "a reason too long", given: started, kind: ErrInvalid, says: "at most 4096",
			when: func(b *board) Decider {
				return Fail(b.id("a"), strings.Repeat("x", MaxReason+1), b.limits, own(b))
			}},
		{name: "not running", given: card, kind: ErrState, says: "not running but ready",
			when: func(b *board) Decider { return Fail(b.id("a"), "x", b.limits, Writer{}) }},
		{name: "from outside", given: started, kind: ErrState, says: "use reclaim",
			when: func(b *board) Decider { return Fail(b.id("a"), "x", b.limits, Writer{}) }},
	})
}

func TestDefer(t *testing.T) {
	wait := func(d time.Duration) func(*board) Decider {
		return func(b *board) Decider { return Defer(b.id("a"), d, "quota", b.limits, own(b)) }
	}
	decide(t, []decision{
		{name: "waits as long as it says and counts nothing", given: started, when: wait(3 * time.Hour), want: "deferred>ready",
			then: func(t *testing.T, b *board, events []eventlog.Event) {
				equal(t, "held until", b.task("a").HoldUntil, b.now.Add(3*time.Hour))
				equal(t, "counted", b.run(2).Counted, false)
				equal(t, "the outcome", b.run(2).Outcome, OutDeferred)
			}},
		{name: "for no time", given: started, when: wait(0), kind: ErrInvalid, says: "out of range"},
		{name: "back in time", given: started, when: wait(-time.Second), kind: ErrInvalid, says: "out of range"},
		{name: "for ever", given: started, when: wait(MaxDuration + 1), kind: ErrInvalid, says: "out of range"},
		{name: "a reason too long", given: started, kind: ErrInvalid, says: "at most 4096",
			when: func(b *board) Decider {
				return Defer(b.id("a"), time.Hour, strings.Repeat("x", MaxReason+1), b.limits, own(b))
			}},
		{name: "a card that nobody runs is due then", given: card, want: "deferred>scheduled",
			when: func(b *board) Decider { return Defer(b.id("a"), time.Hour, "", b.limits, Writer{}) },
			then: func(t *testing.T, b *board, events []eventlog.Event) {
				equal(t, "due", b.task("a").NotBefore, b.now.Add(time.Hour))
				b.wait(time.Hour)
				b.must(PromoteDue(b.id("a")))
				equal(t, "then", b.task("a").Status, Ready)
			}},
		{name: "one that waits for another still does", want: "deferred>todo",
			given: func(b *board) { b.create("p"); b.create("a", func(d *Draft) { d.Parents = []string{b.id("p")} }) },
			when:  func(b *board) Decider { return Defer(b.id("a"), time.Hour, "", b.limits, Writer{}) },
			then: func(t *testing.T, b *board, events []eventlog.Event) {
				b.must(Complete(b.id("p"), Answer{}, Writer{}))
				equal(t, "then", b.task("a").Status, Scheduled)
			}},
		{name: "one that is blocked is not put off", kind: ErrState, says: "blocked; only a card that would go on by itself",
			given: func(b *board) { b.create("a", func(d *Draft) { d.Blocked, d.BlockReason = true, "x" }) },
			when:  func(b *board) Decider { return Defer(b.id("a"), time.Hour, "", b.limits, Writer{}) }},
		{name: "from outside", given: started, kind: ErrState, says: "use reclaim",
			when: func(b *board) Decider { return Defer(b.id("a"), time.Hour, "", b.limits, Writer{}) }},
	})
}

func TestBeat(t *testing.T) {
	beat := func(note string) func(*board) Decider {
		return func(b *board) Decider { return Beat(b.id("a"), note, b.limits, own(b)) }
	}
	// The lease is 15 minutes, so a beat within 3m45s of the last says nothing.
	beaten := func(wait time.Duration) func(*board) {
		return func(b *board) {
			started(b)
			b.must(Beat(b.id("a"), "half", b.limits, own(b)))
			b.wait(wait)
		}
	}
	const quiet = 15 * time.Minute / 4
	decide(t, []decision{
		{name: "the first, at once after the start", given: started, when: beat(""), want: "heartbeat",
			then: func(t *testing.T, b *board, events []eventlog.Event) {
				equal(t, "the beat", b.run(2).LastHeartbeat, b.now)
				equal(t, "the lease", b.run(2).ClaimExpires, b.now.Add(15*time.Minute))
			}},
		{name: "soon after the last", given: beaten(quiet - 1000), when: beat(""), says: "acknowledged"},
		{name: "soon, with the same note", given: beaten(time.Second), when: beat("half"), says: "acknowledged"},
		{name: "soon, with a new note", given: beaten(time.Second), when: beat("most"), want: "heartbeat",
			then: func(t *testing.T, b *board, events []eventlog.Event) {
				equal(t, "the note", b.run(2).LastNote, "most")
			}},
		{name: "later", given: beaten(quiet), when: beat(""), want: "heartbeat",
			then: func(t *testing.T, b *board, events []eventlog.Event) {
				equal(t, "the note stays", b.run(2).LastNote, "half")
			}},
		{name: "the clock went back: a beat from the future silences none", given: beaten(-time.Second), when: beat(""), want: "heartbeat"},
		{name: "a short staleness makes it beat more often", want: "heartbeat",
			given: func(b *board) { b.limits.HeartbeatStale = time.Minute; beaten(16 * time.Second)(b) }, when: beat("")},
		{name: "a note too long", given: started, when: beat(strings.Repeat("x", MaxNote+1)), kind: ErrInvalid, says: "the note has"},
		{name: "not running", given: card, kind: ErrState, says: "no claim to keep alive",
			when: func(b *board) Decider { return Beat(b.id("a"), "", b.limits, Writer{}) }},
		{name: "from outside, for a worker", given: started, kind: ErrFenced, says: "only that worker",
			when: func(b *board) Decider { return Beat(b.id("a"), "", b.limits, Writer{}) }},
		{name: "from outside, for a manual claim", given: func(b *board) { card(b); b.manual("a", "ann", time.Hour) }, want: "heartbeat",
			when: func(b *board) Decider { return Beat(b.id("a"), "", b.limits, Writer{}) }},
	})
}

// A run begins without the beats of the run before (a worker must not be judged
// by its predecessor's silence).
func TestBeatsBelongToTheRun(t *testing.T) {
	b := newBoard(t)
	b.create("a")
	first := b.start("a")
	b.must(Beat(b.id("a"), "half", b.limits, b.worker("a", first)))
	b.ends(first, 1)
	b.wait(2 * time.Hour)
	r := b.run(b.start("a"))
	equal(t, "the last beat", r.LastHeartbeat, 0)
	equal(t, "the note", r.LastNote, "")
}
