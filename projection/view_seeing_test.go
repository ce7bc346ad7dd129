package projection

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"kanlog/eventlog"
)

func TestState(t *testing.T) {
	for _, c := range []struct {
		given func(b *board)
		want  string
	}{
		{func(b *board) { card(b); b.claim("a") }, StateStarting},
		{func(b *board) { card(b); b.manual("a", "ann", time.Hour) }, StateManual},
		{started, StateRunning},
		{func(b *board) { started(b); b.must(RequestEnd(EndRequest{Run: 2, Reason: EndReclaim})) }, StateEnding},
		{func(b *board) { started(b); b.must(Complete(b.id("a"), Answer{}, own(b))) }, StateRetained},
		{func(b *board) { card(b); b.attempt("a", 0) }, StateEnded},
	} {
		b := newBoard(t)
		c.given(b)
		if got := b.run(2).State(); got != c.want {
			t.Errorf("state %s, want %s", got, c.want)
		}
		active, err := b.view().Active()
		if err != nil || (len(active) == 1) != (c.want != StateEnded) {
			t.Errorf("%s: %d active runs, %v", c.want, len(active), err)
		}
	}
}

// A run whose time is over is overdue from the moment by which a tick would judge it
// until somebody asks for its end.
func TestOverdueSince(t *testing.T) {
	b := newBoard(t)
	b.create("a", func(d *Draft) { d.MaxRuntime = time.Minute })
	b.start("a")
	over := b.run(2).SpawnedAt.Add(time.Minute)
	for _, c := range []struct{ now, want eventlog.Time }{{over - 1, 0}, {over, over}, {over.Add(time.Hour), over}} {
		equal(t, "overdue since", b.run(2).OverdueSince(c.now), c.want)
	}
	b.must(RequestEnd(EndRequest{Run: 2, Reason: EndMaxRuntime}))
	equal(t, "its end was asked for", b.run(2).OverdueSince(over), 0)

	b = newBoard(t)
	started(b)
	equal(t, "no limit", b.run(2).OverdueSince(over.Add(time.Hour)), 0)
}

// Which cards nothing but a person moves, and because of which.
func TestStuck(t *testing.T) {
	b := newBoard(t)
	after := func(title string, parents ...string) {
		b.create(title, func(d *Draft) {
			for _, p := range parents {
				d.Parents = append(d.Parents, b.id(p))
			}
		})
	}
	b.create("blocked")
	b.create("triage", func(d *Draft) { d.Triage = true })
	b.create("ready")
	after("waits", "ready")
	after("child", "blocked")
	after("both", "triage", "ready", "child")
	after("diamond", "both", "child", "waits")
	b.create("done")
	after("free", "done")
	b.must(Block(b.id("blocked"), "which key?", "", DefaultLimits(), Writer{}))
	b.must(Complete(b.id("done"), Answer{}, Writer{}))
	want := map[string][]string{
		"blocked": {"blocked"}, "triage": {"triage"}, "child": {"blocked"},
		"both": {"blocked", "triage"}, "diamond": {"blocked", "triage"},
	}
	// Whichever card is asked about first, the answers are the same.
	for range 20 {
		s := Stuck{}
		for title, id := range b.cards {
			roots, err := s.Roots(b.view(), b.task(title))
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for name, root := range b.cards {
				if slices.Contains(roots, root) {
					got = append(got, name)
				}
			}
			slices.Sort(got)
			if !slices.Equal(got, want[title]) || len(roots) != len(got) {
				t.Errorf("%s (%s) is stuck on %v, want %v", title, id, got, want[title])
			}
		}
	}
}

// A chain may be as long as the board, and wide: the names are bounded.
func TestStuckIsBounded(t *testing.T) {
	b := newBoard(t)
	parents := []string{}
	for i := range 2 * maxRoots {
		parents = append(parents, b.create(fmt.Sprint("root", i), func(d *Draft) { d.Triage = true }))
	}
	last := b.create("c0", func(d *Draft) { d.Parents = parents })
	for i := range 300 {
		last = b.create(fmt.Sprint("c", i+1), func(d *Draft) { d.Parents = []string{last} })
	}
	roots, err := Stuck{}.Roots(b.view(), b.task("c300"))
	if err != nil || len(roots) != maxRoots {
		t.Errorf("%d roots, %v", len(roots), err)
	}
}

