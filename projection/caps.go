package projection

import (
	"cmp"
	"fmt"

	"kanlog/eventlog"
)

// Caps bound how many runs of an assignee may be active at once; 0 means no bound.
// A closed run whose process lives on counts like an open one.
type Caps struct {
	Host    int // over all boards of the home
	Board   int // over all assignees
	Profile int // of the assignee in question
	Breaker Breaker
}

// Usage is what takes part of the caps, seen from one assignee.
type Usage struct {
	Active []*Run
	// Total and Mine count the active runs and what is picked beside them, of
	// everybody and of the assignee. Picked is how many of its cards those are.
	Total, Mine, Picked int
	Alike               *Alike // how the assignee's last runs ended, nil if that was not read
	Pause               *Pause // nil if the board is not paused
	// Others is how many runs are active on other boards of the home, and Short why
	// this machine bears no more just now, "" if it does.
	Others int
	Short  string
	// Broken is why the assignee's command cannot be started here, "" if it can.
	Broken string
}

// Full says in words why no card of an assignee can be started beside what is
// active, "" if one can. Admission goes by it, the claim asks it again in its
// transaction, and who asks why a card waits gets it as the reason.
func (c Caps) Full(assignee string, u Usage, now eventlog.Time) string {
	if u.Pause != nil {
		return u.Pause.String()
	}
	if u.Broken != "" {
		return "the worker of " + assignee + " cannot be started: " + u.Broken
	}
	if c.Board > 0 && u.Total >= c.Board {
		return fmt.Sprintf("the board's cap is reached: %d of %d running", u.Total, c.Board) + u.held("")
	}
	if c.Host > 0 && u.Total+u.Others >= c.Host {
		return fmt.Sprintf("the cap of all boards is reached: %d of %d running", u.Total+u.Others, c.Host) + u.held("")
	}
	if c.Profile > 0 && u.Mine >= c.Profile {
		return fmt.Sprintf("the cap of %s is reached: %d of %d running", assignee, u.Mine, c.Profile) + u.held(assignee)
	}
	if room, why := c.Breaker.Room(assignee, u.Alike, u.Active, now); room >= 0 && u.Picked >= room {
		return why
	}
	return u.Short
}

// held says how many slots, of an assignee if one is given, come free by a
// person's word alone.
func (u Usage) held(assignee string) string {
	n, task := 0, ""
	for _, r := range u.Active {
		if r.DeferredReason != "" && (assignee == "" || r.Assignee == assignee) {
			n, task = n+1, cmp.Or(task, r.Task)
		}
	}
	if n == 0 {
		return ""
	}
	return fmt.Sprintf(", %d of them asked to end and neither proven nor ruled out (kanlog why %s)", n, task)
}

// usage is what takes part of the caps on the board at this moment.
func (v View) usage(assignee string) (u Usage, err error) {
	if u.Active, err = v.Active(); err != nil {
		return u, err
	}
	u.Total = len(u.Active)
	for _, r := range u.Active {
		if r.Assignee == assignee {
			u.Mine++
		}
	}
	if u.Alike, err = v.Alike(assignee); err != nil {
		return u, err
	}
	u.Pause, err = v.Paused()
	return u, err
}
