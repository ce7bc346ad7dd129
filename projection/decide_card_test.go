package projection

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"kanlog/eventlog"
)

func TestCreate(t *testing.T) {
	none := func(*board) {}
	create := func(with ...func(*Draft)) func(*board) Decider {
		return func(*board) Decider { return Create(draft("new", with...), Writer{}) }
	}
	status := func(want string) func(*testing.T, *board, []eventlog.Event) {
		return func(t *testing.T, b *board, events []eventlog.Event) {
			c, err := b.view().MustTask(events[0].Task)
			if err != nil {
				t.Fatal(err)
			}
			equal(t, "the status", c.Status, want)
			equal(t, "its age", c.CreatedSeq, b.head().Seq)
		}
	}
	under := func(titles ...string) func(*board) Decider {
		return func(b *board) Decider {
			return Create(draft("new", func(d *Draft) {
				for _, title := range titles {
					d.Parents = append(d.Parents, b.id(title))
				}
			}), Writer{})
		}
	}
	keyed := func(b *board) { b.create("first", func(d *Draft) { d.Key, d.Body = "k", "text" }) }
	decide(t, []decision{
		{name: "a card", given: none, when: create(), want: "created>ready", then: status(Ready)},
		{name: "in triage", given: none, when: create(func(d *Draft) { d.Triage = true }), want: "created>triage", then: status(Triage)},
		{name: "blocked", given: none, when: create(func(d *Draft) { d.Blocked, d.BlockReason = true, "wait" }), want: "created>blocked",
			then: func(t *testing.T, b *board, events []eventlog.Event) {
				status(Blocked)(t, b, events)
				c, _ := b.view().Task(events[0].Task)
				equal(t, "the kind of block", c.BlockKind, NeedsInput)
				equal(t, "the reason", c.BlockReason, "wait")
			}},
		{name: "before its time", given: none, when: func(b *board) Decider {
			return Create(draft("new", func(d *Draft) { d.NotBefore = b.now + 1 }), Writer{})
		}, want: "created>scheduled", then: status(Scheduled)},
		{name: "its time has come", given: none, when: func(b *board) Decider {
			return Create(draft("new", func(d *Draft) { d.NotBefore = b.now }), Writer{})
		}, want: "created>ready", then: status(Ready)},
		{name: "under an open parent", given: card, when: under("a"), want: "created>todo",
			then: func(t *testing.T, b *board, events []eventlog.Event) {
				status(Todo)(t, b, events)
				equal(t, "the parent", strings.Join(b.view().Parents(events[0].Task), " "), b.id("a"))
				equal(t, "the child", strings.Join(b.view().Children(b.id("a")), " "), events[0].Task)
			}},
		{name: "under a parent that is done", given: func(b *board) { card(b); b.must(Complete(b.id("a"), Answer{}, Writer{})) },
			when: under("a"), want: "created>ready", then: status(Ready)},
		{name: "a parent by a prefix of its id", given: card, want: "created>todo",
			when: func(b *board) Decider {
				return Create(draft("new", func(d *Draft) { d.Parents = []string{b.id("a")[:6]} }), Writer{})
			},
			then: func(t *testing.T, b *board, events []eventlog.Event) {
				equal(t, "the parent", strings.Join(b.view().Parents(events[0].Task), " "), b.id("a"))
			}},
		{name: "a parent by a prefix of two ids", given: func(b *board) { b.create("a"); b.create("b") }, kind: ErrNotFound, says: "beginning of several ids",
			when: create(func(d *Draft) { d.Parents = []string{"t_"} })},
		{name: "a parent that is not there", given: card, kind: ErrNotFound, says: "no such card",
			when: create(func(d *Draft) { d.Parents = []string{"t_zz"} })},
		{name: "a parent without a name", given: card, kind: ErrInvalid, says: "the id is empty",
			when: create(func(d *Draft) { d.Parents = []string{""} })},
		{name: "a parent twice, once by a prefix", given: card, kind: ErrInvalid, says: "is named twice",
			when: func(b *board) Decider {
				return Create(draft("new", func(d *Draft) { d.Parents = []string{b.id("a"), b.id("a")[:5]} }), Writer{})
			}},
		{name: "the parent's tenant", given: func(b *board) { b.create("a", func(d *Draft) { d.Tenant = "acme" }) }, when: under("a"), want: "created>todo",
			then: func(t *testing.T, b *board, events []eventlog.Event) {
				equal(t, "the tenant", one[*eventlog.Created](t, events).Tenant, "acme")
			}},
		{name: "a key again: the card of then", given: keyed, says: `the key "k" was used before`,
			when: func(b *board) Decider {
				return Create(draft("first", func(d *Draft) { d.Key, d.Body, d.ID = "k", "text", [16]byte{9} }), Writer{})
			}},
		{name: "a key again, the card done by now", says: "was used before",
			given: func(b *board) { keyed(b); b.must(Complete(b.id("first"), Answer{}, Writer{})) },
			when: func(b *board) Decider {
				return Create(draft("first", func(d *Draft) { d.Key, d.Body = "k", "text" }), Writer{})
			}},
		{name: "a key for another title", given: keyed, kind: ErrState, says: "another title or body",
			when: create(func(d *Draft) { d.Key, d.Body = "k", "text" })},
		{name: "a key for another body", given: keyed, kind: ErrState, says: "another title or body",
			when: func(b *board) Decider { return Create(draft("first", func(d *Draft) { d.Key = "k" }), Writer{}) }},
		{name: "the id is taken: the next number gives another", given: func(b *board) { b.create("new") }, when: create(), want: "created>ready",
			then: func(t *testing.T, b *board, events []eventlog.Event) {
				seed := draft("new").ID
				second := sha256.Sum256(append(seed[:], 0, 0, 0, 0, 0, 0, 0, 1))
				equal(t, "the id", events[0].Task, "t_"+hex.EncodeToString(second[:4]))
				old, err := b.view().MustTask(b.id("new"))
				if err != nil {
					t.Fatal(err)
				}
				equal(t, "the first card's age", old.CreatedSeq, 1)
			}},
	})
}

