package tick

import (
	"errors"
	"strings"
	"testing"

	"kanlog/projection"
)

// Whatever the world answers for one run, whether it is asked what is left,
// asked for its record or told to signal, the others are looked at, ended,
// booked and started in the same tick.
func TestTheWorldFailsForOneRun(t *testing.T) {
	for _, c := range []struct {
		name   string
		bad    func(b *bench, run uint64)
		want   string // of the bad one
		errors int
	}{
		{"it cannot be looked at", func(b *bench, run uint64) {
			b.evidence[run] = Evidence{Answer: Held, Why: "it cannot be read: input/output error"}
		}, "", 0},
		{"it cannot be looked at, and is to be ended", func(b *bench, run uint64) {
			b.evidence[run] = Evidence{Answer: Held, Why: "it cannot be read: input/output error"}
			b.must(projection.Reclaim(b.cards["bad"], run, "wrong", "", false, projection.Writer{}))
		}, "reclaim_deferred bad, ", 0},
		{"its record cannot be read", func(b *bench, run uint64) {
			b.evidence[run], b.records[run] = Evidence{Answer: Dead}, nil
		}, "crashed bad, ", 0},
		{"its supervisor cannot be signalled", func(b *bench, run uint64) {
			b.must(projection.Reclaim(b.cards["bad"], run, "wrong", "", false, projection.Writer{}))
			b.signal = only(run)
		}, "term_supervisor bad, ", 1},
		{"what is left of it cannot be signalled", func(b *bench, run uint64) {
			b.evidence[run] = Evidence{Answer: Orphaned}
			b.signal = only(run)
		}, "termination_requested bad, term_members bad, ", 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBench(t)
			bad := b.running("bad") // the oldest: it is judged first
			orphan, dead := b.running("orphan"), b.running("dead")
			b.create("ready")
			c.bad(b, bad)
			b.evidence[orphan], b.evidence[dead] = Evidence{Answer: Orphaned}, Evidence{Answer: Dead}
			rep := b.ticks()
			equal(t, "the story", b.story(), c.want+"termination_requested orphan, term_members orphan, crashed dead, claimed ready, start ready")
			equal(t, "errors", len(rep.Errors), c.errors)
			if c.errors > 0 {
				equal(t, "the error", rep.Errors[0], Failure{b.cards["bad"], bad, "not permitted"})
			}
			// Nor is it lost: the next tick tries again.
			first := b.story()
			b.signal = nil
			b.ticks()
			if c.errors > 0 && !strings.Contains(b.story(), strings.TrimPrefix(strings.TrimSuffix(c.want, ", "), "termination_requested bad, ")) {
				t.Errorf("after %q the next tick does %q", first, b.story())
			}
		})
	}
}

// only fails the signal of one run.
func only(bad uint64) func(uint64) error {
	return func(run uint64) error {
		if run == bad {
			return errors.New("not permitted")
		}
		return nil
	}
}
