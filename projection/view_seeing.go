package projection

import (
	"bytes"
	"encoding/binary"
	"slices"
	"strings"

	"kanlog/eventlog"
)

// States of an active run, for people who look at what there is.
const (
	StateStarting = "starting" // claimed; its supervisor has not registered
	StateRunning  = "running"
	StateEnding   = "ending"   // its end was requested, and is not confirmed
	StateRetained = "retained" // answered; its process may still live
	StateManual   = "manual"   // claimed by hand: a lease and no process
	StateEnded    = "ended"    // not active any more
)

// State is where a run stands, in one word.
func (r *Run) State() string {
	switch {
	case !r.Open() && !r.HasWorker:
		return StateEnded
	case r.EndRequestedAt != 0:
		return StateEnding
	case !r.Open():
		return StateRetained
	case r.HasWorker:
		return StateRunning
	case r.Origin == OriginManual:
		return StateManual
	}
	return StateStarting
}

// OverdueSince is when a run's time was over, if it goes on and nobody has asked for its
// end: only a tick does that. Else it is 0.
func (r *Run) OverdueSince(now eventlog.Time) eventlog.Time {
	until := r.Until(now)
	if until.IsZero() || r.State() != StateRunning || now < eventlog.TimeOf(until) {
		return 0
	}
	return eventlog.TimeOf(until)
}

// CheckProfileName refuses a name that no card can have as its assignee or reviewer.
func CheckProfileName(name string) error { return checkName("the name", name) }

// Peek is View for those who would rather have no answer than change a file:
// tables of another format are an error, not a reason to rebuild.
func (s *Store) Peek(fn func(View) error) error {
	return s.file.View(func(tx *eventlog.Tx) error {
		if err := checkTables(tx); err != nil {
			return err
		}
		return fn(View{tx})
	})
}

// TasksUnder returns up to max cards whose ids begin with prefix.
func (v View) TasksUnder(prefix string, max int) ([]*Task, error) {
	var list []*Task
	var err error
	v.scan(tabTasks, []byte(prefix), func(_, b []byte) bool {
		t := new(Task)
		if err = decodeRow(b, t); err == nil {
			list = append(list, t)
		}
		return err == nil && len(list) < max
	})
	return list, err
}

// SomeUnder returns some cards whose ids begin with prefix, each once: those of the
// indexes of what runs, could start or waits for a time, and then any, at most max of
// each. Where a board is bigger than that it is a sample of it.
func (v View) SomeUnder(prefix string, max int) ([]*Task, error) {
	var list []*Task
	seen := map[string]bool{}
	add := func(t *Task) {
		if t != nil && !seen[t.ID] && strings.HasPrefix(t.ID, prefix) {
			seen[t.ID] = true
			list = append(list, t)
		}
	}
	for _, table := range []string{tabActive, tabReview, tabReady, tabHeld, tabScheduled, tabParked} {
		var err error
		left := max
		v.r.Scan(table, nil, func(_, id []byte) bool {
			var t *Task
			if left--; left >= 0 && bytes.HasPrefix(id, []byte(prefix)) && !seen[string(id)] {
				t, err = v.Task(string(id))
				add(t)
			}
			return left >= 0 && err == nil
		})
		if err != nil {
			return list, err
		}
	}
	more, err := v.TasksUnder(prefix, max)
	for _, t := range more {
		add(t)
	}
	return list, err
}

// LastCommit is the number of the newest commit that concerns a card, 0 if there
// is none. A card may have any number of them: it is searched for, not walked to.
func (v View) LastCommit(task string) uint64 {
	prefix := under(task)
	// from returns the first number of the card from n on, 0 if there is none.
	from := func(n uint64) (found uint64) {
		v.r.Scan(tabTaskLog, cat(prefix, num(n)), func(k, _ []byte) bool {
			if rest, ok := bytes.CutPrefix(k, prefix); ok {
				found = binary.BigEndian.Uint64(rest)
			}
			return false
		})
		return found
	}
	last := from(0)
	for step := uint64(1); step > 0; {
		if next := from(last + step); next != 0 {
			last = next
			step *= 2
		} else {
			step /= 2
		}
	}
	return last
}

// Bounds on one look back over the runs: how much of the log's numbers a step
// covers, and how many runs or steps one transaction reads at most.
const (
	runWindow      = 4096
	runsPerView    = 500
	windowsPerView = 64
)

// RecentRuns calls fn with the runs of a board, newest first, at most max of
// them; all tells whether there were no more. Others may write in between.
func (s *Store) RecentRuns(max int, fn func(*Run)) (all bool, err error) {
	before := uint64(0)
	for left := max; ; {
		var batch []*Run
		err := s.view(func(tx *eventlog.Tx) error {
			if before == 0 {
				h, err := tx.Head()
				if err != nil {
					return err
				}
				before = h.Seq + 1
			}
			for n := 0; n < windowsPerView && len(batch) < runsPerView && before > 1; n++ {
				runs, err := View{tx}.runsIn(before)
				if err != nil {
					return err
				}
				batch = append(batch, runs...)
				before -= min(before-1, runWindow)
			}
			return nil
		})
		if err != nil {
			return false, err
		}
		for _, r := range batch {
			if left == 0 {
				return false, nil
			}
			left--
			fn(r)
		}
		if before <= 1 {
			return true, nil
		}
	}
}

// runsIn returns the runs in the window of numbers that ends below before,
// newest first.
func (v View) runsIn(before uint64) (runs []*Run, err error) {
	from := before - min(before, runWindow)
	v.r.Scan(tabRuns, num(from), func(k, b []byte) bool {
		if binary.BigEndian.Uint64(k) >= before {
			return false
		}
		r := new(Run)
		if err = decodeRow(b, r); err == nil {
			runs = append(runs, r)
		}
		return err == nil
	})
	slices.Reverse(runs)
	return runs, err
}
