package projection

import (
	"slices"
	"strings"

	"kanlog/eventlog"
)

// Block parks a card until somebody unblocks it. With an open run it is that
// run's answer. A dependency that is still open needs nobody: the card waits in
// todo and goes on by itself. A worker that blocks for the same kind of reason
// again and again sends its card to triage, whoever unblocks it in between: a
// timer or a helper that does must not keep such a loop alive.
func Block(id, reason, kind string, l Limits, w Writer) Decider {
	return func(v View, now eventlog.Time) (Decision, error) {
		if strings.TrimSpace(reason) == "" {
			return Decision{}, invalid("block needs a reason")
		}
		if err := checkText("the reason", reason, MaxReason); err != nil {
			return Decision{}, err
		}
		d := &eventlog.Blocked{Reason: reason, BlockKind: or(kind, NeedsInput)}
		if !slices.Contains(BlockKinds, d.BlockKind) {
			return Decision{}, invalid("block kind %q is none of %s", kind, strings.Join(BlockKinds, ", "))
		}
		t, open, stop, err := answer(v, "block", id, w)
		if err != nil || stop.Refused != nil {
			return stop, err
		}
		if d.BlockKind == Dependency {
			waits, err := v.openParents(id, "")
			if err != nil {
				return Decision{}, err
			}
			if len(waits) > 0 {
				d.To = Todo
			} else {
				d.BlockKind, d.RequestedKind = NeedsInput, Dependency
			}
		}
		if open != nil {
			events := []eventlog.Event{l.on(event(id, open.ID, d))}
			if n := timesBlocked(t, d.BlockKind); d.To == "" && l.BlockLimit > 0 && n >= l.BlockLimit {
				events = append(events, event(id, open.ID, &eventlog.BlockLoop{BlockKind: d.BlockKind, Times: n, Limit: l.BlockLimit}))
			}
			return decided(id, events...), nil
		}
		switch {
		case t.Status == Blocked && t.ParkedLimit > 0 && kind != "":
			// It says what the card that gave up waits for: held from here on.
		case t.Status == Blocked:
			return Decision{}, refuse(ErrState, id, "blocked before%s", colon(t.BlockReason))
		case t.Over():
			return Decision{}, refuse(ErrState, id, "%s; only an open card can be blocked", t.Status)
		case t.Status == Todo && d.To == Todo:
			return already(id, "waits already; it goes on by itself when what it waits for is done"), nil
		case t.Status == Triage && d.To == Todo:
			return Decision{}, refuse(ErrState, id, "in triage; it waits for what it depends on once somebody has let it go on (kanlog promote %s)", id)
		}
		return decided(id, event(id, 0, d)), nil
	}
}

// timesBlocked is how often in a row workers will have blocked a card for a kind
// of reason when it is blocked for that once more.
func timesBlocked(t *Task, kind string) int64 {
	if kind != t.WorkerBlockKind {
		return 1
	}
	return t.WorkerBlocks + 1
}

// Unblock lets a blocked card go on, with fresh budgets.
func Unblock(id string, w Writer) Decider {
	return func(v View, now eventlog.Time) (Decision, error) {
		t, _, stop, err := fence(v, "unblock", id, w)
		if err != nil || stop.Refused != nil {
			return stop, err
		}
		switch t.Status {
		case Blocked:
		case Triage:
			return Decision{}, refuse(ErrState, id, "in triage, not blocked; kanlog promote %s lets it go on", id)
		default:
			return Decision{}, refuse(ErrState, id, "not blocked but %s", t.Status)
		}
		to, err := statusWithout(v, t, now, "")
		if err != nil {
			return Decision{}, err
		}
		return letGoOn(v, t, event(id, 0, &eventlog.Unblocked{To: to}))
	}
}
