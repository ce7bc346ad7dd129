package projection

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"kanlog/eventlog"
)

// couple is card a and another one that it could wait for.
func couple(b *board) { b.create("p"); b.create("a") }

// waiting is card a under p.
func waiting(b *board) {
	b.create("p")
	b.create("a", func(d *Draft) { d.Parents = []string{b.id("p")} })
}

// reviewedBy hands card a in and gives it to a reviewer, "" for a person.
func reviewedBy(reviewer string) func(*board) {
	return func(b *board) {
		if b.cards["a"] == "" {
			card(b)
		}
		b.must(RequestReview(b.id("a"), Answer{Summary: "look", Result: "r"}, reviewer, nil, Writer{}))
	}
}

// startReview starts the reviewer of a card in review.
func (b *board) startReview(title string) uint64 {
	b.t.Helper()
	return b.start(title, func(c *ClaimFor) { c.Assignee = b.task(title).Reviewer })
}

func (b *board) done(titles ...string) {
	b.t.Helper()
	for _, title := range titles {
		b.must(Complete(b.id(title), Answer{}, Writer{}))
	}
}

// under makes a card that waits for others.
func (b *board) under(title string, parents ...string) {
	b.t.Helper()
	b.create(title, func(d *Draft) {
		for _, p := range parents {
			d.Parents = append(d.Parents, b.id(p))
		}
	})
}

// everyStatus is how card a comes to stand in each status.
var everyStatus = map[string]func(b *board){
	Triage:    func(b *board) { b.create("a", func(d *Draft) { d.Triage = true }) },
	Todo:      waiting,
	Scheduled: func(b *board) { b.create("a", func(d *Draft) { d.NotBefore = b.now.Add(time.Hour) }) },
	Ready:     card,
	Running:   started,
	Blocked:   func(b *board) { b.create("a", func(d *Draft) { d.Blocked, d.BlockReason = true, "which port?" }) },
	Review:    reviewedBy("rev"),
	Done:      func(b *board) { card(b); b.done("a") },
	Archived:  func(b *board) { card(b); b.must(Archive(b.id("a"), 0, "", "", Writer{})) },
}

