package projection

import (
	"testing"

	"kanlog/eventlog"
)

func TestPause(t *testing.T) {
	const reason = "quota"
	pause := func(reason string) func(b *board) Decider {
		return func(b *board) Decider { return PauseBoard(reason, Writer{}) }
	}
	resume := func(b *board) Decider { return ResumeBoard(Writer{}) }
	paused := func(b *board) { card(b); b.must(PauseBoard(reason, Writer{})) }
	isPaused := func(want string) func(t *testing.T, b *board, _ []eventlog.Event) {
		return func(t *testing.T, b *board, _ []eventlog.Event) {
			p, err := b.view().Paused()
			equal(t, "the error", err, nil)
			is := "no"
			if p != nil {
				is = p.Reason + " by " + p.By
			}
			equal(t, "paused", is, want)
		}
	}
	dispatched := func(b *board) Decider { return Claim(b.claimFor("a"), Writer{}) }
	decide(t, []decision{
		{name: "a board", given: card, when: pause(reason), want: "paused", then: isPaused("quota by operator:ann")},
		{name: "again", given: paused, when: pause(reason), says: "the board is paused since 2023-11-14T22:13:20Z by operator:ann: quota", then: isPaused("quota by operator:ann")},
		{name: "again without a reason: the first one stays", given: paused, when: pause(""), says: "the board is paused", then: isPaused("quota by operator:ann")},
		{name: "for another reason", given: paused, when: pause("update"), want: "paused", then: isPaused("update by operator:ann")},
		{name: "resumed", given: paused, when: resume, want: "resumed", then: isPaused("no")},
		{name: "not paused", given: card, when: resume, says: "the board is not paused", then: isPaused("no")},
		{name: "a dispatcher's claim, in its transaction", given: paused, when: dispatched, kind: ErrState, says: "the board is paused since"},
		{name: "a claim by hand", given: paused, want: "claimed", when: func(b *board) Decider {
			return Claim(ClaimFor{Task: b.id("a"), Origin: OriginManual, Holder: "ann", TTL: 900e9}, Writer{})
		}},
		{name: "by a worker", given: started, kind: ErrFenced, says: "pause refused: this process is a worker of", when: func(b *board) Decider { return PauseBoard("", own(b)) }},
		{name: "resumed by a worker", given: started, kind: ErrFenced, says: "resume refused", when: func(b *board) Decider { return ResumeBoard(own(b)) }},
		{name: "a worker's answer on a paused board", given: func(b *board) { started(b); b.must(PauseBoard(reason, Writer{})) }, want: "completed by answer",
			when: func(b *board) Decider { return Complete(b.id("a"), Answer{}, own(b)) }},
	})
}
