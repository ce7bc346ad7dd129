package tick

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"kanlog/projection"
)

func TestAdmit(t *testing.T) {
	card := func(id, assignee string, priority int64, age uint64) *projection.Task {
		return &projection.Task{ID: id, Assignee: assignee, Priority: priority, CreatedSeq: age}
	}
	policy := testPolicy()
	policy.MaxInProgress = 3
	policy.Profiles = map[string]Profile{"coder": {MaxInProgress: 2}, "other": {}, "rev": {}}
	review := func(id, reviewer string, priority int64, age uint64) *projection.Task {
		return &projection.Task{ID: id, Assignee: "coder", Reviewer: reviewer, ReviewedRun: 1, Priority: priority, CreatedSeq: age}
	}
	tree := func(id, branch string, priority int64) *projection.Task {
		t := card(id, "other", priority, 1)
		t.WorkspaceKind, t.WorkspacePath, t.Branch = projection.Worktree, "/repo", branch
		return t
	}
	at := func(id, kind, path string, priority int64) *projection.Task {
		t := card(id, "other", priority, 1)
		t.WorkspaceKind, t.WorkspacePath = kind, path
		return t
	}
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
		board  int // its cap, 0 for 3
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
		{name: "slots that only a person sets free are named", active: []*projection.Run{{Assignee: "other"}, {Assignee: "coder", Task: "t_1"}, {Assignee: "coder", Task: "t_2", DeferredReason: "x"}},
			most: -1, waits: "a: the board's cap is reached: 3 of 3 running, 1 of them asked to end and neither proven nor ruled out (kanlog why t_2)", cards: []*projection.Task{card("a", "other", 0, 1)}},
		{name: "and not those of others", active: []*projection.Run{{Assignee: "coder"}, {Assignee: "coder"}, {Assignee: "other", Task: "t_2", DeferredReason: "x"}},
			most: -1, board: 9, waits: "a: the cap of coder is reached: 2 of 2 running$", cards: []*projection.Task{card("a", "coder", 0, 1)}},
		{name: "active runs count for their profile", active: runs("coder", "coder"), most: -1, picks: "z", waits: "a: the cap of coder is reached: 2 of 2",
			cards: []*projection.Task{card("a", "coder", 9, 1), card("z", "other", 0, 2)}},
		{name: "more active than the cap, since it was lowered", active: runs("x", "x", "x", "x"), most: -1, waits: "a: the board's cap is reached: 4 of 3",
			cards: []*projection.Task{card("a", "other", 0, 1)}},
		{name: "one branch of a repository at a time, without a slot for who waits", most: -1, picks: "a z y", waits: "b: the branch x of /repo is in use by a, which starts now",
			cards: []*projection.Task{tree("a", "x", 9), tree("b", "x", 8), tree("z", "y", 7), card("y", "other", 0, 1)}},
		{name: "one directory at a time, unless all of them share it", most: -1, board: 9, picks: "a c d", waits: "b: the directory /x is in use by a, which starts now; e: the directory /y is in use by d, which starts now",
			cards: []*projection.Task{at("a", projection.Dir, "/x", 9), at("b", projection.Dir, "/x/", 8), at("c", projection.Shared, "/y", 7), at("d", projection.Shared, "/y", 6), at("e", projection.Dir, "/y", 5)}},
		{name: "most", most: 1, picks: "a", waits: "b: told to start at most 1",
			cards: []*projection.Task{card("a", "other", 0, 1), card("b", "other", 0, 2)}},
		{name: "none", most: 0, waits: "a: told to start at most 0", cards: []*projection.Task{card("a", "other", 0, 1)}},

		{name: "one review first, then attempts, then the other reviews", most: -1, picks: "low z", waits: "a: the board's cap; r: the board's cap",
			active: runs("other"), cards: []*projection.Task{card("z", "other", 9, 1), review("low", "rev", 0, 2), card("a", "other", 8, 3), review("r", "rev", -1, 4)}},
		{name: "reviews by priority, then age", most: -1, picks: "high old new",
			cards: []*projection.Task{review("new", "rev", 0, 9), review("old", "rev", 0, 2), review("high", "rev", 1, 50)}},
		{name: "on a board of one place the review has it", most: -1, active: runs("x", "x"), picks: "r", waits: "z: the board's cap is reached: 3 of 3",
			cards: []*projection.Task{card("z", "other", 9, 1), review("r", "rev", 0, 2)}},
		{name: "no place is kept for a review whose reviewer is at its cap", most: -1, board: 5, active: runs("coder", "coder"), picks: "z y", waits: "r: the cap of coder is reached: 2 of 2",
			cards: []*projection.Task{card("y", "other", -1, 3), review("r", "coder", 9, 1), card("z", "other", 0, 2)}},
		{name: "another review has it then", most: -1, active: runs("coder", "coder"), picks: "s", waits: "z: the board's cap; r: the board's cap",
			cards: []*projection.Task{review("r", "coder", 9, 1), card("z", "other", 5, 2), review("s", "rev", 0, 3)}},
		{name: "a reviewer that works too: its last place is for the review", most: -1, active: runs("coder"), picks: "r z", waits: "a: the cap of coder; b: the cap of coder",
			cards: []*projection.Task{card("a", "coder", 9, 1), card("b", "coder", 9, 2), review("r", "coder", 0, 3), card("z", "other", 0, 4)}},
		{name: "told to start one", most: 1, picks: "r", waits: "z: told to start at most 1",
			cards: []*projection.Task{card("z", "other", 9, 1), review("r", "rev", 0, 2)}},
		{name: "told to start two", most: 2, picks: "r z", waits: "y: told to start at most 2; s: told to start at most 2",
			cards: []*projection.Task{card("z", "other", 9, 1), card("y", "other", 8, 2), review("r", "rev", 0, 3), review("s", "rev", 0, 4)}},
		{name: "told to start none", most: 0, waits: "r: told to start at most 0", cards: []*projection.Task{review("r", "rev", 0, 1)}},
	} {
		t.Run(c.name, func(t *testing.T) {
			policy := policy
			policy.MaxInProgress = cmp.Or(c.board, policy.MaxInProgress)
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
				each := strings.Split(c.waits, "; ")
				for i, w := range each {
					id, reason, _ := strings.Cut(w, ": ")
					if len(waiting) != len(each) || waiting[i].Task != id || !strings.Contains(waiting[i].Reason+"$", reason) {
						t.Errorf("waits %v, want %s", waiting, c.waits)
					}
				}
			}
			if len(picks)+len(waiting) != len(c.cards) {
				t.Error("a card got lost")
			}
		})
	}
}

