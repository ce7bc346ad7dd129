package projection

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"kanlog/eventlog"
)

// How a run that has a worker is ended from outside: an end is requested here,
// every tick acts on it, and BookEnd confirms it. Nothing here releases a claim
// that has a worker, but for Reclaim with force.

// EndRequest is the decision to end a run's processes and what it rests on.
type EndRequest struct {
	Run    uint64
	Reason string // one of the End words
	Detail string
	// Limit and Measured are the bound that was exceeded and by what, 0 for a
	// reason that has none.
	Limit, Measured time.Duration
	Evidence        string // what was known of the worker
}

// RequestEnd records the decision to end a run's processes, before anybody
// signals them. It is written once; a run that is gone by now needs none.
func RequestEnd(q EndRequest) Decider {
	return func(v View, now eventlog.Time) (Decision, error) {
		r, err := v.Run(q.Run)
		if err != nil || r == nil || !r.HasWorker || r.EndRequestedAt != 0 {
			return Decision{}, err
		}
		to := ""
		if r.Open() && q.Reason != EndOrphaned {
			t, err := v.MustTask(r.Task)
			if err != nil {
				return Decision{}, err
			}
			if to, err = statusWithout(v, t, now, ""); err != nil {
				return Decision{}, err
			}
		}
		return decided(r.Task, event(r.Task, r.ID, &eventlog.TerminationRequested{
			Reason: q.Reason, Detail: cut(q.Detail, MaxReason), To: to, Evidence: cut(q.Evidence, MaxError),
			LimitSeconds: int64(q.Limit / time.Second), MeasuredSeconds: int64(q.Measured / time.Second),
		})), nil
	}
}

// DeferEnd records that a requested end waits, once for each reason, and moves
// the lease by wait: where a lease alone may release the claim, the wish to end
// it must not be what cuts it short.
func DeferEnd(run uint64, reason, evidence string, wait time.Duration) Decider {
	return func(v View, now eventlog.Time) (Decision, error) {
		reason := cut(reason, MaxError)
		r, err := v.Run(run)
		if err != nil || r == nil || !r.HasWorker || r.EndRequestedAt == 0 ||
			slices.Contains(r.DeferredReasons, reason) || len(r.DeferredReasons) >= MaxDeferred {
			return Decision{}, err
		}
		d := &eventlog.ReclaimDeferred{Reason: reason, Evidence: evidence}
		if until := now.Add(wait); r.Open() && until > r.ClaimExpires {
			d.ClaimExpires = until
		}
		return decided(r.Task, event(r.Task, run, d)), nil
	}
}

// operated is what the operator's verbs that end a run begin with: the card,
// and the run that owns it, nil if none does. run is the one the operator saw
// and the evidence belongs to, 0 for none: a card that has moved on to another
// run since is left alone.
func operated(v View, verb, id string, run uint64, reason string, w Writer) (*Task, *Run, Decision, error) {
	if err := checkText("the reason", reason, MaxReason); err != nil {
		return nil, nil, Decision{}, err
	}
	t, r, stop, err := fence(v, verb, id, w)
	if err != nil || stop.Refused != nil {
		return nil, nil, stop, err
	}
	if w.InWorker() {
		return nil, nil, Decision{}, refuse(ErrState, id, "a worker does not %s its own card; use fail, defer or block", verb)
	}
	if r == nil && t.Worker != 0 {
		if r, err = v.runOf(t.Worker); err != nil {
			return nil, nil, Decision{}, err
		}
	}
	if r != nil && r.ID != run {
		return nil, nil, Decision{}, refuse(ErrState, id, "run %d has begun meanwhile; look again before you %s it", r.ID, verb)
	}
	return t, r, Decision{}, nil
}

// wish asks for the end of a run that has a worker, in an operator's words.
func wish(id string, r *Run, reason, detail, to, evidence string) eventlog.Event {
	return event(id, r.ID, &eventlog.TerminationRequested{
		Reason: reason, Detail: detail, To: to, Evidence: cut(evidence, MaxError),
	})
}

// Reclaim takes a card back from its run. Without a worker it closes the run
// at once: a supervisor that comes late is refused by the fence. With one it
// asks for its end. With force it releases the claim without proof.
func Reclaim(id string, run uint64, reason, evidence string, force bool, w Writer) Decider {
	return func(v View, now eventlog.Time) (Decision, error) {
		if strings.TrimSpace(reason) == "" {
			return Decision{}, invalid("reclaim needs --reason")
		}
		t, r, stop, err := operated(v, "reclaim", id, run, reason, w)
		if err != nil || stop.Refused != nil {
			return stop, err
		}
		if r == nil {
			return Decision{}, refuse(ErrState, id, "not running but %s; there is nothing to reclaim", t.Status)
		}
		to, err := statusWithout(v, t, now, "")
		if err != nil {
			return Decision{}, err
		}
		switch {
		case r.Open() && !r.HasWorker:
			return decided(id, event(id, r.ID, &eventlog.Reclaimed{Reason: reason, To: to, Evidence: noWorker})), nil
		case force && r.Open():
			// What was wished for the card before holds: cancel, then --force
			// since the worker cannot be ended, must not start it again.
			return closeAs(v, t, r, r.EndReason, r.EndDetail, now, eventlog.Reclaimed{
				Reason: reason, Forced: true, Warning: stillAlive, Evidence: cut(evidence, MaxError),
			})
		case force:
			events, err := afterlife(v, t, r, now)
			exited := &eventlog.Exited{Evidence: cut("forced by an operator ("+reason+"): "+stillAlive+"; "+evidence, MaxError)}
			return decided(id, append([]eventlog.Event{event(id, r.ID, exited)}, events...)...), err
		case r.EndRequestedAt != 0 && (!r.Open() || r.EndReason == EndReclaim || r.EndReason == EndReopened):
			return already(id, fmt.Sprintf("run %d was asked to end before (%s)", r.ID, r.EndReason)), nil
		case !r.Open():
			to = ""
		}
		return decided(id, wish(id, r, EndReclaim, reason, to, evidence)), nil
	}
}

