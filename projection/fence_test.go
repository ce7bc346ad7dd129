package projection

import (
	"errors"
	"testing"
	"time"
)

// verbsOfARun are the writes that a run's number guards, each in the name of w.
var verbsOfARun = []struct {
	name string
	do   func(b *board, w Writer) Decider
}{
	{"heartbeat", func(b *board, w Writer) Decider { return Beat(b.id("a"), "still here", b.limits, w) }},
	{"complete", func(b *board, w Writer) Decider { return Complete(b.id("a"), Answer{Summary: "ok"}, w) }},
	{"fail", func(b *board, w Writer) Decider { return Fail(b.id("a"), "no", b.limits, w) }},
	{"defer", func(b *board, w Writer) Decider { return Defer(b.id("a"), time.Minute, "later", b.limits, w) }},
	{"block", func(b *board, w Writer) Decider { return Block(b.id("a"), "help", "", DefaultLimits(), w) }},
	{"comment", func(b *board, w Writer) Decider { return AddComment(b.id("a"), "w", "note", w) }},
	{"unblock", func(b *board, w Writer) Decider { return Unblock(b.id("a"), w) }},
	{"assign", func(b *board, w Writer) Decider { return Assign(b.id("a"), "other", w) }},
	{"reclaim", func(b *board, w Writer) Decider { return Reclaim(b.id("a"), b.owner("a"), "x", "", true, w) }},
	{"claim", func(b *board, w Writer) Decider { return Claim(b.claimFor("a"), w) }},
}

// intruders present something else than the open run of card a, whose runs are
// old (ended) and open.
var intruders = []struct {
	name   string
	who    func(b *board, old uint64) Writer
	traced bool // the first try leaves a fenced event
}{
	{"the run before", func(b *board, old uint64) Writer { return b.worker("a", old) }, true},
	{"an operator with the run before", func(b *board, old uint64) Writer { return Writer{Run: old} }, true},
	{"a worker without its run", func(b *board, _ uint64) Writer { return b.worker("a", 0) }, true},
	{"a run that nobody ever had", func(b *board, _ uint64) Writer { return b.worker("a", 999) }, false},
	{"another card's run under this card's name", func(b *board, _ uint64) Writer { return b.worker("a", b.task("x").CurrentRun) }, false},
	{"a worker of another card", func(b *board, _ uint64) Writer { return b.worker("x", b.task("x").CurrentRun) }, false},
}

func TestFenceOfEveryVerb(t *testing.T) {
	for _, verb := range verbsOfARun {
		for _, who := range intruders {
			// A worker may comment on other cards.
			if verb.name == "comment" && who.name == "a worker of another card" {
				continue
			}
			t.Run(verb.name+" by "+who.name, func(t *testing.T) {
				b := newBoard(t)
				b.create("x")
				b.create("a")
				b.start("x")
				old := b.attempt("a", 1)
				b.wait(time.Hour)
				b.start("a")
				w := who.who(b, old)
				card, run := *b.task("a"), *b.run(b.task("a").CurrentRun)

				want := ""
				if who.traced {
					want = "fenced"
				}
				for try, want := range []string{want, "", ""} {
					head := b.head()
					res, err := b.s.Update(operator, b.now, verb.do(b, w))
					if !errors.Is(err, ErrFenced) {
						t.Fatalf("try %d: %v, want it fenced", try, err)
					}
					if got := brief(b.since(head.Commit)); got != want {
						t.Errorf("try %d left %q, want %q", try, got, want)
					}
					equal(t, "the commit of a refusal", res.Commit.Number, 0)
				}
				equal(t, "the row of the card", string(encodeRow(b.task("a"))), string(encodeRow(&card)))
				equal(t, "the row of the run", string(encodeRow(b.run(run.ID))), string(encodeRow(&run)))
			})
		}
	}
}

// Two runs that come late leave a trace each.
func TestFencedOncePerRun(t *testing.T) {
	b := newBoard(t)
	b.create("a")
	b.limits.FailureLimit = 9
	first, second := b.attempt("a", 1), b.attempt("a", 1)
	for _, c := range []struct {
		run  uint64
		want string
	}{{first, "fenced"}, {second, "fenced"}, {first, ""}, {second, ""}} {
		head := b.head()
		_, err := b.s.Update(operator, b.now, Beat(b.id("a"), "", b.limits, b.worker("a", c.run)))
		if !errors.Is(err, ErrFenced) {
			t.Fatalf("run %d: %v", c.run, err)
		}
		equal(t, "the trace", brief(b.since(head.Commit)), c.want)
	}
}

// What a worker does beside its card: its newest run may, also after its
// answer; an older one may not.
func TestFenceAside(t *testing.T) {
	worker := func(run func(*board) uint64) func(*board) Writer {
		return func(b *board) Writer { return b.worker("x", run(b)) }
	}
	newest := worker(func(b *board) uint64 { return b.task("x").LastRun })
	comment := func(w func(*board) Writer) func(*board) Decider {
		return func(b *board) Decider { return AddComment(b.id("a"), "x", "hello", w(b)) }
	}
	create := func(w func(*board) Writer) func(*board) Decider {
		return func(b *board) Decider { return Create(draft("new"), w(b)) }
	}
	running := func(b *board) { b.create("a"); b.create("x"); b.start("x") }
	answered := func(b *board) { running(b); b.must(Complete(b.id("x"), Answer{}, newest(b))) }
	again := func(b *board) { b.create("a"); b.create("x"); b.attempt("x", 1); b.wait(time.Hour); b.start("x") }
	old := worker(func(b *board) uint64 { r, _ := b.view().Runs(b.id("x")); return r[0].ID })
	decide(t, []decision{
		{name: "comment", given: running, when: comment(newest), want: "commented"},
		{name: "create", given: running, when: create(newest), want: "created>ready"},
		{name: "comment after its answer", given: answered, when: comment(newest), want: "commented"},
		{name: "create after its answer", given: answered, when: create(newest), want: "created>ready"},
		{name: "comment by a run before", given: again, when: comment(old), want: "fenced", kind: ErrFenced, says: "not the card's open run"},
		{name: "create by a run before", given: again, when: create(old), want: "fenced", kind: ErrFenced, says: "not the card's open run"},
		{name: "comment without a run", given: running, when: comment(worker(func(*board) uint64 { return 0 })), want: "fenced", kind: ErrFenced, says: "no run is given"},
		{name: "create without a run", given: running, when: create(worker(func(*board) uint64 { return 0 })), want: "fenced", kind: ErrFenced, says: "no run is given"},
		{name: "create with a made-up run", given: running, when: create(worker(func(*board) uint64 { return 999 })), kind: ErrFenced, says: "not the card's open run"},
		{name: "create for a card that is not there", given: running, kind: ErrFenced, says: "which is not on this board",
			when: create(func(*board) Writer { return Writer{Card: "t_none", Run: 1} })},
		{name: "comment on a card that is not there", given: running, kind: ErrNotFound, says: "t_none",
			when: func(b *board) Decider { return AddComment("t_none", "x", "hello", newest(b)) }},
	})
}