// TestVerbsInEveryStatus pins what an operator's verbs do to a card in each status:
// where it goes, "-" for nothing, or a piece of the refusal in brackets.
func TestVerbsInEveryStatus(t *testing.T) {
	verbs := map[string]func(b *board) Decider{
		"promote":         func(b *board) Decider { return Promote(b.id("a"), Writer{}) },
		"unblock":         func(b *board) Decider { return Unblock(b.id("a"), Writer{}) },
		"block":           func(b *board) Decider { return Block(b.id("a"), "x", "", b.limits, Writer{}) },
		"depends":         func(b *board) Decider { return Block(b.id("a"), "x", Dependency, b.limits, Writer{}) },
		"reopen":          func(b *board) Decider { return Reopen(b.id("a"), "wrong", Writer{}) },
		"defer":           func(b *board) Decider { return Defer(b.id("a"), 2*time.Hour, "", b.limits, Writer{}) },
		"request-review":  func(b *board) Decider { return RequestReview(b.id("a"), Answer{}, "", nil, Writer{}) },
		"approve":         func(b *board) Decider { return Approve(b.id("a"), Answer{}, 0, Writer{}) },
		"request-changes": func(b *board) Decider { return RequestChanges(b.id("a"), "no", 0, b.limits, Writer{}) },
		"complete":        func(b *board) Decider { return Complete(b.id("a"), Answer{}, Writer{}) },
		"link":            func(b *board) Decider { return Link(b.id("new"), b.id("a"), Writer{}) },
		"edit-title":      func(b *board) Decider { n := "n"; return Edit(b.id("a"), Changes{Title: &n}, b.limits, Writer{}) },
		"edit-result":     func(b *board) Decider { n := "n"; return Edit(b.id("a"), Changes{Result: &n}, b.limits, Writer{}) },
		"edit-later": func(b *board) Decider {
			due := b.now.Add(2 * time.Hour)
			return Edit(b.id("a"), Changes{NotBefore: &due}, b.limits, Writer{})
		},
	}
	for verb, want := range map[string]map[string]string{
		"promote": {Triage: Ready, Todo: "(waits for t_", Scheduled: Ready, Ready: "(ready already", Running: "(running; only",
			Blocked: Ready, Review: "(review; only", Done: "(done; only", Archived: "(archived; only"},
		"unblock": {Triage: "(in triage, not blocked; kanlog promote", Todo: "(not blocked but todo", Scheduled: "(not blocked but", Ready: "(not blocked but",
			Running: "(not blocked but", Blocked: Ready, Review: "(not blocked but", Done: "(not blocked but", Archived: "(not blocked but"},
		"block": {Triage: Blocked, Todo: Blocked, Scheduled: Blocked, Ready: Blocked, Running: "(use reclaim first", Blocked: "(blocked before: which port?",
			Review: Blocked, Done: "(done; only", Archived: "(archived; only"},
		"depends": {Triage: Blocked, Todo: "-", Scheduled: Blocked, Ready: Blocked, Running: "(use reclaim first", Blocked: "(blocked before",
			Review: Blocked, Done: "(done; only", Archived: "(archived; only"},
		"reopen": {Triage: "(not done but triage", Todo: "(not done but", Scheduled: "(not done but", Ready: "(not done but", Running: "(running (run 2); use reclaim",
			Blocked: "(not done but", Review: Ready, Done: Ready, Archived: "(archived; create it anew"},
		"defer": {Triage: "(triage; only a card that would go on", Todo: Todo, Scheduled: Scheduled, Ready: Scheduled, Running: "(use reclaim first",
			Blocked: "(blocked; only", Review: Scheduled, Done: "(done; only", Archived: "(archived; only"},
		"request-review": {Triage: "(triage; only a running or ready card", Todo: "(todo; only", Scheduled: "(scheduled; only", Ready: Review,
			Running: "(use reclaim first", Blocked: "(blocked; only", Review: "(in review already", Done: "(done; only", Archived: "(archived; only"},
		"approve": {Triage: "(not in review but triage", Todo: "(not in review", Scheduled: "(not in review", Ready: "(not in review", Running: "(works on the card and does not review it",
			Blocked: "(not in review", Review: Done, Done: "(not in review", Archived: "(not in review"},
		"request-changes": {Triage: "(not in review but triage", Todo: "(not in review", Scheduled: "(not in review", Ready: "(not in review", Running: "(works on the card and does not review it",
			Blocked: "(not in review", Review: Ready, Done: "(not in review", Archived: "(not in review"},
		"complete": {Triage: Done, Todo: "(cannot be done before its parent", Scheduled: Done, Ready: Done, Running: "(use reclaim first", Blocked: Done,
			Review: Done, Done: "(already done", Archived: "(already archived"},
		"link": {Triage: Triage, Todo: Todo, Scheduled: Todo, Ready: Todo, Running: "(running (run 2): the link would come too late", Blocked: Blocked,
			Review: "(in review; approve it or request changes first", Done: "(done: it waits for nothing any more; reopen it first", Archived: "(archived: it waits for nothing"},
		"edit-title": {Triage: Triage, Todo: Todo, Scheduled: Scheduled, Ready: Ready, Running: Running, Blocked: Blocked, Review: Review, Done: Done, Archived: "(archived"},
		"edit-result": {Triage: "(triage; only a card that is done", Todo: "(todo; only", Scheduled: "(scheduled; only", Ready: "(ready; only", Running: "(running; only",
			Blocked: "(blocked; only", Review: "(review; only", Done: Done, Archived: "(archived"},
		"edit-later": {Triage: Triage, Todo: Todo, Scheduled: Scheduled, Ready: Scheduled, Running: Running, Blocked: Blocked, Review: Scheduled, Done: Done, Archived: "(archived"},
	} {
		for _, status := range Statuses {
			t.Run(verb+" "+status, func(t *testing.T) {
				b := newBoard(t)
				everyStatus[status](b)
				b.create("new")
				head := b.head()
				_, err := b.try(operator, verbs[verb](b))
				got, wanted := b.task("a").Status, want[status]
				switch piece, refused := strings.CutPrefix(wanted, "("); {
				case refused && (err == nil || !strings.Contains(err.Error(), piece)):
					t.Errorf("%v, want it refused with %q", err, piece)
				case refused:
					equal(t, "the status after a refusal", got, status)
				case err != nil:
					t.Errorf("refused: %v", err)
				case wanted == "-":
					equal(t, "the head after nothing", b.head().Commit, head.Commit)
				default:
					equal(t, "the status", got, wanted)
				}
			})
		}
	}
}