// Cancel holds a card until somebody unblocks it, ending its worker first.
func Cancel(id string, run uint64, reason, evidence string, w Writer) Decider {
	return func(v View, now eventlog.Time) (Decision, error) {
		t, r, stop, err := operated(v, "cancel", id, run, reason, w)
		if err != nil || stop.Refused != nil {
			return stop, err
		}
		switch {
		case t.Over():
			return Decision{}, refuse(ErrState, id, "%s; there is nothing to cancel", t.Status)
		case r != nil && r.Open() && !r.HasWorker:
			return closeAs(v, t, r, EndCancel, reason, now, eventlog.Reclaimed{Reason: EndCancel + colon(reason), Evidence: noWorker})
		case r != nil && r.Open() && r.EndRequestedAt != 0 && r.EndReason == EndCancel:
			return already(id, fmt.Sprintf("run %d was asked to end before (%s)", r.ID, r.EndReason)), nil
		case r != nil && r.Open():
			return decided(id, wish(id, r, EndCancel, reason, Blocked, evidence)), nil
		}
		var events []eventlog.Event
		if t.Status == Triage || goesOn(t) {
			events = append(events, event(id, 0, cancelled(reason)))
		}
		if r != nil && r.EndRequestedAt == 0 {
			// Its card is held from here on, whatever becomes of the process.
			events = append(events, wish(id, r, EndReclaim, EndCancel+colon(reason), "", evidence))
		}
		if len(events) == 0 {
			return already(id, "held before"+colon(t.BlockReason)), nil
		}
		return decided(id, events...), nil
	}
}

// Archive puts a card away, ending its worker first. Cards that waited for it
// wait no longer.
func Archive(id string, run uint64, reason, evidence string, w Writer) Decider {
	return func(v View, now eventlog.Time) (Decision, error) {
		t, r, stop, err := operated(v, "archive", id, run, reason, w)
		if err != nil || stop.Refused != nil {
			return stop, err
		}
		switch {
		case t.Status == Archived:
			return already(id, "archived before"), nil
		case r != nil && r.Open() && !r.HasWorker:
			return closeAs(v, t, r, EndArchive, reason, now, eventlog.Reclaimed{Reason: EndArchive + colon(reason), Evidence: noWorker})
		case r != nil && r.Open() && r.EndRequestedAt != 0 && r.EndReason == EndArchive:
			return already(id, fmt.Sprintf("run %d was asked to end before (%s)", r.ID, r.EndReason)), nil
		case r != nil && r.Open():
			return decided(id, wish(id, r, EndArchive, reason, Archived, evidence)), nil
		}
		events, err := archived(v, id, reason, now)
		if err != nil {
			return Decision{}, err
		}
		if r != nil && r.EndRequestedAt == 0 {
			events = append(events, wish(id, r, EndReclaim, EndArchive+colon(reason), "", evidence))
		}
		return decided(id, events...), nil
	}
}

// closeAs closes an open run as reclaimed, with what its end was wished for and
// why.
func closeAs(v View, t *Task, r *Run, wished, why string, now eventlog.Time, d eventlog.Reclaimed) (Decision, error) {
	to, err := statusWithout(v, t, now, "")
	if err != nil {
		return Decision{}, err
	}
	var more []eventlog.Event
	switch wished {
	case EndCancel:
		to, more = Blocked, []eventlog.Event{event(t.ID, 0, cancelled(why))}
	case EndArchive:
		if more, err = archived(v, t.ID, why, now); err != nil {
			return Decision{}, err
		}
	case EndReopened:
		more = []eventlog.Event{event(t.ID, 0, &eventlog.Retracted{Ancestor: why, From: Running, To: to})}
	}
	d.To = to
	return decided(t.ID, append([]eventlog.Event{event(t.ID, r.ID, &d)}, more...)...), nil
}

// afterlife is what becomes of the card of a run that was closed by an answer
// while it was being cancelled or archived. Until its process is gone the card
// cannot start again, so that this comes in time: a worker that answers its
// SIGTERM with fail or defer does not undo the operator's word.
func afterlife(v View, t *Task, r *Run, now eventlog.Time) ([]eventlog.Event, error) {
	switch {
	case r.EndReason == EndArchive && t.Status != Archived:
		return archived(v, t.ID, r.EndDetail, now)
	case r.EndReason == EndCancel && goesOn(t):
		return []eventlog.Event{event(t.ID, 0, cancelled(r.EndDetail))}, nil
	}
	return nil, nil
}

// goesOn tells whether a card starts again without an operator's unblock: a
// plain gave_up is lifted by a higher limit or another assignee.
func goesOn(t *Task) bool {
	switch t.Status {
	case Ready, Todo, Scheduled, Review:
		return true
	}
	return t.Status == Blocked && t.ParkedLimit > 0
}

func cancelled(reason string) *eventlog.Blocked {
	return &eventlog.Blocked{Reason: "cancelled" + colon(reason), BlockKind: NeedsInput}
}

// archived puts a card away and frees those that waited only for it.
func archived(v View, id, reason string, now eventlog.Time) ([]eventlog.Event, error) {
	free, err := freed(v, id, now)
	return append([]eventlog.Event{event(id, 0, &eventlog.Archived{Reason: reason})}, free...), err
}

const (
	stillAlive = "a process may still be alive"
	noWorker   = "no worker registered"
)
