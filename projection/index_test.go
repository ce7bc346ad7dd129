package projection

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"kanlog/eventlog"
)

// indexes answers the queries of a tick from the indexes; naive answers them
// from the rows of the whole board. They must agree after every step.
func indexes(v View, now eventlog.Time, limit int64) (string, error) {
	var out []string
	say := func(format string, args ...any) { out = append(out, fmt.Sprintf(format, args...)) }
	active, err := v.Active()
	if err != nil {
		return "", err
	}
	for _, r := range active {
		say("active %d", r.ID)
	}
	for _, name := range v.ReadyAssignees() {
		err := v.Ready(name, func(t *Task) bool { say("ready %q %s", name, t.ID); return true })
		if err != nil {
			return "", err
		}
	}
	for _, name := range v.Reviewers() {
		err := v.InReview(name, func(t *Task) bool { say("review %q %s", name, t.ID); return true })
		if err != nil {
			return "", err
		}
	}
	over, still, err := v.Held(now, 1<<30, func(string) bool { return true })
	if err != nil {
		return "", err
	}
	out = append(out, sorted("over", ids(over))...)
	out = append(out, sorted("held", ids(still))...)
	due, err := v.Due(now)
	out = append(out, sorted("due", due)...)
	out = append(out, sorted("parked", v.Parked(limit))...)
	return strings.Join(out, "\n"), err
}

func naive(v View, now eventlog.Time, limit int64) (string, error) {
	var out []string
	say := func(format string, args ...any) { out = append(out, fmt.Sprintf(format, args...)) }
	var runs []*Run
	tasks, err := v.TasksAfter("", 1<<30)
	if err != nil {
		return "", err
	}
	for _, t := range tasks {
		of, err := v.Runs(t.ID)
		if err != nil {
			return "", err
		}
		runs = append(runs, of...)
	}
	slices.SortFunc(runs, func(a, b *Run) int { return int(a.ID) - int(b.ID) })
	for _, r := range runs {
		if r.Outcome == "" || r.HasWorker {
			say("active %d", r.ID)
		}
	}
	slices.SortFunc(tasks, func(a, b *Task) int {
		if c := strings.Compare(a.Assignee, b.Assignee); c != 0 {
			return c
		}
		if a.Priority != b.Priority {
			return int(b.Priority - a.Priority)
		}
		return int(a.CreatedSeq) - int(b.CreatedSeq)
	})
	var over, held, due, parked []string
	var reviews []*Task
	for _, t := range tasks {
		free := (t.Status == Ready || t.Status == Review && t.Reviewer != "") && t.CurrentRun == 0 && t.Worker == 0
		switch {
		case free && t.HoldUntil == 0 && t.Status == Review:
			reviews = append(reviews, t)
		case free && t.HoldUntil == 0:
			say("ready %q %s", t.Assignee, t.ID)
		case free && (now < t.HoldSince-eventlog.Time(ClockSlack.Microseconds()) || now >= t.HoldUntil):
			over = append(over, t.ID)
		case free:
			held = append(held, t.ID)
		case t.Status == Scheduled && t.NotBefore <= now:
			due = append(due, t.ID)
		case t.Status == Blocked && t.ParkedLimit > 0 && t.ParkedLimit < limit && t.MaxRetries == 0:
			parked = append(parked, t.ID)
		}
	}
	slices.SortStableFunc(reviews, func(a, b *Task) int {
		return cmp.Or(cmp.Compare(a.Reviewer, b.Reviewer), cmp.Compare(b.Priority, a.Priority), cmp.Compare(a.CreatedSeq, b.CreatedSeq))
	})
	for _, t := range reviews {
		say("review %q %s", t.Reviewer, t.ID)
	}
	out = append(out, sorted("over", over)...)
	out = append(out, sorted("held", held)...)
	out = append(out, sorted("due", due)...)
	out = append(out, sorted("parked", parked)...)
	return strings.Join(out, "\n"), nil
}

func ids(tasks []*Task) (list []string) {
	for _, t := range tasks {
		list = append(list, t.ID)
	}
	return list
}

func sorted(what string, ids []string) []string {
	out := slices.Clone(ids)
	slices.Sort(out)
	for i := range out {
		out[i] = what + " " + out[i]
	}
	return out
}

func (b *board) sameIndexes() error {
	for _, at := range []struct {
		now   eventlog.Time
		limit int64
	}{{b.now, 2}, {b.now.Add(-3 * time.Hour), 3}, {b.now.Add(60 * 24 * time.Hour), 9}} {
		got, err := indexes(b.view(), at.now, at.limit)
		if err != nil {
			return err
		}
		want, err := naive(b.view(), at.now, at.limit)
		if err != nil {
			return err
		}
		if got != want {
			return fmt.Errorf("the indexes say\n%s\nthe rows say\n%s", got, want)
		}
	}
	return nil
}

// Each of these moves a card in or out of an index.
func TestIndexesFollowTheRow(t *testing.T) {
	b := newBoard(t)
	check := func(after string) {
		t.Helper()
		if err := b.sameIndexes(); err != nil {
			t.Errorf("after %s: %v", after, err)
		}
	}
	b.create("p")
	b.create("a", func(d *Draft) { d.Parents = []string{b.id("p")} })
	check("todo")
	b.must(Complete(b.id("p"), Answer{}, Writer{}))
	check("ready")
	b.must(Assign(b.id("a"), "other", Writer{}))
	check("another assignee")
	run := b.claim("a")
	check("claimed")
	b.must(Register(b.registration("a", run)))
	check("registered")
	b.must(Fail(b.id("a"), "x", b.limits, b.worker("a", run)))
	check("failed, its process there")
	b.must(BookEnd(Ending{Run: run}, b.limits))
	check("held")
	b.attempt("a", 1)
	check("gave up")
	b.limits.FailureLimit = 3
	b.must(PromoteParked(b.id("a"), b.limits))
	check("promoted")
	b.must(Block(b.id("a"), "x", "", DefaultLimits(), Writer{}))
	check("blocked")
	b.must(Unblock(b.id("a"), Writer{}))
	check("unblocked")
	b.create("b", func(d *Draft) { d.NotBefore = b.now.Add(time.Hour) })
	check("scheduled")
	b.wait(time.Hour)
	b.must(PromoteDue(b.id("b")))
	check("due")
	b.create("first", func(d *Draft) { d.Priority = MaxPriority })
	b.create("last", func(d *Draft) { d.Priority = -MaxPriority })
	b.create("between", func(d *Draft) { d.Priority = -1 })
	check("priorities")
	b.create("own limit", func(d *Draft) { d.MaxRetries = 1 })
	b.attempt("own limit", 1)
	check("gave up under its own limit")
}

func TestReadyIsInOrder(t *testing.T) {
	b := newBoard(t)
	for i, p := range []int64{0, 5, -5, 5, MaxPriority, -MaxPriority, 0} {
		b.create(fmt.Sprint(i), func(d *Draft) { d.Priority = p })
	}
	b.create("foreign", func(d *Draft) { d.Assignee, d.Priority = "code", 9 }) // the name is a beginning of coder
	var order []string
	if err := b.view().Ready("coder", func(t *Task) bool { order = append(order, t.Title); return true }); err != nil {
		t.Fatal(err)
	}
	equal(t, "the order", strings.Join(order, " "), "4 1 3 0 6 2 5")
	equal(t, "the assignees", strings.Join(b.view().ReadyAssignees(), " "), "code coder")
}
