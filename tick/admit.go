package tick

import (
	"fmt"
	"sort"

	"kanlog/projection"
)

// maxWaiting bounds how many waiting cards a report names, so that a tick does
// not cost more on a bigger board.
const maxWaiting = 100

// readWaiting is how many waiting cards are read: one more than are named, so
// that the report can say that there are more.
const readWaiting = maxWaiting + 1

// slots counts what is active against the caps. A closed run whose process
// lives on takes a slot like an open one.
type slots struct {
	p       Policy
	total   int
	profile map[string]int
}

func countSlots(active []*projection.Run, p Policy) *slots {
	s := &slots{p: p, profile: map[string]int{}}
	for _, r := range active {
		s.take(r.Assignee)
	}
	return s
}

func (s *slots) take(assignee string) {
	s.total++
	s.profile[assignee]++
}

// full says in words why no card of this assignee can be started now, "" if
// one can.
func (s *slots) full(assignee string) string {
	if s.total >= s.p.MaxInProgress {
		return fmt.Sprintf("the board's cap is reached: %d of %d running", s.total, s.p.MaxInProgress)
	}
	if most := s.p.Profiles[assignee].MaxInProgress; most > 0 && s.profile[assignee] >= most {
		return fmt.Sprintf("the cap of %s is reached: %d of %d running", assignee, s.profile[assignee], most)
	}
	return ""
}

// Full returns the reasons why nothing more can be started for an assignee
// beside what is active, "" if something can: what admission goes by, for who
// asks why a card waits.
func Full(active []*projection.Run, p Policy) func(assignee string) string {
	return countSlots(active, p).full
}

// free is the most cards that could start now.
func (s *slots) free() int { return max(0, s.p.MaxInProgress-s.total) }

// admit picks from the startable cards those that may start now, by priority
// and then age, and says why the others wait. most bounds the picks, -1 for no
// bound. It is pure.
func admit(cards []*projection.Task, s *slots, most int) (picks []*projection.Task, waiting []Waiting) {
	sort.SliceStable(cards, func(i, j int) bool {
		if cards[i].Priority != cards[j].Priority {
			return cards[i].Priority > cards[j].Priority
		}
		return cards[i].CreatedSeq < cards[j].CreatedSeq
	})
	for _, t := range cards {
		why := s.full(t.Assignee)
		if why == "" && most >= 0 && len(picks) >= most {
			why = fmt.Sprintf("this tick was told to start at most %d", most)
		}
		if why != "" {
			waiting = append(waiting, Waiting{t.ID, why})
			continue
		}
		s.take(t.Assignee)
		picks = append(picks, t)
	}
	return picks, waiting
}
