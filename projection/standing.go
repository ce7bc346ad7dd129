package projection

import "kanlog/eventlog"

// Where a card stands, in one word, for who counts a board. A backlog is what is
// startable: nothing else here is a reason to start more workers.
const (
	Startable = "startable" // the next dispatch starts it if there is room
	AtWork    = "running"
	OnHold    = "held"    // the clock, or the end of a process, lets it go on
	Waits     = "waiting" // for another card, a time, or somebody who takes it
	IsStuck   = "stuck"   // only a person moves it, or what it waits for; see Roots
	Terminal  = "terminal"
)

// Standings are all of them in the order in which they are shown.
var Standings = []string{Startable, AtWork, OnHold, Waits, IsStuck, Terminal}

// ReadySince is since when a startable card could have been started, as far as rows
// tell: the latest of when it was made, when it was due, when a hold ended, when its
// last run ended and when the last of what it waited for was done. That somebody let
// it go on by hand is not in them.
func (v View) ReadySince(t *Task, now eventlog.Time) (eventlog.Time, error) {
	since := t.CreatedAt
	later := func(at eventlog.Time) {
		if at <= now {
			since = max(since, at)
		}
	}
	later(t.NotBefore)
	later(t.HoldUntil)
	if t.LastRun != 0 {
		r, err := v.runOf(t.LastRun)
		if err != nil {
			return 0, err
		}
		later(r.EndedAt)
	}
	for _, id := range v.Parents(t.ID) {
		p, err := v.MustTask(id)
		if err != nil {
			return 0, err
		}
		later(p.CompletedAt)
	}
	return since, nil
}

// Standing says where a card stands. profiles are the assignees that a dispatcher
// can start here.
func (s Stuck) Standing(v View, t *Task, now eventlog.Time, profiles map[string]bool) (string, error) {
	switch t.Status {
	case Done, Archived:
		return Terminal, nil
	case Running:
		return AtWork, nil
	}
	roots, err := s.Roots(v, t)
	switch {
	case err != nil:
		return "", err
	case len(roots) > 0:
		return IsStuck, nil
	case !t.inLane() || !profiles[t.Starter()]:
		return Waits, nil
	case !t.Startable(now):
		return OnHold, nil
	}
	return Startable, nil
}