// The result of a repeated create names the card, so that a caller who lost the
// first answer learns its id.
func TestCreateAgainNamesTheCard(t *testing.T) {
	b := newBoard(t)
	id := b.create("first", func(d *Draft) { d.Key = "k" })
	res := b.must(Create(draft("first", func(d *Draft) { d.Key, d.ID = "k", [16]byte{9} }), Writer{}))
	equal(t, "the card", res.Task, id)
	equal(t, "the commit", res.Commit.Number, 0)
}

func TestDraftIsRefused(t *testing.T) {
	for _, c := range []struct {
		name string
		with func(*Draft)
		says string
	}{
		{"a blank title", func(d *Draft) { d.Title = " \t" }, "the title is blank"},
		{"a title of two lines", func(d *Draft) { d.Title = "a\nb" }, "line break"},
		{"a title with an escape", func(d *Draft) { d.Title = "a\x1b[31m" }, "control character"},
		{"a title too long", func(d *Draft) { d.Title = strings.Repeat("x", MaxTitle+1) }, "the title has 501 bytes"},
		{"a body too long", func(d *Draft) { d.Body = strings.Repeat("x", MaxBody+1) }, "the body has"},
		{"blocked for no reason", func(d *Draft) { d.Blocked = true }, "blocked needs a reason"},
		{"triage and blocked", func(d *Draft) { d.Triage, d.Blocked, d.BlockReason = true, true, "x" }, "exclude each other"},
		{"a priority out of range", func(d *Draft) { d.Priority = MaxPriority + 1 }, "priority"},
		{"a negative priority out of range", func(d *Draft) { d.Priority = -MaxPriority - 1 }, "priority"},
		{"negative retries", func(d *Draft) { d.MaxRetries = -1 }, "max retries"},
		{"too many retries", func(d *Draft) { d.MaxRetries = MaxRetries + 1 }, "max retries"},
		{"a negative runtime", func(d *Draft) { d.MaxRuntime = -time.Second }, "max runtime"},
		{"a runtime for ever", func(d *Draft) { d.MaxRuntime = MaxDuration + 1 }, "max runtime"},
		{"a runtime that would round to none", func(d *Draft) { d.MaxRuntime = time.Millisecond }, "shorter than a second"},
		{"too many tags", func(d *Draft) { d.Tags = make([]string, MaxTags+1) }, "33 tags"},
		{"an empty tag", func(d *Draft) { d.Tags = []string{"a", ""} }, "a tag is empty"},
		{"a tag with a blank", func(d *Draft) { d.Tags = []string{" a"} }, "begins or ends with a blank"},
		{"too many parents", func(d *Draft) { d.Parents = make([]string, MaxParents+1) }, "257 parents"},
		{"an assignee with a wide blank", func(d *Draft) { d.Assignee = "a\u00a0" }, "begins or ends with a blank"},
		{"an assignee with NUL", func(d *Draft) { d.Assignee = "a\x00b" }, "NUL"},
		{"a tenant too long", func(d *Draft) { d.Tenant = strings.Repeat("x", MaxName+1) }, "the tenant"},
		{"a key of two lines", func(d *Draft) { d.Key = "a\rb" }, "the key"},
		{"a scratch workspace with a path", func(d *Draft) { d.WorkspacePath = "/x" }, "takes no path"},
		{"a relative directory", func(d *Draft) { d.WorkspaceKind, d.WorkspacePath = Dir, "x" }, "not an absolute path"},
		{"a relative directory to share", func(d *Draft) { d.WorkspaceKind, d.WorkspacePath = Shared, "x" }, "workspace shared:x is not an absolute path"},
		{"a worktree of nothing", func(d *Draft) { d.WorkspaceKind = Worktree }, "does not name the repository"},
		{"a workspace of no kind", func(d *Draft) { d.WorkspaceKind = "cloud" }, `workspace "cloud"`},
		{"a branch without a worktree", func(d *Draft) { d.Branch = "b" }, "a branch needs"},
	} {
		t.Run(c.name, func(t *testing.T) {
			decision{given: func(*board) {}, kind: ErrInvalid, says: c.says,
				when: func(*board) Decider { return Create(draft("new", c.with), Writer{}) }}.check(t)
		})
	}
}

