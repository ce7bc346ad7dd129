package tick

import (
	"kanlog/eventlog"
	"kanlog/projection"
)

// Pull is the card that a pull worker for an assignee ("" for the cards of nobody)
// takes next, nil if none could start now. It is the one that a dispatcher without
// caps would start first: a review first, then by priority and age.
func Pull(v projection.View, assignee string, now eventlog.Time) (*projection.Task, error) {
	active, err := v.Active()
	if err != nil {
		return nil, err
	}
	s := countSlots(nil, Policy{})
	if err := s.takePlaces(v, active); err != nil {
		return nil, err
	}
	// The first whose place is free. As many are looked at as a tick looks at.
	var cards []*projection.Task
	looked := 0
	first := func(c *projection.Task) bool {
		free := s.taken(c) == ""
		if looked++; free {
			cards = append(cards, c)
		}
		return !free && looked < readWaiting
	}
	if err := v.Ready(assignee, first); err != nil {
		return nil, err
	}
	if assignee != "" { // a review that nobody is named for is a person's
		if err := v.InReview(assignee, first); err != nil {
			return nil, err
		}
	}
	// Those whose hold has run out stand apart, in the order in which it did.
	over, _, err := v.Held(now, 0, func(name string) bool { return name == assignee })
	if err != nil {
		return nil, err
	}
	for _, c := range over {
		if c.Starter() == assignee && c.Startable(now) {
			cards = append(cards, c)
		}
	}
	picks, _ := admit(cards, s, 1)
	if len(picks) == 0 {
		return nil, nil
	}
	return picks[0], nil
}
