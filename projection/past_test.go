package projection

import (
	"testing"

	"kanlog/eventlog"
)

// The board of a moment is the fold of the log up to there, row by row the same as the
// tables were, whatever is written after it was taken.
func TestPastStaysAsItWas(t *testing.T) {
	b := everyTable(t)
	s := b.onDisk(t)
	before := s.mustRows(t)
	past, err := s.Now()
	if err != nil {
		t.Fatal(err)
	}
	head, err := s.NewestCommit()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Update(operator, b.now, Create(draft("one more"), Writer{})); err != nil {
		t.Fatal(err)
	}
	equal(t, "its tables", rows(past.tables), before)
	equal(t, "its head", past.Head, head)
	then, err := s.Past(Moment{Seq: head.Seq}, nil)
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "the tables of the same event", rows(then.tables), before)
	by, err := s.Past(Moment{At: b.now - 1}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if by.Head.Commit > head.Commit {
		t.Errorf("what was written at %s is part of the board by %s", b.now, b.now-1)
	}
	if _, err := s.Past(Moment{Seq: head.Seq + 2}, nil); err == nil {
		t.Error("an event that is not there was reached")
	}
	_ = past.View(func(v View) error {
		got, err := v.Head()
		equal(t, "its end", got, head)
		oldest, n := uint64(0), 0
		for _, id := range past.Cards() {
			c, err := v.MustTask(id)
			if err != nil || c.CreatedSeq <= oldest {
				t.Errorf("%s: %v, or not in the order of age", id, err)
			}
			oldest = c.CreatedSeq
		}
		v.scan(tabTasks, nil, func(_, _ []byte) bool { n++; return true })
		equal(t, "cards", len(past.Cards()), n)
		return err
	})
}

// A board is stepped through event by event as it is folded commit by commit.
func TestStepsAreTheCommits(t *testing.T) {
	s := everyTable(t).onDisk(t)
	whole, err := s.Now()
	if err != nil {
		t.Fatal(err)
	}
	stepped, events := s.Before(), uint64(0)
	err = whole.Commits(func(c eventlog.Commit) error {
		return stepped.Step(c, func(int) error { return nil }, func(int) error { events++; return nil })
	})
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "events", events, whole.Head.Seq)
	equal(t, "the tables", rows(stepped.tables), rows(whole.tables))
}
