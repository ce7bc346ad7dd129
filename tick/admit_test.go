package tick

import (
	"fmt"
	"strings"
	"testing"

	"kanlog/projection"
)

func TestAdmit(t *testing.T) {
	card := func(id, assignee string, priority int64, age uint64) *projection.Task {
		return &projection.Task{ID: id, Assignee: assignee, Priority: priority, CreatedSeq: age}
	}
	policy := testPolicy()
	policy.MaxInProgress = 3
	policy.Profiles = map[string]Profile{"coder": {MaxInProgress: 2}, "other": {}}
	runs := func(assignees ...string) (active []*projection.Run) {
		for _, a := range assignees {
			active = append(active, &projection.Run{Assignee: a})
		}
		return active
	}
	for _, c := range []struct {
		name   string
		active []*projection.Run
		cards  []*projection.Task
		most   int
		picks  string
		waits  string // id: piece of the reason; ...
	}{
		{name: "nothing to do", most: -1},
		{name: "priority, then age", most: -1, picks: "high old new",
			cards: []*projection.Task{card("new", "other", 0, 9), card("old", "other", 0, 2), card("high", "other", 1, 50)}},
		{name: "the profile's cap does not hold up others", most: -1, picks: "a b z", waits: "c: the cap of coder is reached: 2 of 2",
			cards: []*projection.Task{card("a", "coder", 9, 1), card("b", "coder", 8, 2), card("c", "coder", 7, 3), card("z", "other", 0, 4)}},
		{name: "the board's cap", active: runs("other", "other"), most: -1, picks: "a", waits: "b: the board's cap is reached: 3 of 3",
			cards: []*projection.Task{card("a", "other", 0, 1), card("b", "other", 0, 2)}},
		{name: "active runs count for their profile", active: runs("coder", "coder"), most: -1, picks: "z", waits: "a: the cap of coder is reached: 2 of 2",
			cards: []*projection.Task{card("a", "coder", 9, 1), card("z", "other", 0, 2)}},
		{name: "more active than the cap, since it was lowered", active: runs("x", "x", "x", "x"), most: -1, waits: "a: the board's cap is reached: 4 of 3",
			cards: []*projection.Task{card("a", "other", 0, 1)}},
		{name: "most", most: 1, picks: "a", waits: "b: told to start at most 1",
			cards: []*projection.Task{card("a", "other", 0, 1), card("b", "other", 0, 2)}},
		{name: "none", most: 0, waits: "a: told to start at most 0", cards: []*projection.Task{card("a", "other", 0, 1)}},
	} {
		t.Run(c.name, func(t *testing.T) {
			picks, waiting := admit(c.cards, countSlots(c.active, policy), c.most)
			var got []string
			for _, p := range picks {
				got = append(got, p.ID)
			}
			if g := strings.Join(got, " "); g != c.picks {
				t.Errorf("picks %q, want %q", g, c.picks)
			}
			if c.waits == "" && len(waiting) > 0 {
				t.Errorf("waits: %v", waiting)
			}
			if c.waits != "" {
				id, reason, _ := strings.Cut(c.waits, ": ")
				if len(waiting) != 1 || waiting[0].Task != id || !strings.Contains(waiting[0].Reason, reason) {
					t.Errorf("waits %v, want %s", waiting, c.waits)
				}
			}
			if len(picks)+len(waiting) != len(c.cards) {
				t.Error("a card got lost")
			}
		})
	}
}

func TestFreeSlots(t *testing.T) {
	policy := testPolicy()
	for n, want := range map[int]int{0: 10, 9: 1, 10: 0, 12: 0} {
		if got := countSlots(activeRuns(n), policy).free(); got != want {
			t.Errorf("%d active: %d free, want %d", n, got, want)
		}
	}
}

func activeRuns(n int) (runs []*projection.Run) {
	for i := range n {
		runs = append(runs, &projection.Run{Assignee: fmt.Sprint(i)})
	}
	return runs
}
