package projection

import (
	"errors"
	"os"
	"path/filepath"
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

// longBoard is a board of one card with so many comments, and its id.
func longBoard(t *testing.T, comment string, comments int) (*Store, string) {
	t.Helper()
	b := newBoard(t)
	b.create("a")
	s := b.onDisk(t)
	if err := s.file.Update(func(tx *eventlog.Tx) error {
		for range comments {
			e := eventlog.Event{Task: b.id("a"), Data: &eventlog.Commented{Author: "ann", Text: comment}}
			if _, err := commit(tx, operator, b.now, []eventlog.Event{e}); err != nil {
				return err
			}
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	return s, b.id("a")
}

// A restore puts another log in the board's place while somebody reads: what is read
// afterwards must not be taken for the rest of what was read before.
func TestPastOfALogThatWasReplaced(t *testing.T) {
	for _, c := range []struct {
		name     string
		comments int // of the other log
	}{{"a shorter one", 3}, {"one as long", 600}, {"a longer one", 900}} {
		for _, late := range []bool{false, true} {
			read := map[string]func(p *Past, task string, fn func(eventlog.Commit) error) error{
				"Commits":     func(p *Past, _ string, fn func(eventlog.Commit) error) error { return p.Commits(fn) },
				"TaskCommits": func(p *Past, task string, fn func(eventlog.Commit) error) error { return p.TaskCommits(task, 1, fn) },
			}
			for verb, commits := range read {
				s, id := longBoard(t, "one", 600)
				past, err := s.Now()
				if err != nil {
					t.Fatal(err)
				}
				n := 0
				if err := commits(past, id, func(eventlog.Commit) error { n++; return nil }); err != nil || n != 601 {
					t.Errorf("%s of the log as it is: %d commits, %v", verb, n, err)
				}
				replace := func() {
					other, _ := longBoard(t, "other", c.comments)
					if err := os.Rename(filepath.Join(other.file.Dir(), eventlog.StoreName), filepath.Join(s.file.Dir(), eventlog.StoreName)); err != nil {
						t.Fatal(err)
					}
				}
				if !late {
					replace()
				}
				seen := 0
				err = commits(past, id, func(eventlog.Commit) error {
					if seen++; late && seen == 2 {
						replace()
					}
					return nil
				})
				if !errors.Is(err, eventlog.ErrReplaced) || !late && seen > 0 {
					t.Errorf("%s of %s, in the middle %v: %d commits seen and %v, want ErrReplaced", verb, c.name, late, seen, err)
				}
			}
		}
	}
}