func TestLink(t *testing.T) {
	link := func(parent, child string) func(*board) Decider {
		return func(b *board) Decider { return Link(b.id(parent), b.id(child), Writer{}) }
	}
	waits := func(t *testing.T, b *board, _ []eventlog.Event) {
		equal(t, "the parents", strings.Join(b.view().Parents(b.id("a")), " "), b.id("p"))
		equal(t, "the children", strings.Join(b.view().Children(b.id("p")), " "), b.id("a"))
		equal(t, "the status", b.task("a").Status, Todo)
	}
	decide(t, []decision{
		{name: "a ready card waits", given: couple, when: link("p", "a"), want: "linked>todo", then: waits},
		{name: "a card that is held waits", given: func(b *board) { couple(b); b.ends(b.start("a"), 1) }, when: link("p", "a"), want: "linked>todo", then: waits},
		{name: "a scheduled card waits, and for its time too", want: "linked>todo", when: link("p", "a"),
			given: func(b *board) { b.create("p"); everyStatus[Scheduled](b) },
			then: func(t *testing.T, b *board, _ []eventlog.Event) {
				b.done("p")
				equal(t, "the status then", b.task("a").Status, Scheduled)
			}},
		{name: "a parent that is done holds nothing", given: func(b *board) { couple(b); b.done("p") }, when: link("p", "a"), want: "linked"},
		{name: "nor does one that was put away", given: func(b *board) { couple(b); b.must(Archive(b.id("p"), 0, "", "", Writer{})) }, when: link("p", "a"), want: "linked"},
		{name: "a card in review may still learn what it was built on", want: "linked", when: link("p", "a"),
			given: func(b *board) { couple(b); b.done("p"); reviewedBy("")(b) }},
		{name: "again", given: waiting, when: link("p", "a"), says: "linked before"},
		{name: "its own run, while it runs: nothing moves yet", given: func(b *board) { couple(b); b.start("a") }, want: "linked",
			when: func(b *board) Decider { return Link(b.id("p"), b.id("a"), own(b)) },
			then: func(t *testing.T, b *board, events []eventlog.Event) {
				equal(t, "the status", b.task("a").Status, Running)
				equal(t, "the event's run", events[0].Run, b.task("a").CurrentRun)
			}},
		{name: "an operator who names the run", given: func(b *board) { couple(b); b.start("a") }, want: "linked",
			when: func(b *board) Decider { return Link(b.id("p"), b.id("a"), Writer{Run: b.task("a").CurrentRun}) }},
		{name: "from outside while it runs", given: func(b *board) { couple(b); b.start("a") }, when: link("p", "a"), kind: ErrState, says: "running (run 3): the link would come too late; give --run 3"},
		{name: "a worker that makes another card wait", given: func(b *board) { couple(b); b.start("a") }, kind: ErrFenced, says: "may not link another card",
			when: func(b *board) Decider { return Link(b.id("a"), b.id("p"), own(b)) }},
		{name: "a worker whose run is over", given: func(b *board) { couple(b); b.must(Fail(b.id("a"), "x", b.limits, b.worker("a", b.start("a")))) },
			when: func(b *board) Decider { return Link(b.id("p"), b.id("a"), own(b)) }, want: "fenced", kind: ErrFenced, says: "not open any more"},
		{name: "a worker without its run", given: func(b *board) { couple(b); b.start("a") }, want: "fenced", kind: ErrFenced, says: "no run is given",
			when: func(b *board) Decider { return Link(b.id("p"), b.id("a"), Writer{Card: b.id("a")}) }},
		{name: "no such parent", given: card, kind: ErrNotFound, says: "t_none", when: func(b *board) Decider { return Link("t_none", b.id("a"), Writer{}) }},
		{name: "no such child", given: card, kind: ErrNotFound, says: "t_none", when: func(b *board) Decider { return Link(b.id("a"), "t_none", Writer{}) }},
		{name: "for itself", given: card, when: link("a", "a"), kind: ErrState, says: "cannot wait for"},
		{name: "a cycle of two", given: waiting, when: link("a", "p"), kind: ErrState, says: "closes the cycle"},
		{name: "a cycle through a chain is named from end to end", kind: ErrState, when: link("c", "p"),
			given: func(b *board) { waiting(b); b.under("b", "a"); b.under("c", "b") },
			says:  "closes the cycle t_"},
		{name: "a cycle through cards that are done is one all the same", kind: ErrState, says: "closes the cycle", when: link("a", "p"),
			given: func(b *board) { waiting(b); b.done("p", "a"); b.must(Reopen(b.id("p"), "x", Writer{})) }},
		{name: "too many", kind: ErrState, says: "has 256 parents already; it may have at most 256", when: link("p", "a"),
			given: func(b *board) {
				b.create("p")
				var all []string
				for i := range MaxParents {
					all = append(all, b.create(fmt.Sprint(i)))
				}
				b.create("a", func(d *Draft) { d.Parents = all })
			}},
	})
}