// Letters whose last byte would be a blank if it stood alone are no blanks.
func TestNamesInAnyScript(t *testing.T) {
	for _, name := range []string{"voilà", "Å", "Ångström", "日本", "a b"} {
		if err := checkName("the name", name); err != nil {
			t.Errorf("%q: %v", name, err)
		}
	}
}

func TestCommentBlockUnblock(t *testing.T) {
	block := func(w func(*board) Writer) func(*board) Decider {
		return func(b *board) Decider { return Block(b.id("a"), "which port?", "", DefaultLimits(), w(b)) }
	}
	nobody := func(*board) Writer { return Writer{} }
	blocked := func(b *board) { card(b); b.must(Block(b.id("a"), "which port?", Transient, DefaultLimits(), Writer{})) }
	unblock := func(b *board) Decider { return Unblock(b.id("a"), Writer{}) }
	decide(t, []decision{
		{name: "comment", given: card, want: "commented", when: func(b *board) Decider { return AddComment(b.id("a"), "ann", "see\nlog", Writer{}) },
			then: func(t *testing.T, b *board, events []eventlog.Event) {
				all, err := b.view().Comments(b.id("a"))
				if err != nil || len(all) != 1 {
					t.Fatalf("comments: %v, %v", all, err)
				}
				equal(t, "the comment", *all[0], Comment{Seq: 2, Task: b.id("a"), Author: "ann", Text: "see\nlog", At: b.now})
			}},
		{name: "comment by its worker belongs to the run", given: started, want: "commented",
			when: func(b *board) Decider { return AddComment(b.id("a"), "w", "note", own(b)) },
			then: func(t *testing.T, b *board, events []eventlog.Event) { equal(t, "the run", events[0].Run, 2) }},
		{name: "comment of blanks", given: card, kind: ErrInvalid, says: "the comment is blank",
			when: func(b *board) Decider { return AddComment(b.id("a"), "ann", " ", Writer{}) }},
		{name: "comment too long", given: card, kind: ErrInvalid, says: "the comment has",
			when: func(b *board) Decider {
				return AddComment(b.id("a"), "ann", strings.Repeat("x", MaxComment+1), Writer{})
			}},

		{name: "block a ready card", given: card, when: block(nobody), want: "blocked",
			then: func(t *testing.T, b *board, events []eventlog.Event) {
				equal(t, "the kind", b.task("a").BlockKind, NeedsInput)
				equal(t, "the reason", b.task("a").BlockReason, "which port?")
			}},
		{name: "block as the answer of a run", given: started, when: block(own), want: "blocked",
			then: func(t *testing.T, b *board, events []eventlog.Event) {
				equal(t, "the outcome", b.run(2).Outcome, OutBlocked)
				equal(t, "the worker stays on record", b.task("a").Worker, 2)
				equal(t, "the status", b.task("a").Status, Blocked)
			}},
		{name: "block a card whose process may live: it stays on record", want: "blocked",
			given: func(b *board) { started(b); b.must(Fail(b.id("a"), "x", b.limits, own(b))) }, when: block(nobody),
			then: func(t *testing.T, b *board, events []eventlog.Event) { equal(t, "the worker", b.task("a").Worker, 2) }},
		{name: "block a dispatched run from outside", given: started, when: block(nobody), kind: ErrState, says: "use reclaim"},
		{name: "block a manual claim", given: func(b *board) { card(b); b.manual("a", "ann", time.Hour) }, when: block(nobody), want: "blocked",
			then: func(t *testing.T, b *board, events []eventlog.Event) {
				equal(t, "the outcome", b.run(2).Outcome, OutBlocked)
			}},
		{name: "block for no reason", given: card, kind: ErrInvalid, says: "block needs a reason",
			when: func(b *board) Decider { return Block(b.id("a"), "", "", DefaultLimits(), Writer{}) }},
		{name: "block with a reason too long", given: card, kind: ErrInvalid, says: "the reason has",
			when: func(b *board) Decider {
				return Block(b.id("a"), strings.Repeat("x", MaxReason+1), "", DefaultLimits(), Writer{})
			}},
		{name: "block of no kind", given: card, kind: ErrInvalid, says: `block kind "mood"`,
			when: func(b *board) Decider { return Block(b.id("a"), "x", "mood", DefaultLimits(), Writer{}) }},
		{name: "block twice", given: blocked, when: block(nobody), kind: ErrState, says: "blocked before"},
		{name: "block a card that is done", given: func(b *board) { card(b); b.must(Complete(b.id("a"), Answer{}, Writer{})) },
			when: block(nobody), kind: ErrState, says: "done; only an open card"},

		{name: "unblock", given: blocked, when: unblock, want: "unblocked>ready",
			then: func(t *testing.T, b *board, events []eventlog.Event) {
				equal(t, "the reason", b.task("a").BlockReason, "")
				equal(t, "the kind", b.task("a").BlockKind, "")
			}},
		{name: "unblock under an open parent", when: unblock, want: "unblocked>todo", given: func(b *board) {
			b.create("p")
			b.create("a", func(d *Draft) { d.Parents, d.Blocked, d.BlockReason = []string{b.id("p")}, true, "x" })
		}},
		{name: "unblock before its time", when: unblock, want: "unblocked>scheduled", given: func(b *board) {
			b.create("a", func(d *Draft) { d.NotBefore, d.Blocked, d.BlockReason = b.now+1, true, "x" })
		}},
		{name: "unblock a card whose process may live: no run before it is gone", when: unblock, want: "unblocked>ready",
			given: func(b *board) { started(b); b.must(Block(b.id("a"), "x", "", DefaultLimits(), own(b))) },
			then: func(t *testing.T, b *board, events []eventlog.Event) {
				equal(t, "startable", b.task("a").Startable(b.now), false)
			}},
		{name: "unblock what is not blocked", given: card, when: unblock, kind: ErrState, says: "not blocked but ready"},
	})
}

