package projection

import (
	"strings"

	"kanlog/eventlog"
)

// Reopen takes back that a card is done, or that it is in review, and with it all
// that was built on it: what is ready, scheduled, in review or done waits again, what runs is
// ended first. What is blocked, in triage or put away stays as it is.
func Reopen(id, reason string, w Writer) Decider {
	return func(v View, now eventlog.Time) (Decision, error) {
		if strings.TrimSpace(reason) == "" {
			return Decision{}, invalid("reopen needs --reason")
		}
		if err := checkText("the reason", reason, MaxReason); err != nil {
			return Decision{}, err
		}
		t, open, stop, err := fence(v, "reopen", id, w)
		if err != nil || stop.Refused != nil {
			return stop, err
		}
		switch {
		case open != nil:
			return Decision{}, refuse(ErrState, id, "running (run %d); use reclaim", open.ID)
		case t.Status == Archived:
			return Decision{}, refuse(ErrState, id, "archived; create it anew (a card that was put away is not taken out again)")
		case t.Status != Done && t.Status != Review:
			return Decision{}, refuse(ErrState, id, "not done but %s", t.Status)
		}
		fresh := *t
		fresh.ReviewedRun = 0
		to, err := statusWithout(v, &fresh, now, "")
		if err != nil {
			return Decision{}, err
		}
		d, err := letGoOn(v, t, event(id, 0, &eventlog.Reopened{Reason: reason, To: to}))
		if err == nil && t.Status == Done {
			d.Events, err = retract(v, id, d.Events)
		}
		return d, err
	}
}

// retract adds what becomes of everything that was built on a card which is not
// done any more: its children, and the children of those of them that were done.
// What waits for a card that was not done was not built on it. A card that was put
// away counts as done, so that the search ends there too.
func retract(v View, ancestor string, events []eventlog.Event) ([]eventlog.Event, error) {
	seen := map[string]bool{ancestor: true}
	queue := v.Children(ancestor)
	for len(queue) > 0 {
		id := queue[0]
		queue = queue[1:]
		if seen[id] {
			continue
		}
		seen[id] = true
		t, err := v.MustTask(id)
		if err != nil {
			return nil, err
		}
		if t.Status == Done {
			queue = append(queue, v.Children(id)...)
		}
		void := event(id, 0, &eventlog.Retracted{Ancestor: ancestor, From: t.Status, To: t.Status})
		switch t.Status {
		case Ready, Review, Done, Scheduled:
			events = append(events, event(id, 0, &eventlog.Retracted{Ancestor: ancestor, From: t.Status, To: Todo}))
		case Todo, Blocked, Triage:
			if t.ReviewedRun != 0 {
				// It stays where it is, but what was handed in is not to be
				// reviewed when it goes on.
				events = append(events, void)
			}
		case Running:
			r, err := v.runOf(t.CurrentRun)
			if err != nil {
				return nil, err
			}
			if !r.HasWorker {
				events = append(events, event(id, r.ID, &eventlog.Reclaimed{Reason: EndReopened + colon(ancestor), To: Todo, Evidence: noWorker}),
					event(id, 0, &eventlog.Retracted{Ancestor: ancestor, From: t.Status, To: Todo}))
				continue
			}
			switch r.EndReason {
			case EndCancel, EndArchive, EndReopened:
			default:
				events = append(events, wish(id, r, EndReopened, ancestor, Todo, ""))
			}
			if t.ReviewedRun != 0 {
				events = append(events, void)
			}
		}
	}
	return events, nil
}