// C063: each of the two edges alone is fine.
func TestTwoLinksThatCloseACycleTogether(t *testing.T) {
	b := newBoard(t)
	couple(b)
	first, second := Link(b.id("p"), b.id("a"), Writer{}), Link(b.id("a"), b.id("p"), Writer{})
	b.must(first)
	if _, err := b.try(operator, second); err == nil || !strings.Contains(err.Error(), b.id("a")+" waits for "+b.id("p")+" waits for "+b.id("a")) {
		t.Errorf("the second: %v", err)
	}
	b.must(Unlink(b.id("p"), b.id("a"), Writer{}))
	b.must(second)
}

// Looking for a cycle visits a card once, however many ways lead to it.
func TestACycleIsLookedForInADeepLattice(t *testing.T) {
	b := newBoard(t)
	b.create("l0")
	b.create("r0")
	const deep = 40 // 2^40 ways
	for i := 1; i <= deep; i++ {
		l, r := fmt.Sprint("l", i-1), fmt.Sprint("r", i-1)
		b.under(fmt.Sprint("l", i), l, r)
		b.under(fmt.Sprint("r", i), l, r)
	}
	b.create("a")
	b.must(Link(b.id(fmt.Sprint("l", deep)), b.id("a"), Writer{}))
	if _, err := b.try(operator, Link(b.id("a"), b.id("l0"), Writer{})); err == nil {
		t.Error("a cycle through the lattice was closed")
	}
}