// A tick starts what is in review with the reviewer's profile and counts it there; a
// review without a profile here takes no place and is told why.
func TestTicksStartReviews(t *testing.T) {
	b := newBench(t)
	b.d.Policy.MaxInProgress = 2
	b.d.Policy.Profiles["rev"] = Profile{Name: "rev"}
	handIn := func(title, reviewer string) {
		b.create(title)
		b.must(projection.RequestReview(b.cards[title], projection.Answer{}, reviewer, nil, projection.Writer{}))
	}
	handIn("unknown", "nobody")
	b.create("first")
	b.create("second")
	handIn("work", "rev")
	rep := b.ticks()
	var started []string
	for _, s := range rep.Spawned {
		started = append(started, s.Task+" "+s.Assignee)
	}
	slices.Sort(started) // they start beside each other
	equal(t, "what started", strings.Join(started, ", "), b.cards["work"]+" rev, "+b.cards["first"]+" coder")
	why := map[string]string{}
	for _, w := range rep.Waiting {
		why[w.Task] = w.Reason
	}
	for title, piece := range map[string]string{"unknown": `no profile "nobody"`, "second": "the board's cap is reached: 2 of 2"} {
		if !strings.Contains(why[b.cards[title]], piece) {
			t.Errorf("%s waits since %q, want %q", title, why[b.cards[title]], piece)
		}
	}
}

// While a profile fails alike, the cards that have lost nothing yet are the ones
// to try it with.
// A card that has waited starts before what is more urgent and younger, also if more
// cards than a tick reads stand between them; without ageing it never does.
func TestAdmitByAgeing(t *testing.T) {
	for _, c := range []struct {
		ageing time.Duration
		waited time.Duration
		want   string
	}{
		{0, 1000 * time.Hour, "urgent 0"},
		{24 * time.Hour, 48*time.Hour - 2*time.Second, "urgent 0"}, // one priority gained, two are missing
		{24 * time.Hour, 48 * time.Hour, "low"},                    // as urgent, and older
		{time.Hour, 3 * time.Hour, "low"},
	} {
		b := newBench(t)
		b.d.Policy.MaxInProgress, b.d.Policy.Ageing = 1, c.ageing
		b.create("low")
		b.create("lower", func(d *projection.Draft) { d.Priority = -5 })
		b.now = b.now.Add(c.waited)
		for i := range readWaiting + 5 {
			b.create(fmt.Sprint("urgent ", i), func(d *projection.Draft) { d.Priority = 2; d.ID[15], d.ID[14] = byte(i), 1 })
		}
		b.now = b.now.Add(time.Second)
		rep := b.ticks()
		if len(rep.Spawned) != 1 || rep.Spawned[0].Task != b.cards[c.want] {
			t.Errorf("ageing %s, waited %s: started %v, want %s (%s)", c.ageing, c.waited, rep.Spawned, c.want, b.cards[c.want])
		}
	}
}

