package projection

import (
	"errors"
	"testing"
	"time"
)

// everyTable is a history after which no table is empty.
func everyTable(t testing.TB) *board {
	b := newBoard(t)
	b.create("parent", func(d *Draft) { d.Body, d.Key = "text", "k" })
	b.create("child", func(d *Draft) { d.Parents = []string{b.id("parent")} })
	b.create("ready", func(d *Draft) { d.Priority = 5; d.Tags = []string{"x", "y"} })
	b.create("low", func(d *Draft) { d.Priority = -5 })
	b.create("nobody's", func(d *Draft) { d.Assignee = "" })
	b.create("later", func(d *Draft) { d.NotBefore = b.now.Add(30 * 24 * time.Hour) })
	b.create("held")
	b.create("gave up")
	b.create("blocked", func(d *Draft) { d.Blocked, d.BlockReason = true, "x" })
	b.create("running")
	b.create("retained")
	b.create("manual")
	b.create("done")
	b.must(AddComment(b.id("parent"), "ann", "note", Writer{}))
	b.must(Complete(b.id("retained"), Answer{Metadata: []byte(`{"n":1}`)}, b.worker("retained", b.start("retained"))))
	b.attempt("gave up", 1)
	b.attempt("gave up", 1)
	old := b.attempt("held", ExitTryLater)
	if _, err := b.try(operator, Beat(b.id("held"), "", b.limits, b.worker("held", old))); !errors.Is(err, ErrFenced) {
		t.Fatalf("history: %v", err)
	}
	b.start("running")
	b.must(Beat(b.id("running"), "half", b.limits, b.worker("running", b.task("running").LastRun)))
	b.manual("manual", "ann", time.Hour)
	b.create("in review")
	b.must(RequestReview(b.id("in review"), Answer{Summary: "look"}, "other", nil, Writer{}))
	b.must(Complete(b.id("done"), Answer{Result: "ok"}, Writer{}))
	b.must(PauseBoard("x", Writer{}))
	return b
}

func TestHistoryFillsEveryTable(t *testing.T) {
	b := everyTable(t)
	for _, table := range []string{
		tabTasks, tabBodies, tabRuns, tabTaskRuns, tabTaskLog, tabComments, tabParents, tabChildren,
		tabKeys, tabActive, tabReady, tabReview, tabHeld, tabScheduled, tabParked, tabFenced, tabAlike, tabBoard,
	} {
		if len(dump(b.s.Mem, table)) == 0 {
			t.Errorf("table %s is empty", table)
		}
	}
}
