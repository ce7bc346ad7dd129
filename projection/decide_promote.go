package projection

import "kanlog/eventlog"

// What lets a card go on: its time, a raised limit, or somebody's word.

// PromoteDue lets a scheduled card go on once its time has come.
func PromoteDue(id string) Decider {
	return func(v View, now eventlog.Time) (Decision, error) {
		t, err := v.MustTask(id)
		if err != nil || t.Status != Scheduled || now < t.NotBefore {
			return Decision{}, err
		}
		to, err := statusWithout(v, t, now, "")
		if err != nil || to == Scheduled {
			return Decision{}, err
		}
		return decided(id, event(id, 0, &eventlog.Promoted{To: to, Reason: "due"})), nil
	}
}

// PromoteParked frees a card that a plain gave_up holds under a limit that has
// been raised since.
func PromoteParked(id string, l Limits) Decider {
	return func(v View, now eventlog.Time) (Decision, error) {
		t, err := v.MustTask(id)
		if err != nil || t.Status != Blocked || t.ParkedLimit == 0 {
			return Decision{}, err
		}
		c, err := v.CountsOf(t)
		if err != nil {
			return Decision{}, err
		}
		if limit, _ := l.failureLimit(t); c.Failures >= limit {
			return Decision{}, nil
		}
		to, err := statusWithout(v, t, now, "")
		if err != nil {
			return Decision{}, err
		}
		return decided(id, event(id, 0, &eventlog.Promoted{To: to, Reason: "limit_raised"})), nil
	}
}

const promotedByHand = "by_hand"

// Promote lets a card start at once, with fresh budgets and without its due time.
// What it was built on has to be done all the same.
func Promote(id string, w Writer) Decider {
	return func(v View, now eventlog.Time) (Decision, error) {
		t, _, stop, err := fence(v, "promote", id, w)
		if err != nil || stop.Refused != nil {
			return stop, err
		}
		if w.InWorker() {
			return Decision{}, refuse(ErrState, id, "a worker does not promote its own card")
		}
		switch t.Status {
		case Todo, Blocked, Triage, Scheduled:
		case Ready:
			return Decision{}, refuse(ErrState, id, "ready already%s", colon(holdOf(t, now)))
		default:
			return Decision{}, refuse(ErrState, id, "%s; only a card in todo, scheduled, blocked or triage can be promoted", t.Status)
		}
		open, err := v.openParents(id, "")
		if err != nil {
			return Decision{}, err
		}
		if len(open) > 0 {
			return Decision{}, refuse(ErrState, id, "waits for %s; complete, archive or unlink what it waits for first", nameParents(open))
		}
		to := Ready
		if t.ReviewedRun != 0 {
			to = Review
		}
		return letGoOn(v, t, event(id, 0, &eventlog.Promoted{To: to, Reason: promotedByHand}))
	}
}

func holdOf(t *Task, now eventlog.Time) string {
	if !t.heldAt(now) {
		return ""
	}
	return t.HoldReason + " until " + toSecond(t.HoldUntil)
}

// letGoOn is an operator's word that a card goes on. If the process of an older run
// is being ended since the card was cancelled or put away, the later word counts:
// when it is gone the card must not be held for the earlier one.
func letGoOn(v View, t *Task, e eventlog.Event) (Decision, error) {
	events := []eventlog.Event{e}
	if t.Worker != 0 {
		r, err := v.runOf(t.Worker)
		if err != nil {
			return Decision{}, err
		}
		if r.EndReason == EndCancel || r.EndReason == EndArchive {
			events = append(events, wish(t.ID, r, EndReclaim, string(e.Kind()), "", ""))
		}
	}
	return decided(t.ID, events...), nil
}