func TestAssign(t *testing.T) {
	assign := func(to string) func(*board) Decider {
		return func(b *board) Decider { return Assign(b.id("a"), to, Writer{}) }
	}
	gaveUp := func(b *board) { b.attempt("a", 1); b.attempt("a", 1) }
	decide(t, []decision{
		{name: "to another", given: card, when: assign("other"), want: "assigned",
			then: func(t *testing.T, b *board, events []eventlog.Event) {
				equal(t, "from", one[*eventlog.Assigned](t, events).From, "coder")
				equal(t, "the assignee", b.task("a").Assignee, "other")
			}},
		{name: "to nobody", given: card, when: assign(""), want: "assigned"},
		{name: "as it is", given: card, when: assign("coder"), says: "already assigned so"},
		{name: "frees a card that gave up", given: func(b *board) { card(b); gaveUp(b) }, when: assign("other"), want: "assigned; promoted>ready reassigned",
			then: func(t *testing.T, b *board, events []eventlog.Event) {
				equal(t, "the limit it was parked under", b.task("a").ParkedLimit, 0)
				c, _ := b.view().CountsOf(b.task("a"))
				equal(t, "the failures", c.Failures, 0)
			}},
		{name: "does not free an explicit block", given: func(b *board) { card(b); b.must(Block(b.id("a"), "x", "", DefaultLimits(), Writer{})) },
			when: assign("other"), want: "assigned"},
		{name: "does not free a sticky end of budget", given: func(b *board) { card(b); b.attempt("a", ExitFinal) }, when: assign("other"), want: "assigned",
			then: func(t *testing.T, b *board, events []eventlog.Event) {
				equal(t, "the status", b.task("a").Status, Blocked)
			}},
		{name: "running", given: started, when: assign("other"), kind: ErrState, says: "running (run 2); reclaim it"},
		{name: "with a manual claim", given: func(b *board) { card(b); b.manual("a", "ann", time.Hour) }, when: assign("other"), kind: ErrState, says: "running (run 2)"},
		{name: "archived", when: assign("other"), kind: ErrState, says: "archived",
			given: func(b *board) { card(b); b.forge(event(b.id("a"), 0, &eventlog.Promoted{To: Archived})) }},
		{name: "a name with a line break", given: card, when: assign("a\nb"), kind: ErrInvalid, says: "line break"},
	})
}

