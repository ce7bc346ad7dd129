package tick

import (
	"testing"
	"time"

	"kanlog/projection"
)

func TestPullTakesWhatADispatcherWouldStartFirst(t *testing.T) {
	of := func(assignee string, priority int64) func(*projection.Draft) {
		return func(d *projection.Draft) { d.Assignee, d.Priority = assignee, priority }
	}
	in := func(dir string, priority int64) func(*projection.Draft) {
		return func(d *projection.Draft) {
			d.Assignee, d.Priority, d.WorkspaceKind, d.WorkspacePath = "ann", priority, projection.Dir, dir
		}
	}
	failed := func(b *bench, title string) {
		run := b.running(title, of("ann", 5))
		b.must(projection.Fail(b.cards[title], "no", b.d.Policy.Limits, projection.Writer{Card: b.cards[title], Run: run}))
		b.must(projection.BookEnd(projection.Ending{Run: run}, b.d.Policy.Limits))
	}
	for _, c := range []struct {
		name, assignee, want string
		given                func(b *bench)
	}{
		{"nothing at all", "ann", "", func(b *bench) {}},
		{"only others' cards", "ann", "", func(b *bench) { b.create("bob's", of("bob", 0)); b.create("nobody's", of("", 0)) }},
		{"priority before age", "ann", "second", func(b *bench) { b.create("first", of("ann", 0)); b.create("second", of("ann", 1)) }},
		{"age among equals", "ann", "first", func(b *bench) { b.create("first", of("ann", 0)); b.create("second", of("ann", 0)) }},
		{"nobody's cards", "", "nobody's", func(b *bench) { b.create("ann's", of("ann", 1)); b.create("nobody's", of("", 0)) }},
		{"a review of hers first", "ann", "reviewed", func(b *bench) {
			b.create("ready", of("ann", 9))
			b.create("reviewed", of("bob", 0))
			b.must(projection.RequestReview(b.cards["reviewed"], projection.Answer{}, "ann", nil, projection.Writer{}))
		}},
		{"a review by a person is nobody's to pull", "", "", func(b *bench) {
			b.create("reviewed", of("bob", 0))
			b.must(projection.RequestReview(b.cards["reviewed"], projection.Answer{}, "", nil, projection.Writer{}))
		}},
		{"what is held back is passed over", "ann", "ready", func(b *bench) { failed(b, "failed"); b.create("ready", of("ann", 0)) }},
		{"until its back-off is over", "ann", "failed", func(b *bench) {
			failed(b, "failed")
			b.create("ready", of("ann", 0))
			b.now = b.now.Add(time.Hour)
		}},
		{"what runs is not taken", "ann", "", func(b *bench) { b.running("a", of("ann", 0)) }},
		{"what would work where another does is passed over", "ann", "elsewhere", func(b *bench) {
			b.running("a", in("/d", 0))
			b.create("there", in("/d", 9))
			b.create("there too", in("/d", 9))
			b.create("elsewhere", in("/e", 0))
		}},
		{"even if there is nothing else", "ann", "", func(b *bench) { b.running("a", in("/d", 0)); b.create("there", in("/d", 0)) }},
		{"nor what has a process left", "ann", "", func(b *bench) {
			run := b.running("a", of("ann", 0))
			b.must(projection.Defer(b.cards["a"], time.Second, "", b.d.Policy.Limits, projection.Writer{Card: b.cards["a"], Run: run}))
			b.now = b.now.Add(time.Minute)
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBench(t)
			c.given(b)
			card, err := Pull(projection.NewView(b.store.Mem), c.assignee, b.now)
			if err != nil {
				t.Fatal(err)
			}
			got := ""
			if card != nil {
				got = b.title(card.ID)
			}
			equal(t, "the card", got, c.want)
		})
	}
}
