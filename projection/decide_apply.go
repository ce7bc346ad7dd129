package projection

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"kanlog/eventlog"
)

// Planned is a card of a graph. Its parents are names of the graph, or ids or
// unique prefixes of cards on the board; a name wins.
type Planned struct {
	Name string
	Draft
}

// Applied is what became of a card of a graph.
type Applied struct {
	Name    string
	ID      string
	Status  string
	Created bool // false: its key made it before
	// Notes say what may not be as the writer of the graph thinks.
	Notes []string
}

// PlanError is a refusal that is about one card of a graph, by its place in it.
type PlanError struct {
	Index int
	Name  string
	Err   error
}

func (e *PlanError) Error() string {
	if e.Name == "" {
		return fmt.Sprintf("card %d: %v", e.Index+1, e.Err)
	}
	return fmt.Sprintf("card %q: %v", e.Name, e.Err)
}

func (e *PlanError) Unwrap() error { return e.Err }

// Apply puts a whole graph of cards on the board in one commit, or none of it. A
// card whose key was used before is not created again, and is held to what a
// repeated Create is held to; what it waits for stays as it is.
func Apply(cards []Planned, w Writer) Decider {
	return func(v View, now eventlog.Time) (Decision, error) {
		p, err := newPlan(cards)
		if err != nil {
			return Decision{}, err
		}
		order, err := p.order()
		if err != nil {
			return Decision{}, err
		}
		if stop, err := fenceAside(v, "apply", w); err != nil || stop.Refused != nil {
			return stop, err
		}
		m := &making{v: v, now: now, made: map[string]*Task{}}
		d := Decision{Applied: make([]Applied, len(cards))}
		for _, i := range order {
			e, err := p.make(m, i, d.Applied)
			if err != nil {
				return Decision{}, p.about(i, err)
			}
			d.Events = append(d.Events, e...)
		}
		if len(d.Events) == 0 {
			d.Note = "every card was there before"
		}
		return d, nil
	}
}

// plan is a graph whose names are known.
type plan struct {
	cards []Planned
	named map[string]int
}

func (p *plan) about(i int, err error) error {
	return &PlanError{Index: i, Name: p.cards[i].Name, Err: err}
}

// newPlan refuses what is wrong whatever the board holds, but for cycles.
func newPlan(cards []Planned) (*plan, error) {
	p := &plan{cards: cards, named: map[string]int{}}
	switch {
	case len(cards) == 0:
		return nil, invalid("there are no cards")
	case len(cards) > MaxApply:
		return nil, invalid("%d cards; at most %d are applied at once", len(cards), MaxApply)
	}
	keys := map[string]int{}
	size := 0
	for i := range cards {
		c := &cards[i]
		if err := p.checkCard(c, keys); err != nil {
			return nil, p.about(i, err)
		}
		p.named[c.Name] = i
		if c.Key != "" {
			keys[c.Key] = i
		}
		size += len(c.Body)
	}
	if size > MaxApplyBytes {
		return nil, invalid("the bodies have %d bytes together; at most %d are applied at once", size, MaxApplyBytes)
	}
	return p, nil
}

func (p *plan) checkCard(c *Planned, keys map[string]int) error {
	if c.Name == "" {
		return invalid("it has no name: each card needs one of its own, by which parents call it")
	}
	if err := checkName("the name", c.Name); err != nil {
		return err
	}
	if at, twice := p.named[c.Name]; twice {
		return invalid("card %d has this name too; each card needs one of its own", at+1)
	}
	if at, twice := keys[c.Key]; twice && c.Key != "" {
		return invalid("card %q has the key %q too; a key makes one card", p.cards[at].Name, c.Key)
	}
	return c.check()
}

// order puts parents before children and otherwise keeps the order of the graph,
// which is the age of the cards and so decides between equal priorities.
func (p *plan) order() ([]int, error) {
	order := make([]int, 0, len(p.cards))
	done := make([]bool, len(p.cards))
	var way []int
	var visit func(i int) error
	visit = func(i int) error {
		if done[i] {
			return nil
		}
		if at := slices.Index(way, i); at >= 0 {
			return p.about(i, p.cycle(append(way[at:], i)))
		}
		way = append(way, i)
		for _, name := range p.cards[i].Parents {
			if parent, ok := p.named[name]; ok {
				if err := visit(parent); err != nil {
					return err
				}
			}
		}
		way = way[:len(way)-1]
		done[i] = true
		order = append(order, i)
		return nil
	}
	for i := range p.cards {
		if err := visit(i); err != nil {
			return nil, err
		}
	}
	return order, nil
}

func (p *plan) cycle(way []int) error {
	if len(way) == 2 {
		return invalid("it is its own parent; no card can wait for itself")
	}
	names := make([]string, len(way))
	for i, at := range way {
		names[i] = p.cards[at].Name
	}
	return invalid("its parents lead back to it: %s; one of these has to go", strings.Join(names, " waits for "))
}

// make makes one card whose parents in the graph are made.
func (p *plan) make(m *making, i int, done []Applied) ([]eventlog.Event, error) {
	c, a := &p.cards[i], &done[i]
	a.Name = c.Name
	parents := make([]string, len(c.Parents))
	for n, name := range c.Parents {
		onBoard, err := m.v.Resolve(name)
		if at, ok := p.named[name]; ok {
			if err == nil {
				a.Notes = append(a.Notes, fmt.Sprintf("its parent %q is the card of that name here, not %s on the board", name, onBoard))
			}
			onBoard = done[at].ID
		} else if errors.Is(err, ErrNotFound) {
			return nil, &refusal{ErrNotFound, fmt.Sprintf("its parent %q is no card's name here, and on the board: %v", name, err)}
		} else if err != nil {
			return nil, err
		}
		if at := slices.Index(parents[:n], onBoard); at >= 0 {
			return nil, twice(c.Parents[at], name)
		}
		parents[n] = onBoard
	}
	d, err := m.card(c.Draft, parents)
	if err != nil {
		return nil, err
	}
	a.ID = d.Task
	if len(d.Events) == 0 {
		was, err := m.v.MustTask(a.ID)
		if err != nil {
			return nil, err
		}
		a.Status = was.Status
		if !sameSet(m.v.Parents(a.ID), parents) {
			a.Notes = append(a.Notes, "it was there before and waits for other cards than here; that was not changed (kanlog link, kanlog unlink)")
		}
		return nil, nil
	}
	made := d.Events[0].Data.(*eventlog.Created)
	a.Created, a.Status = true, made.Status
	m.made[a.ID] = &Task{ID: a.ID, Status: made.Status, Tenant: made.Tenant}
	return d.Events, nil
}

// twice names a parent that is given twice as the graph calls it: the id of a card
// that is not made yet is known to nobody.
func twice(one, other string) error {
	if one == other {
		return invalid("its parent %q is named twice", one)
	}
	return invalid("its parents %q and %q are one card", one, other)
}

func sameSet(a, b []string) bool {
	a, b = slices.Clone(a), slices.Clone(b)
	slices.Sort(a)
	slices.Sort(b)
	return slices.Equal(a, b)
}