func TestPromote(t *testing.T) {
	due := func(b *board) Decider { return PromoteDue(b.id("a")) }
	parked := func(limit int64) func(*board) Decider {
		return func(b *board) Decider { b.limits.FailureLimit = limit; return PromoteParked(b.id("a"), b.limits) }
	}
	gaveUp := func(b *board) { card(b); b.attempt("a", 1); b.attempt("a", 1) }
	decide(t, []decision{
		{name: "its time has come", want: "promoted>ready due", when: due,
			given: func(b *board) {
				b.create("a", func(d *Draft) { d.NotBefore = b.now.Add(time.Hour) })
				b.wait(time.Hour)
			}},
		{name: "not yet", when: due, given: func(b *board) {
			b.create("a", func(d *Draft) { d.NotBefore = b.now.Add(time.Hour) })
			b.wait(time.Hour - 1000)
		}},
		{name: "no longer scheduled", when: due, given: card},
		{name: "due, but no such card", when: func(*board) Decider { return PromoteDue("t_none") }, given: card, kind: ErrNotFound, says: "t_none"},
		{name: "the limit was raised", given: gaveUp, when: parked(3), want: "promoted>ready limit_raised",
			then: func(t *testing.T, b *board, events []eventlog.Event) {
				// The history still counts: one more failure is the third.
				b.attempt("a", 1)
				equal(t, "after a third failure", b.task("a").Status, Blocked)
			}},
		{name: "the limit is the same", given: gaveUp, when: parked(2)},
		{name: "the card has a limit of its own", when: parked(9),
			given: func(b *board) { b.create("a", func(d *Draft) { d.MaxRetries = 1 }); b.attempt("a", 1) }},
		{name: "an explicit block", given: func(b *board) { card(b); b.must(Block(b.id("a"), "x", "", DefaultLimits(), Writer{})) }, when: parked(9)},
		{name: "a sticky end of budget", given: func(b *board) { card(b); b.attempt("a", ExitFinal) }, when: parked(9)},
	})
}

// TestBounded: what a worker makes in one run is counted over all its calls, and what
// would be over the limit is refused whole.
func TestBounded(t *testing.T) {
	b := newBoard(t)
	l := b.limits
	l.CreateLimit = 3
	b.create("root")
	run := b.start("root")
	w := b.worker("root", run)
	by := "worker:" + b.id("root") + "/" + fmt.Sprint(run)
	try := func(w Writer, d Decider) error {
		actor := operator
		if w.InWorker() {
			actor = by
		}
		_, err := b.try(actor, l.Bounded(w, d))
		return err
	}
	graph := func(names ...string) Decider {
		var cards []Planned
		for _, n := range names {
			cards = append(cards, Planned{Name: n, Draft: draft(n)})
		}
		return Apply(cards, w)
	}
	for _, c := range []struct {
		what string
		w    Writer
		do   Decider
		says string
	}{
		{"the first", w, Create(draft("a"), w), ""},
		{"a graph that is over", w, graph("b", "c", "d"), "has made 1 cards, and would make 3 more; one run may make 3 (create_limit)"},
		{"a graph that is not", w, graph("b", "c"), ""},
		{"one more", w, Create(draft("e"), w), "has made 3 cards, and would make 1 more"},
		{"what makes none", w, AddComment(b.id("root"), "w", "hm", w), ""},
		{"a person", Writer{}, Create(draft("mine"), Writer{}), ""},
	} {
		err := try(c.w, c.do)
		if c.says == "" && err != nil || c.says != "" && (!errors.Is(err, ErrState) || !strings.Contains(err.Error(), c.says)) {
			t.Errorf("%s: %v, want %q", c.what, err, c.says)
		}
	}
	equal(t, "made", b.run(run).Created, 3)
}
