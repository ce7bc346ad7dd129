package projection

import (
	"fmt"
	"slices"
)

// WaitWarning says why it may be in vain to wait for a card, "" if nothing is
// seen: it, or a card that it waits for itself, goes on only when somebody lets
// it. It reads the open ancestors of the card and no others.
func (v View) WaitWarning(parent string) (string, error) {
	t, err := v.MustTask(parent)
	if err != nil {
		return "", err
	}
	if t.Status == Archived {
		return parent + " is archived, which counts as done: nothing is waited for", nil
	}
	roots, err := Stuck{}.Roots(v, t)
	if err != nil || len(roots) == 0 {
		return "", err
	}
	stuck, err := v.MustTask(roots[0])
	switch {
	case err != nil:
		return "", err
	case stuck.ID == parent:
		return fmt.Sprintf("%s is %s", parent, stuck.heldBy()), nil
	}
	return fmt.Sprintf("%s waits for %s, which is %s", parent, stuck.ID, stuck.heldBy()), nil
}

// heldBy says what a person has to do for a card that is blocked or in triage.
func (t *Task) heldBy() string {
	switch t.Status {
	case Triage:
		return "in triage; kanlog promote " + t.ID + " lets it go on"
	case Review:
		return "in review by a person; kanlog approve " + t.ID + " ends that"
	}
	return fmt.Sprintf("blocked (%s%s); kanlog unblock %s lets it go on", or(t.BlockKind, NeedsInput), colon(t.BlockReason), t.ID)
}

// Stuck remembers, while a board is looked through, which cards cannot move by
// themselves: somebody has to do something about those at the root.
type Stuck map[string][]string

// needsPerson tells whether nothing but a person moves the card.
func (t *Task) needsPerson() bool {
	return t.Status == Blocked || t.Status == Triage || t.Status == Review && t.Reviewer == ""
}

// maxRoots bounds how many roots are named for one card.
const maxRoots = 10

// Roots returns the cards that somebody has to look after before t can move: t
// itself if it is blocked, in triage or in review by a person; for one that waits, those among the cards
// it waits for, through any number of others. None: it moves by itself.
func (s Stuck) Roots(v View, t *Task) ([]string, error) {
	// Depth first without recursion: a chain may be as long as the board.
	type step struct {
		t    *Task
		open []*Task
	}
	enter := func(t *Task) (*step, error) {
		switch {
		case t.needsPerson():
			s[t.ID] = []string{t.ID}
			return nil, nil
		case t.Status == Todo:
			open, err := v.openParents(t.ID, "")
			s[t.ID] = nil
			return &step{t, open}, err
		}
		s[t.ID] = nil
		return nil, nil
	}
	if roots, known := s[t.ID]; known {
		return roots, nil
	}
	var stack []*step
	for next := t; ; {
		if next != nil {
			st, err := enter(next)
			if err != nil {
				return nil, err
			}
			if st != nil {
				stack = append(stack, st)
			}
			next = nil
		}
		if len(stack) == 0 {
			return s[t.ID], nil
		}
		top := stack[len(stack)-1]
		if len(top.open) == 0 {
			stack = stack[:len(stack)-1]
			continue
		}
		p := top.open[0]
		roots, known := s[p.ID]
		if !known {
			next = p
			continue // and come back to p, which is known then
		}
		top.open = top.open[1:]
		for _, id := range roots {
			if len(s[top.t.ID]) < maxRoots && !slices.Contains(s[top.t.ID], id) {
				s[top.t.ID] = append(s[top.t.ID], id)
			}
		}
	}
}