func TestAdmitTriesAnotherCardThanThoseThatFailed(t *testing.T) {
	policy := testPolicy()
	policy.Profiles = map[string]Profile{"coder": {}}
	policy.Breaker = projection.Breaker{Runs: 3, Pause: time.Minute, Most: time.Hour}
	cards := func() []*projection.Task {
		return []*projection.Task{
			{ID: "failed", Assignee: "coder", Priority: 5, CreatedSeq: 1, LastError: "exited with 9"},
			{ID: "other's", Assignee: "other", Priority: 3, CreatedSeq: 3},
			{ID: "fresh", Assignee: "coder", CreatedSeq: 2},
		}
	}
	ids := func(list []*projection.Task) string {
		var names []string
		for _, t := range list {
			names = append(names, t.ID)
		}
		return strings.Join(names, " ")
	}
	for _, c := range []struct {
		name  string
		alike *projection.Alike
		picks string
	}{
		{"no streak", nil, "failed other's fresh"},
		{"a streak of one card", &projection.Alike{How: "exited with 9", Runs: 2, Cards: []string{"failed"}}, "failed other's fresh"},
		// It takes the place of the one that failed, and no more: other profiles
		// keep theirs.
		{"a streak of two cards", &projection.Alike{How: "exited with 9", Runs: 2, Cards: []string{"failed", "another"}}, "fresh other's"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := countSlots(nil, policy)
			s.alike["coder"] = c.alike
			picks, waiting := admit(cards(), s, -1)
			equal(t, "the picks", ids(picks), c.picks)
			if len(picks) == 2 && (len(waiting) != 1 || waiting[0].Task != "failed" || !strings.Contains(waiting[0].Reason, "at most 1 are tried at once")) {
				t.Errorf("waiting: %v", waiting)
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

// A worker that lives on after its answer is ended by the terminal grace or
// later; until then it uses up the machine like any other, so it takes a slot of
// the board and of its profile, and gives both back when it is gone.
func TestARetainedWorkerTakesASlotOfBoardAndProfile(t *testing.T) {
	for _, c := range []struct {
		name           string
		board, profile int
		says           string
	}{
		{"board", 1, 0, "the board's cap is reached: 1 of 1"},
		{"profile", 10, 1, "the cap of coder is reached: 1 of 1"},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBench(t)
			b.d.Policy.MaxInProgress = c.board
			b.d.Policy.Profiles["coder"] = Profile{MaxInProgress: c.profile}
			b.d.Policy.Profiles["other"] = Profile{}
			run := b.running("first")
			b.complete("first", run)
			b.create("second")
			active, err := projection.NewView(b.store.Mem).Active()
			if err != nil || len(active) != 1 || active[0].Open() {
				t.Fatalf("active: %v, %v; want the closed run alone", active, err)
			}
			full, err := Full(projection.NewView(b.store.Mem), b.d.Policy, Host{}, b.now)
			if err != nil {
				t.Fatal(err)
			}
			if got := full("coder"); !strings.Contains(got, c.says) {
				t.Errorf("who asks why is told %q, want %q", got, c.says)
			}
			equal(t, "another profile may go on", full("other") == "", c.name == "profile")

			// Inside the grace, being ended, its children left: it holds the slot.
			for _, step := range []struct {
				wait time.Duration
				e    Evidence
				want string
			}{
				{0, Evidence{Answer: Alive}, ""},
				{2 * time.Minute, Evidence{Answer: Alive}, "termination_requested first, term_supervisor first"},
				{10 * time.Second, Evidence{Answer: Alive}, "kill_supervisor first"},
				{0, Evidence{Answer: Orphaned}, "kill_members first"},
				{0, Evidence{Answer: Held, Why: "unreadable"}, "reclaim_deferred first"},
			} {
				b.now = b.now.Add(step.wait)
				b.evidence[run] = step.e
				rep := b.ticks()
				equal(t, "the story beside "+step.e.String(), b.story(), step.want)
				if len(rep.Waiting) != 1 || rep.Waiting[0].Task != b.cards["second"] || !strings.Contains(rep.Waiting[0].Reason, c.says) {
					t.Errorf("beside %s waits %v, want %s", step.e, rep.Waiting, c.says)
				}
			}
			// What a racing dispatcher decided on an older picture is checked in
			// the transaction of the claim.
			_, err = b.Update("dispatcher:host/2", b.now, projection.Claim(projection.ClaimFor{
				Task: b.cards["second"], Origin: projection.OriginDispatch, Assignee: "coder", TTL: time.Minute, LaunchGrace: time.Minute,
				Caps: projection.Caps{Board: c.board, Profile: c.profile}, Limits: projection.DefaultLimits(),
			}, projection.Writer{}))
			if !errors.Is(err, projection.ErrState) {
				t.Errorf("a claim beside it: %v", err)
			}
			b.evidence[run] = Evidence{Answer: Dead}
			b.ticks()
			equal(t, "the story once it is gone", b.story(), "terminal_worker_reaped first, claimed second, start second")
		})
	}
}

func activeRuns(n int) (runs []*projection.Run) {
	for i := range n {
		runs = append(runs, &projection.Run{Assignee: fmt.Sprint(i)})
	}
	return runs
}