func TestUnlink(t *testing.T) {
	unlink := func(parent, child string) func(*board) Decider {
		return func(b *board) Decider { return Unlink(b.id(parent), b.id(child), Writer{}) }
	}
	decide(t, []decision{
		{name: "what it waited for alone: it goes on", given: waiting, when: unlink("p", "a"), want: "unlinked>ready",
			then: func(t *testing.T, b *board, _ []eventlog.Event) {
				equal(t, "parents", len(b.view().Parents(b.id("a"))), 0)
				equal(t, "children", len(b.view().Children(b.id("p"))), 0)
				equal(t, "the status", b.task("a").Status, Ready)
			}},
		{name: "one of two", given: func(b *board) { b.create("p"); b.create("q"); b.under("a", "p", "q") }, when: unlink("p", "a"), want: "unlinked",
			then: func(t *testing.T, b *board, _ []eventlog.Event) {
				equal(t, "the status", b.task("a").Status, Todo)
				b.done("q")
				equal(t, "the status when the other is done", b.task("a").Status, Ready)
			}},
		{name: "the open one of two", given: func(b *board) { b.create("p"); b.create("q"); b.under("a", "p", "q"); b.done("q") }, when: unlink("p", "a"), want: "unlinked>ready"},
		{name: "before its time", want: "unlinked>scheduled", when: unlink("p", "a"), given: func(b *board) {
			b.create("p")
			b.create("a", func(d *Draft) { d.Parents, d.NotBefore = []string{b.id("p")}, b.now.Add(time.Hour) })
		}},
		{name: "in the middle of a review", want: "unlinked>review", when: unlink("p", "a"), given: func(b *board) {
			couple(b)
			reviewedBy("rev")(b)
			run := b.startReview("a")
			b.must(Link(b.id("p"), b.id("a"), b.worker("a", run)))
			b.ends(run, 1)
		}},
		{name: "of a card that is blocked", given: func(b *board) { waiting(b); b.must(Block(b.id("a"), "x", "", b.limits, Writer{})) }, when: unlink("p", "a"), want: "unlinked",
			then: func(t *testing.T, b *board, _ []eventlog.Event) { equal(t, "the status", b.task("a").Status, Blocked) }},
		{name: "of a card that is done", given: func(b *board) { waiting(b); b.done("p", "a") }, when: unlink("p", "a"), want: "unlinked",
			then: func(t *testing.T, b *board, _ []eventlog.Event) {
				b.must(Reopen(b.id("p"), "x", Writer{}))
				equal(t, "the status when what it waited for is reopened", b.task("a").Status, Done)
			}},
		{name: "while it runs, by an operator", given: func(b *board) { waiting(b); b.done("p"); b.start("a") }, when: unlink("p", "a"), want: "unlinked"},
		{name: "by its own worker", given: func(b *board) { waiting(b); b.done("p"); b.start("a") }, kind: ErrState, says: "a worker does not take away what its own card waits for",
			when: func(b *board) Decider { return Unlink(b.id("p"), b.id("a"), own(b)) }},
		{name: "what was never linked", given: couple, when: unlink("p", "a"), kind: ErrState, says: "does not wait for"},
		{name: "twice", given: func(b *board) { waiting(b); b.must(unlink("p", "a")(b)) }, when: unlink("p", "a"), kind: ErrState, says: "does not wait for"},
	})
}

// A chain and a diamond go on step by step, and a card that is put away holds
// nobody.
func TestGraphsGoOn(t *testing.T) {
	b := newBoard(t)
	b.create("top")
	b.under("left", "top")
	b.under("right", "top")
	b.under("bottom", "left", "right")
	stand := func(want string) {
		t.Helper()
		var got []string
		for _, title := range []string{"top", "left", "right", "bottom"} {
			got = append(got, b.task(title).Status)
		}
		equal(t, "top, left, right, bottom", strings.Join(got, " "), want)
	}
	stand("ready todo todo todo")
	b.done("top")
	stand("done ready ready todo")
	b.done("left")
	stand("done done ready todo")
	b.must(Archive(b.id("right"), 0, "", "", Writer{}))
	stand("done done archived ready")
	b.must(Reopen(b.id("top"), "wrong", Writer{}))
	stand("ready todo archived todo")
	b.done("top")
	stand("done ready archived todo")
	b.done("left")
	stand("done done archived ready")
}
