package projection

import (
	"strings"
	"testing"
	"time"

	"kanlog/eventlog"
)

func TestEdit(t *testing.T) {
	edit := func(c Changes) func(*board) Decider {
		return func(b *board) Decider { return Edit(b.id("a"), c, b.limits, Writer{}) }
	}
	full := func(b *board) {
		b.create("a", func(d *Draft) {
			d.Body, d.Priority, d.Tenant, d.Tags, d.MaxRetries, d.MaxRuntime = "text", 2, "acme", []string{"x", "y"}, 2, time.Hour
		})
	}
	gaveUp := func(b *board) { card(b); b.attempt("a", 1); b.attempt("a", 1) }
	all := Changes{
		Title: to("t"), Body: to("b"), Priority: to(int64(7)), Tenant: to("other"), Tags: &[]string{"z"},
		MaxRuntime: to(time.Minute), MaxRetries: to(int64(9)),
	}
	decide(t, []decision{
		{name: "everything", given: full, when: edit(all), want: "edited",
			then: func(t *testing.T, b *board, _ []eventlog.Event) {
				c := b.task("a")
				equal(t, "the title", c.Title, "t")
				equal(t, "the body", b.view().Body(c.ID), "b")
				equal(t, "the numbers", [3]int64{c.Priority, c.MaxRetries, c.MaxRuntimeSeconds}, [3]int64{7, 9, 60})
				equal(t, "the tenant and tags", c.Tenant+" "+strings.Join(c.Tags, " "), "other z")
			}},
		{name: "only what differs is written", given: full, when: edit(Changes{Title: to("a"), Priority: to(int64(3))}), want: "edited",
			then: func(t *testing.T, b *board, events []eventlog.Event) {
				equal(t, "the title", one[*eventlog.Edited](t, events).Title, nil)
				equal(t, "the body stays", b.view().Body(b.id("a")), "text")
			}},
		{name: "what is so already", given: full, says: "it says so already",
			when: edit(Changes{Title: to("a"), Body: to("text"), Tags: &[]string{"x", "y"}, MaxRuntime: to(time.Hour), NotBefore: to(eventlog.Time(0))})},
		{name: "no tags, no body, no limits", given: full, want: "edited",
			when: edit(Changes{Tags: &[]string{}, Body: to(""), MaxRetries: to(int64(0)), MaxRuntime: to(time.Duration(0))}),
			then: func(t *testing.T, b *board, _ []eventlog.Event) {
				equal(t, "tags", len(b.task("a").Tags), 0)
				equal(t, "the body", b.view().Body(b.id("a")), "")
				equal(t, "limits", [2]int64{b.task("a").MaxRetries, b.task("a").MaxRuntimeSeconds}, [2]int64{0, 0})
			}},
		{name: "another priority moves it in its lane", want: "edited", when: edit(Changes{Priority: to(int64(1))}), given: func(b *board) { b.create("first"); card(b) },
			then: func(t *testing.T, b *board, _ []eventlog.Event) {
				var first string
				if err := b.view().Ready("coder", func(t *Task) bool { first = t.Title; return false }); err != nil {
					t.Fatal(err)
				}
				equal(t, "the first", first, "a")
			}},
		{name: "a running card: the run goes on", given: started, when: edit(all), want: "edited",
			then: func(t *testing.T, b *board, _ []eventlog.Event) {
				equal(t, "the status", b.task("a").Status, Running)
				equal(t, "the run's own limit", b.run(2).MaxRuntimeSeconds, 0)
			}},
		{name: "later than now", given: card, want: "edited>scheduled",
			when: func(b *board) Decider { return edit(Changes{NotBefore: to(b.now + 1)})(b) }},
		{name: "at once", given: everyStatus[Scheduled], when: edit(Changes{NotBefore: to(eventlog.Time(0))}), want: "edited>ready"},
		{name: "a review, later and at once", want: "edited>review", when: edit(Changes{NotBefore: to(eventlog.Time(0))}), given: func(b *board) {
			reviewedBy("rev")(b)
			b.must(edit(Changes{NotBefore: to(b.now + 1)})(b))
			equal(b.t.(*testing.T), "the status between", b.task("a").Status, Scheduled)
		}},
		{name: "a raised limit of its own frees a card that gave up", given: gaveUp, when: edit(Changes{MaxRetries: to(int64(3))}), want: "edited; promoted>ready limit_raised"},
		{name: "and not before the time that comes with it", given: gaveUp, want: "edited; promoted>scheduled limit_raised",
			when: func(b *board) Decider { return edit(Changes{MaxRetries: to(int64(3)), NotBefore: to(b.now + 1)})(b) }},
		{name: "a limit that is used up", given: gaveUp, when: edit(Changes{MaxRetries: to(int64(2))}), want: "edited"},
		{name: "a raised limit frees no card that a person holds", given: everyStatus[Blocked], when: edit(Changes{MaxRetries: to(int64(9))}), want: "edited"},
		{name: "the result of a card that is done", given: everyStatus[Done], when: edit(Changes{Result: to("better")}), want: "edited",
			then: func(t *testing.T, b *board, _ []eventlog.Event) {
				equal(t, "the result", b.task("a").Result, "better")
				equal(t, "what the run said", b.run(b.task("a").LastRun).Result, "")
			}},
		{name: "a result too long", given: everyStatus[Done], when: edit(Changes{Result: to(strings.Repeat("x", MaxResult+1))}), kind: ErrInvalid, says: "the result has"},
		{name: "nothing", given: card, when: edit(Changes{}), kind: ErrInvalid, says: "nothing to change was given"},
		{name: "a blank title", given: card, when: edit(Changes{Title: to(" ")}), kind: ErrInvalid, says: "the title is blank"},
		{name: "an empty tag", given: card, when: edit(Changes{Tags: &[]string{""}}), kind: ErrInvalid, says: "a tag is empty"},
		{name: "a priority out of range", given: card, when: edit(Changes{Priority: to(int64(MaxPriority + 1))}), kind: ErrInvalid, says: "priority"},
		{name: "too many retries", given: card, when: edit(Changes{MaxRetries: to(int64(MaxRetries + 1))}), kind: ErrInvalid, says: "max retries"},
		{name: "a body too long", given: card, when: edit(Changes{Body: to(strings.Repeat("x", MaxBody+1))}), kind: ErrInvalid, says: "the body has"},
		{name: "by its own worker", given: started, kind: ErrState, says: "a worker does not edit its own card; use comment",
			when: func(b *board) Decider { return Edit(b.id("a"), all, b.limits, own(b)) }},
		{name: "by the worker of another", given: func(b *board) { started(b); b.create("x") }, kind: ErrFenced, says: "may not edit another card",
			when: func(b *board) Decider { return Edit(b.id("x"), all, b.limits, own(b)) }},
	})
}

// Whoever lost the answer to its create asks again, and somebody may have edited
// the card meanwhile: it is told of the same card.
func TestAKeyOutlivesAnEdit(t *testing.T) {
	b := newBoard(t)
	with := func(d *Draft) { d.Key, d.Body = "k", "text" }
	id := b.create("first", with)
	b.must(Edit(id, Changes{Title: to("second"), Body: to("other")}, b.limits, Writer{}))
	equal(t, "the card of the same request", b.must(Create(draft("first", with), Writer{})).Task, id)
	if _, err := b.try(operator, Create(draft("second", func(d *Draft) { d.Key, d.Body = "k", "other" }), Writer{})); err == nil {
		t.Error("a request that was never made was taken for the first one")
	}
}

func to[T any](v T) *T { return &v }
