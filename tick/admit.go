package tick

import (
	"fmt"
	"slices"
	"sort"

	"kanlog/eventlog"
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
	now     eventlog.Time
	total   int
	profile map[string]int
	active  []*projection.Run
	started map[string]int // by admit, this time
	alike   map[string]*projection.Alike
	pause   *projection.Pause
	// places are those that are taken, with who has them in words.
	places map[projection.Place]string
	host   Host
}

// readSlots is countSlots with what the breaker goes by.
func readSlots(v projection.View, active []*projection.Run, p Policy, now eventlog.Time) (*slots, error) {
	s := countSlots(active, p)
	s.now = now
	var err error
	if s.pause, err = v.Paused(); err != nil {
		return nil, err
	}
	if err := s.takePlaces(v, active); err != nil {
		return nil, err
	}
	if p.Breaker.Runs == 0 {
		return s, nil
	}
	for name := range p.Profiles {
		a, err := v.Alike(name)
		if err != nil {
			return nil, err
		}
		s.alike[name] = a
	}
	return s, nil
}

func countSlots(active []*projection.Run, p Policy) *slots {
	s := &slots{
		p: p, active: active, profile: map[string]int{}, started: map[string]int{}, alike: map[string]*projection.Alike{}, places: map[projection.Place]string{},
	}
	for _, r := range active {
		s.take(r.Assignee)
	}
	return s
}

// takePlaces notes what active runs are at work in. A claim by hand is a person's
// matter, see projection.View.PlaceTaken.
func (s *slots) takePlaces(v projection.View, active []*projection.Run) error {
	for _, r := range active {
		t, err := v.MustTask(r.Task)
		if err != nil {
			return err
		}
		if place := t.Place(); place.Name != "" && r.Origin != projection.OriginManual {
			s.places[place] = place.Taken(r)
		}
	}
	return nil
}

// taken says in words who has the place of a card, "" if it is free for it.
func (s *slots) taken(t *projection.Task) string {
	place := t.Place()
	for _, has := range []projection.Place{{Name: place.Name}, {Name: place.Name, Shared: true}} {
		if why := s.places[has]; why != "" && has.Bars(place) {
			return why
		}
	}
	return ""
}

func (s *slots) take(assignee string) {
	s.total++
	s.profile[assignee]++
}

// full says in words why no card of this assignee can be started now, "" if
// one can.
func (s *slots) full(assignee string) string {
	return s.p.caps(assignee).Full(assignee, projection.Usage{
		Active: s.active, Total: s.total, Mine: s.profile[assignee], Picked: s.started[assignee], Alike: s.alike[assignee], Pause: s.pause,
		Others: s.host.Others, Short: s.host.Short, Broken: s.host.Broken[assignee],
	}, s.now)
}

// hostFull tells whether the other boards or the machine leave no room.
func (s *slots) hostFull() bool {
	most := s.p.caps("").Host
	return s.host.Short != "" || s.host.Others > 0 && most > 0 && s.total+s.host.Others >= most
}

// paused are the profiles that the breaker holds back, in order.
func (s *slots) paused() []Paused {
	list := []Paused{}
	for name := range s.p.Profiles {
		if a := s.alike[name]; a != nil && a.Runs >= s.p.Breaker.Runs {
			if _, why := s.p.Breaker.Room(name, a, s.active, s.now); why != "" {
				list = append(list, Paused{name, why})
			}
		}
	}
	sort.Slice(list, func(i, j int) bool { return list[i].Assignee < list[j].Assignee })
	return list
}

// Full returns the reasons why nothing more can be started for an assignee
// beside what is active, "" if something can: what admission goes by, for who
// asks why a card waits.
func Full(v projection.View, p Policy, h Host, now eventlog.Time) (func(assignee string) string, error) {
	active, err := v.Active()
	if err != nil {
		return nil, err
	}
	s, err := readSlots(v, active, p, now)
	if err != nil {
		return nil, err
	}
	s.host = h
	return s.full, nil
}

// free is the most cards that could start now.
func (s *slots) free() int { return max(0, s.p.MaxInProgress-s.total) }

// admit picks from the startable cards those that may start now and says why the
// others wait. most bounds the picks, -1 for no bound. It is pure.
//
// One review that could start comes first, if there is any: a board full of new work
// would never finish any otherwise. Then come attempts, then the other reviews, each
// by priority and then age.
func admit(cards []*projection.Task, s *slots, most int) (picks []*projection.Task, waiting []Waiting) {
	var attempts, reviews []*projection.Task
	for _, t := range cards {
		if t.Lane() == projection.LaneReview {
			reviews = append(reviews, t)
		} else {
			attempts = append(attempts, t)
		}
	}
	s.order(attempts)
	s.order(reviews)
	startable := func(t *projection.Task) bool { return s.full(t.Starter()) == "" && s.taken(t) == "" }
	if i := slices.IndexFunc(reviews, startable); i >= 0 {
		first := reviews[i]
		attempts = slices.Concat([]*projection.Task{first}, attempts)
		reviews = slices.Delete(reviews, i, i+1)
	}
	for _, t := range append(attempts, reviews...) {
		why := s.full(t.Starter())
		if why == "" {
			why = s.taken(t)
		}
		if why == "" && most >= 0 && len(picks) >= most {
			why = fmt.Sprintf("this tick was told to start at most %d", most)
		}
		if why != "" {
			waiting = append(waiting, Waiting{t.ID, why})
			continue
		}
		if place := t.Place(); place.Name != "" {
			s.places[place] = fmt.Sprintf("%s is in use by %s, which starts now", place.Name, t.ID)
		}
		s.take(t.Starter())
		s.started[t.Starter()]++
		picks = append(picks, t)
	}
	return picks, waiting
}

// order sorts cards by priority and then age. Who has waited gains a priority for
// each ageing, so that nothing waits for ever behind what is more urgent.
//
// While the runs of a profile end alike, those of its cards that have not failed
// take the places of those that have: the attempts that find out whether the
// trouble is over should not be the last ones of the same few cards.
func (s *slots) order(cards []*projection.Task) {
	sort.SliceStable(cards, func(i, j int) bool {
		if a, b := s.urgency(cards[i]), s.urgency(cards[j]); a != b {
			return a > b
		}
		return cards[i].CreatedSeq < cards[j].CreatedSeq
	})
	for starter, a := range s.alike {
		if a != nil && a.Shared() {
			freshFirst(cards, starter)
		}
	}
}

// urgency is a card's priority and what it has gained by waiting since it was made
// or was due.
func (s *slots) urgency(t *projection.Task) int64 {
	if s.p.Ageing <= 0 {
		return t.Priority
	}
	return t.Priority + int64(s.now.Since(max(t.CreatedAt, t.NotBefore))/s.p.Ageing)
}

// freshFirst puts the cards of one profile that have not failed first among the
// places that its cards have.
func freshFirst(cards []*projection.Task, starter string) {
	var places []int
	var fresh, failed []*projection.Task
	for i, t := range cards {
		if t.Starter() != starter {
			continue
		}
		places = append(places, i)
		if t.LastError == "" {
			fresh = append(fresh, t)
		} else {
			failed = append(failed, t)
		}
	}
	for i, t := range append(fresh, failed...) {
		cards[places[i]] = t
	}
}
