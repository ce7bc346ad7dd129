package projection

import (
	"testing"
	"time"
)

func TestStanding(t *testing.T) {
	coder := func(d *Draft) { d.Assignee = "coder" }
	for _, c := range []struct {
		name  string
		given func(b *board)
		want  string
	}{
		{"ready", func(b *board) { b.create("a", coder) }, Startable},
		{"ready for nobody", func(b *board) { b.create("a", func(d *Draft) { d.Assignee = "" }) }, Waits},
		{"ready for whom no dispatch starts", func(b *board) { b.create("a", func(d *Draft) { d.Assignee = "ann" }) }, Waits},
		{"running", started, AtWork},
		{"backs off", func(b *board) { b.create("a", coder); b.attempt("a", 1) }, OnHold},
		{"its back-off is over", func(b *board) { b.create("a", coder); b.attempt("a", 1); b.wait(time.Hour) }, Startable},
		{"a process is left", func(b *board) {
			started(b)
			b.must(Defer(b.id("a"), time.Second, "", b.limits, own(b)))
			b.wait(time.Hour)
		}, OnHold},
		{"scheduled", func(b *board) { b.create("a", coder, func(d *Draft) { d.NotBefore = b.now.Add(time.Hour) }) }, Waits},
		{"behind a card that goes on", func(b *board) { b.create("p"); b.create("a", func(d *Draft) { d.Parents = []string{b.id("p")} }) }, Waits},
		{"behind a card that is stuck", func(b *board) {
			b.create("p", func(d *Draft) { d.Triage = true })
			b.create("a", func(d *Draft) { d.Parents = []string{b.id("p")} })
		}, IsStuck},
		{"blocked", func(b *board) { b.create("a", func(d *Draft) { d.Blocked, d.BlockReason = true, "which?" }) }, IsStuck},
		{"triage", func(b *board) { b.create("a", func(d *Draft) { d.Triage = true }) }, IsStuck},
		{"review by a person", func(b *board) { b.create("a"); b.must(RequestReview(b.id("a"), Answer{}, "", nil, Writer{})) }, IsStuck},
		{"review by a profile", func(b *board) { b.create("a"); b.must(RequestReview(b.id("a"), Answer{}, "coder", nil, Writer{})) }, Startable},
		{"done", func(b *board) { b.create("a"); b.must(Complete(b.id("a"), Answer{}, Writer{})) }, Terminal},
		{"archived", func(b *board) { b.create("a"); b.must(Archive(b.id("a"), 0, "", "", Writer{})) }, Terminal},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBoard(t)
			c.given(b)
			got, err := Stuck{}.Standing(b.view(), b.task("a"), b.now, map[string]bool{"coder": true})
			if err != nil || got != c.want {
				t.Errorf("%s, %v; want %s", got, err, c.want)
			}
		})
	}
}

// Since when a card could have been started is the latest of what held it.
func TestReadySince(t *testing.T) {
	start := func(b *board) { b.create("a", func(d *Draft) { d.Assignee = "coder" }) }
	for name, c := range map[string]struct {
		given func(b *board)
		want  time.Duration // before now
	}{
		"made": {func(b *board) { start(b); b.wait(time.Hour) }, time.Hour},
		"its parent done": {func(b *board) {
			b.create("p")
			b.create("a", func(d *Draft) { d.Parents = []string{b.id("p")} })
			b.wait(time.Hour)
			b.must(Complete(b.id("p"), Answer{}, Writer{}))
			b.wait(time.Minute)
		}, time.Minute},
		"its run over": {func(b *board) {
			start(b)
			b.manual("a", "ann", time.Hour)
			b.wait(10 * time.Minute)
			b.must(Reclaim(b.id("a"), b.task("a").CurrentRun, "over", "", false, Writer{}))
			b.wait(2 * time.Minute)
		}, 2 * time.Minute},
		"due": {func(b *board) {
			b.create("a", func(d *Draft) { d.NotBefore = b.now.Add(time.Hour) })
			b.wait(90 * time.Minute)
			b.must(PromoteDue(b.id("a")))
		}, 30 * time.Minute},
	} {
		b := newBoard(t)
		c.given(b)
		since, err := b.view().ReadySince(b.task("a"), b.now)
		if err != nil {
			t.Fatal(err)
		}
		if got := b.now.Since(since).Truncate(time.Second); got != c.want {
			t.Errorf("%s: ready for %s, want %s", name, got, c.want)
		}
	}
}
