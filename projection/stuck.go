package projection

import "fmt"

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