func TestLastCommit(t *testing.T) {
	b := newBoard(t)
	card(b)
	b.create("other")
	if got := b.view().LastCommit("t_nosuch"); got != 0 {
		t.Errorf("a card that is not there: %d", got)
	}
	for n := range 40 {
		if n%3 == 0 {
			b.must(AddComment(b.id("other"), "ann", "x", Writer{}))
		}
		b.must(AddComment(b.id("a"), "ann", "x", Writer{}))
		for title := range b.cards {
			all := b.view().TaskCommits(b.id(title), 0, 1000)
			if got := b.view().LastCommit(b.id(title)); got != all[len(all)-1] {
				t.Errorf("%s: %d, want %d", title, got, all[len(all)-1])
			}
		}
	}
}

func TestRecentRuns(t *testing.T) {
	b := newBoard(t)
	card(b)
	b.limits.FailureLimit = 100
	var want []uint64
	for range 5 {
		want = append(want, b.attempt("a", 1))
	}
	slices.Reverse(want)
	s := b.onDisk(t)
	for _, most := range []int{0, 1, 4, 5, 6, 100} {
		var got []uint64
		all, err := s.RecentRuns(most, func(r *Run) { got = append(got, r.ID) })
		if n := min(most, len(want)); err != nil || !slices.Equal(got, want[:n]) || all != (most >= len(want)) {
			t.Errorf("at most %d: %v, all %v, %v", most, got, all, err)
		}
	}
	// An empty board has none.
	if all, err := newBoard(t).onDisk(t).RecentRuns(1, func(*Run) { t.Error("a run of no card") }); !all || err != nil {
		t.Error(all, err)
	}
}

// The windows of a look back meet without a gap and without a run seen twice.
func TestRunWindowsMeet(t *testing.T) {
	b := newBoard(t)
	b.forged = true
	for _, n := range []uint64{1, 2, runWindow - 1, runWindow, runWindow + 1, 2 * runWindow, 2*runWindow + 1, 3*runWindow - 1} {
		putRun(b.s.Mem, &Run{ID: n})
	}
	for before := uint64(3*runWindow - 3); before < 3*runWindow+3; before++ {
		var got []uint64
		for at := before; at > 1; at -= min(at-1, runWindow) {
			runs, err := b.view().runsIn(at)
			if err != nil {
				t.Fatal(err)
			}
			for _, r := range runs {
				got = append(got, r.ID)
			}
		}
		want := []uint64{3*runWindow - 1, 2*runWindow + 1, 2 * runWindow, runWindow + 1, runWindow, runWindow - 1, 2, 1}
		if before <= 3*runWindow-1 {
			want = want[1:]
		}
		if !slices.Equal(got, want) {
			t.Errorf("below %d: %v, want %v", before, got, want)
		}
	}
}

func TestTasksUnder(t *testing.T) {
	b := newBoard(t)
	for i := range 9 {
		b.create(fmt.Sprint(i))
	}
	for _, prefix := range []string{"", "t_", b.id("3")[:3], b.id("4"), "x"} {
		want := 0
		for _, id := range b.cards {
			if strings.HasPrefix(id, prefix) {
				want++
			}
		}
		got, err := b.view().TasksUnder(prefix, 100)
		if err != nil || len(got) != want {
			t.Errorf("%q: %d cards, want %d, %v", prefix, len(got), want, err)
		}
	}
	if got, _ := b.view().TasksUnder("", 4); len(got) != 4 {
		t.Errorf("%d cards, asked for 4", len(got))
	}
}

// Who only wants to peek gets no answer from old tables, and leaves them.
func TestPeekChangesNothing(t *testing.T) {
	b := newBoard(t)
	card(b)
	s := b.onDisk(t)
	if err := s.Peek(func(v View) error { _, err := v.MustTask(b.id("a")); return err }); err != nil {
		t.Error(err)
	}
	if err := s.file.Update(func(tx *eventlog.Tx) error { tx.SetTablesFormat(TablesFormat - 1); return nil }); err != nil {
		t.Fatal(err)
	}
	before := s.Stamp()
	if err := s.Peek(func(View) error { t.Error("old tables were shown"); return nil }); !errors.Is(err, errOldTables) {
		t.Errorf("old tables: %v", err)
	}
	if s.Stamp() != before {
		t.Error("the store has changed")
	}
}
