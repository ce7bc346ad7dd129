package projection

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"kanlog/eventlog"
)

func TestWhy(t *testing.T) {
	here := Admission{Profiles: map[string]bool{"coder": true}}
	full := Admission{Profiles: here.Profiles, Full: func(a string) string { return "the cap of " + a + " is reached" }}
	retained := func(b *board) { started(b); b.must(Fail(b.id("a"), "x", b.limits, own(b))) }
	for _, c := range []struct {
		name  string
		given func(b *board)
		w     Admission
		want  []string // pieces; none: it does not wait
	}{
		{"ready", card, here, nil},
		{"triage", func(b *board) { b.create("a", func(d *Draft) { d.Triage = true }) }, here, []string{"in triage"}},
		{"scheduled", func(b *board) { b.create("a", func(d *Draft) { d.NotBefore = b.now.Add(time.Hour) }) }, here, []string{"not before 2023-11-14T23:13:20Z"}},
		{"review", func(b *board) { cleanExit(CleanReview)(b); b.ends(2, 0) }, here, []string{"waits for a review"}},
		{"blocked", func(b *board) {
			card(b)
			b.must(Block(b.id("a"), "which port?", Capability, DefaultLimits(), Writer{}))
		}, here,
			[]string{"blocked (capability): which port?", "kanlog unblock t_"}},
		{"gave up", func(b *board) { card(b); b.attempt("a", 1); b.attempt("a", 1) }, here,
			[]string{"2 of 2 attempts failed", "a failure limit above 2", "another assignee"}},
		{"a parent is open", func(b *board) { b.create("p"); b.create("a", func(d *Draft) { d.Parents = []string{b.id("p")} }) }, here,
			[]string{"waits for t_", "(ready)"}},
		{"a parent is blocked, with its reason", func(b *board) {
			b.create("p")
			b.create("a", func(d *Draft) { d.Parents = []string{b.id("p")} })
			b.must(Block(b.id("p"), "no key", "", DefaultLimits(), Writer{}))
		}, here, []string{"(blocked: no key)"}},
		{"many parents are open", func(b *board) {
			var parents []string
			for i := range 8 {
				parents = append(parents, b.create(fmt.Sprint("p", i)))
			}
			b.create("a", func(d *Draft) { d.Parents = parents })
		}, here, []string{"3 more"}},
		{"running", started, here, nil},
		{"being ended", func(b *board) { started(b); b.must(RequestEnd(EndRequest{Run: 2, Reason: EndReclaim})) }, here, []string{"run 2 is being ended (reclaim)"}},
		{"over its time, and nobody may end it", func(b *board) {
			b.create("a", func(d *Draft) { d.MaxRuntime = time.Minute })
			r := b.registration("a", b.claim("a"))
			r.Worker.Fingerprint = "unverified"
			b.must(Register(r))
			b.wait(time.Hour)
		}, here, []string{"over its time since", "cannot be ended", "kanlog reclaim t_40ff03a0 --force --reason T"}},
		{"its end is deferred", func(b *board) {
			started(b)
			b.must(RequestEnd(EndRequest{Run: 2, Reason: EndReclaim}))
			b.must(DeferEnd(2, "it cannot be looked at", "", 0))
		}, here, []string{"run 2 was asked to end (reclaim)", "cannot be looked at", "kanlog reclaim t_40ff03a0 --force --reason T"}},
		{"done", func(b *board) { card(b); b.must(Complete(b.id("a"), Answer{}, Writer{})) }, here, nil},
		{"the process of an earlier run lives", func(b *board) { retained(b); b.wait(time.Hour) }, here, []string{"the process of run 2 has not ended", "kanlog reclaim"}},
		{"a back-off", func(b *board) { card(b); b.ends(b.start("a"), 1) }, here, []string{"back-off until 2023-"}},
		{"a cool-down", func(b *board) { card(b); b.ends(b.start("a"), ExitTryLater) }, here, []string{"rate limit cool-down until 2023-"}},
		{"deferred", func(b *board) {
			card(b)
			b.must(Defer(b.id("a"), time.Hour, "", b.limits, b.worker("a", b.start("a"))))
			b.must(BookEnd(Ending{Run: 2}, b.limits))
		}, here, []string{"deferred until 2023-"}},
		{"a back-off that has passed", func(b *board) { card(b); b.ends(b.start("a"), 1); b.wait(time.Hour) }, here, nil},
		{"nobody is assigned", func(b *board) { b.create("a", func(d *Draft) { d.Assignee = "" }) }, here, []string{"nobody is assigned", "kanlog assign t_"}},
		{"no profile", func(b *board) { b.create("a", func(d *Draft) { d.Assignee = "ann" }) }, here, []string{`no profile "ann"`, "[profiles.ann]"}},
		{"no profile, and a name that neither a shell nor TOML takes bare", func(b *board) { b.create("a", func(d *Draft) { d.Assignee = `ann "o'b` }) }, here,
			[]string{`kanlog work --assignee 'ann "o'\''b' -- CMD`, `[profiles."ann \"o'b"]`}},
		{"no profile, and a name that TOML does not take bare", func(b *board) { b.create("a", func(d *Draft) { d.Assignee = "jürgen" }) }, here,
			[]string{"kanlog work --assignee 'jürgen' -- CMD", `[profiles."jürgen"]`}},
		{"no profile of the reviewer, by such a name", func(b *board) {
			b.create("a", func(d *Draft) { d.Reviewer = "a b" })
			r := b.start("a")
			b.must(RequestReview(b.id("a"), Answer{}, "", nil, b.worker("a", r)))
			b.ends(r, 0)
		}, here, []string{"kanlog work --assignee 'a b' -- CMD", `[profiles."a b"]`}},
		{"a cap is reached", card, full, []string{"the cap of coder is reached"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBoard(t)
			c.given(b)
			why, err := b.view().Why(b.task("a"), b.now, c.w)
			if err != nil {
				t.Fatal(err)
			}
			if len(c.want) == 0 && why != "" {
				t.Errorf("waits: %q", why)
			}
			for _, piece := range c.want {
				if !strings.Contains(why, piece) {
					t.Errorf("%q lacks %q", why, piece)
				}
			}
		})
	}
	t.Run("its run is not there", func(t *testing.T) {
		b := newBoard(t)
		card(b)
		lost := *b.task("a")
		lost.Status, lost.CurrentRun = Running, 99
		if _, err := b.view().Why(&lost, eventlog.Time(1), here); err == nil {
			t.Error("no error for a row that names a run which is not there")
		}
	})
}
