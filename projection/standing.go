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
