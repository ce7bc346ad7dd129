package projection

import (
	"errors"
	"testing"

	"kanlog/eventlog"
)

// endings are one event of every kind that closes a run.
func endings(to string) []eventlog.Payload {
	end := eventlog.End{To: to}
	return []eventlog.Payload{
		&eventlog.Reclaimed{To: to}, &eventlog.Crashed{End: end}, &eventlog.ProtocolViolation{End: end},
		&eventlog.RateLimited{End: end}, &eventlog.TimedOut{End: end}, &eventlog.Stale{End: end},
		&eventlog.SpawnFailed{End: end}, &eventlog.Completed{By: byAnswer}, &eventlog.ReviewRequested{},
		&eventlog.Failed{To: to}, &eventlog.Deferred{To: to}, &eventlog.ChangesRequested{To: to},
	}
}

func (b *board) fold(events ...eventlog.Event) error {
	b.forged = true
	h := b.head()
	return Fold(b.s.Mem, eventlog.Commit{Number: h.Commit + 1, Seq: h.Seq + 1, At: b.now, Actor: operator, Events: events})
}

func TestARunEndsOnce(t *testing.T) {
	for _, first := range endings(Ready) {
		for _, second := range endings(Ready) {
			b := newBoard(t)
			card(b)
			run := b.start("a")
			if err := b.fold(event(b.id("a"), run, first)); err != nil {
				t.Fatalf("%s: %v", first.Kind(), err)
			}
			if err := b.fold(event(b.id("a"), run, second)); !errors.Is(err, ErrInconsistent) {
				t.Errorf("%s after %s: %v, want it inconsistent", second.Kind(), first.Kind(), err)
			}
		}
	}
}

// A block that follows the end of its run in the same commit (a manual claim
// that ran out) does not end it again.
func TestBlockedAfterTheEndKeepsTheOutcome(t *testing.T) {
	b := newBoard(t)
	card(b)
	run := b.start("a")
	err := b.fold(
		event(b.id("a"), run, &eventlog.Failed{To: Ready}),
		event(b.id("a"), run, &eventlog.Blocked{Reason: "x"}))
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "the outcome", b.run(run).Outcome, OutFailed)
	equal(t, "the status", b.task("a").Status, Blocked)
}

// What no decider wrote is refused with a reason and never a panic.
func TestInconsistentHistories(t *testing.T) {
	claimed := &eventlog.Claimed{Origin: OriginDispatch}
	at := func(b *board, title string) string { return b.cards[title] }
	for _, c := range []struct {
		name   string
		given  func(b *board)
		events func(b *board) []eventlog.Event
	}{
		{"a card twice", card, func(b *board) []eventlog.Event {
			return []eventlog.Event{event(at(b, "a"), 0, &eventlog.Created{Title: "a"})}
		}},
		{"a card without an id", card, func(*board) []eventlog.Event {
			return []eventlog.Event{event("", 0, &eventlog.Created{Title: "a", Status: Ready})}
		}},
		{"a run of a card that is not there", card, func(*board) []eventlog.Event { return []eventlog.Event{event("t_none", 0, claimed)} }},
		{"a second open run", started, func(b *board) []eventlog.Event { return []eventlog.Event{event(at(b, "a"), 0, claimed)} }},
		{"a run beside a worker of an earlier one", func(b *board) {
			started(b)
			b.must(Fail(b.id("a"), "x", b.limits, own(b)))
		}, func(b *board) []eventlog.Event { return []eventlog.Event{event(at(b, "a"), 0, claimed)} }},
		{"an answer of its own beside an open run", started, func(b *board) []eventlog.Event {
			return []eventlog.Event{event(at(b, "a"), 0, &eventlog.Completed{})}
		}},
		{"an unknown kind", card, func(b *board) []eventlog.Event { return []eventlog.Event{{Task: at(b, "a")}} }},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBoard(t)
			c.given(b)
			if err := b.fold(c.events(b)...); !errors.Is(err, ErrInconsistent) {
				t.Errorf("%v, want it inconsistent", err)
			}
		})
	}
}

// Every kind that concerns a run, for a run that nobody opened, for the run of
// another card, and for a card that is not there.
func TestEventsOfForeignRuns(t *testing.T) {
	kinds := append(endings(Ready),
		&eventlog.Spawned{}, &eventlog.Heartbeat{}, &eventlog.ClaimExtended{}, &eventlog.TerminationRequested{},
		&eventlog.ReclaimDeferred{}, &eventlog.Exited{}, &eventlog.TerminalWorkerReaped{}, &eventlog.Blocked{})
	for _, d := range kinds {
		b := newBoard(t)
		card(b)
		b.create("x")
		foreign := b.start("x")
		for what, e := range map[string]eventlog.Event{
			"a run that nobody opened": event(b.id("a"), 99, d),
			"another card's run":       event(b.id("a"), foreign, d),
			"a card that is not there": event("t_none", foreign, d),
		} {
			if err := b.fold(e); !errors.Is(err, ErrInconsistent) {
				t.Errorf("%s of %s: %v, want it inconsistent", d.Kind(), what, err)
			}
		}
	}
	for _, d := range []eventlog.Payload{&eventlog.GaveUp{}, &eventlog.Unblocked{}, &eventlog.Assigned{}, &eventlog.Promoted{}, &eventlog.Blocked{},
		&eventlog.Deferred{}, &eventlog.Linked{}, &eventlog.Unlinked{}, &eventlog.Edited{}, &eventlog.Reopened{}, &eventlog.Retracted{}, &eventlog.BlockLoop{}} {
		b := newBoard(t)
		if err := b.fold(event("t_none", 0, d)); !errors.Is(err, ErrInconsistent) {
			t.Errorf("%s of a card that is not there: %v, want it inconsistent", d.Kind(), err)
		}
	}
}

// A damaged row is an error of the tables, named as such.
func TestDamagedRows(t *testing.T) {
	b := newBoard(t)
	started(b)
	b.forged = true
	b.s.Mem.Put(tabTasks, []byte(b.id("a")), []byte{0xc1})
	if _, err := b.view().Task(b.id("a")); !errors.Is(err, ErrInconsistent) {
		t.Errorf("a damaged card: %v", err)
	}
	b.s.Mem.Put(tabRuns, num(2), nil)
	if _, err := b.view().Active(); !errors.Is(err, ErrInconsistent) {
		t.Errorf("a damaged run: %v", err)
	}
}
