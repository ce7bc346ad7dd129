package projection

import (
	"strings"
	"time"

	"kanlog/eventlog"
)

const (
	byAnswer    = "answer"
	byCleanExit = "clean_exit"
)

// answer is the fence for verbs that close the open run. An operator may close
// a manual claim, which has no process; a run that has or may yet get a worker
// is closed from outside only by ending that worker.
func answer(v View, verb, id string, w Writer) (*Task, *Run, Decision, error) {
	t, open, stop, err := fence(v, verb, id, w)
	if err != nil || stop.Refused != nil {
		return nil, nil, stop, err
	}
	if open != nil && w.Run == 0 && open.Origin != OriginManual {
		return nil, nil, Decision{}, refuse(ErrState, id, "running (run %d); use reclaim first, or give --run %d if you answer for its worker", open.ID, open.ID)
	}
	return t, open, Decision{}, nil
}

// Answer is what a worker, or an operator for it, says of a finished card.
type Answer struct {
	Summary  string
	Result   string
	Metadata []byte // one JSON value, kept byte for byte
}

func (a Answer) check() error {
	for _, err := range []error{
		checkText("the summary", a.Summary, MaxSummary),
		checkText("the result", a.Result, MaxResult),
		checkMetadata(a.Metadata),
	} {
		if err != nil {
			return err
		}
	}
	return nil
}

// Complete closes the card as done and frees the cards that waited only for
// it, in one commit.
func Complete(id string, a Answer, w Writer) Decider {
	return func(v View, now eventlog.Time) (Decision, error) {
		if err := a.check(); err != nil {
			return Decision{}, err
		}
		t, open, stop, err := answer(v, "complete", id, w)
		if err != nil || stop.Refused != nil {
			return stop, err
		}
		switch t.Status {
		case Done, Archived:
			return Decision{}, refuse(ErrState, id, "already %s", t.Status)
		}
		if err := finishable(v, t, open); err != nil {
			return Decision{}, err
		}
		d := &eventlog.Completed{Summary: a.Summary, Result: a.Result, Metadata: a.Metadata, By: byAnswer, Reviewed: t.ReviewedRun}
		return completed(v, t, runID(open), d, now)
	}
}

// finishable refuses an answer that hands in a card's work before what it was
// built on is done, or (if it opens a run of its own) beside a process of the run
// before (I2).
func finishable(v View, t *Task, open *Run) error {
	waits, err := v.openParents(t.ID, "")
	switch {
	case err != nil:
		return err
	case open != nil && open.EndReason == EndReopened:
		// Even if that is done again by now: this run began before.
		return refuse(ErrState, t.ID, "run %d is being ended: %s, which its work was built on, was reopened", open.ID, open.EndDetail)
	case len(waits) > 0:
		return refuse(ErrState, t.ID, "cannot be done before its parent %s (%s)", waits[0].ID, waits[0].Status)
	case open == nil && t.Worker != 0:
		return refuse(ErrState, t.ID, "the process of run %d has not ended; wait for it or reclaim the card", t.Worker)
	}
	return nil
}

// completed is a completion with the promotions that follow from it.
func completed(v View, t *Task, run uint64, d *eventlog.Completed, now eventlog.Time) (Decision, error) {
	free, err := freed(v, t.ID, now)
	if err != nil {
		return Decision{}, err
	}
	return decided(t.ID, append([]eventlog.Event{event(t.ID, run, d)}, free...)...), nil
}

// Fail is the worker's word that this attempt failed; it counts.
func Fail(id, reason string, l Limits, w Writer) Decider {
	return func(v View, now eventlog.Time) (Decision, error) {
		if strings.TrimSpace(reason) == "" {
			return Decision{}, invalid("fail needs a reason")
		}
		if err := checkText("the reason", reason, MaxReason); err != nil {
			return Decision{}, err
		}
		t, open, stop, err := answer(v, "fail", id, w)
		if err != nil || stop.Refused != nil {
			return stop, err
		}
		if open == nil {
			return Decision{}, refuse(ErrState, id, "not running but %s; there is no attempt that could fail", t.Status)
		}
		to, c, err := after(v, t, open, Run{Outcome: OutFailed, Counted: true}, now)
		if err != nil {
			return Decision{}, err
		}
		d := &eventlog.Failed{Reason: reason, To: to, RetryAt: l.retryAt(now, c.Failures, open.ID)}
		return l.withGaveUp(t, c, reason, event(id, open.ID, d)), nil
	}
}

// Defer is the worker's word to try again later; it never counts as a failure. Of a
// card that nobody runs it is an operator's, and sets the time it is due.
func Defer(id string, wait time.Duration, reason string, l Limits, w Writer) Decider {
	return func(v View, now eventlog.Time) (Decision, error) {
		if wait <= 0 || wait > MaxDuration {
			return Decision{}, invalid("defer --for %s is out of range", wait)
		}
		if err := checkText("the reason", reason, MaxReason); err != nil {
			return Decision{}, err
		}
		t, open, stop, err := answer(v, "defer", id, w)
		if err != nil || stop.Refused != nil {
			return stop, err
		}
		if open == nil {
			return putOff(t, now.Add(wait), reason)
		}
		to, c, err := after(v, t, open, Run{Outcome: OutDeferred}, now)
		if err != nil {
			return Decision{}, err
		}
		return l.withGaveUp(t, c, reason, event(id, open.ID, &eventlog.Deferred{Reason: reason, To: to, RetryAt: now.Add(wait)})), nil
	}
}

// putOff sets when a card is due that nobody runs.
func putOff(t *Task, due eventlog.Time, reason string) (Decision, error) {
	d := &eventlog.Deferred{Reason: reason, To: Scheduled, RetryAt: due}
	switch t.Status {
	case Ready, Scheduled, Review:
	case Todo:
		d.To = Todo
	default:
		return Decision{}, refuse(ErrState, t.ID, "%s; only a card that would go on by itself can be deferred", t.Status)
	}
	return decided(t.ID, event(t.ID, 0, d)), nil
}

// after is where a card goes when its open run ends as given, and how its
// history then weighs.
func after(v View, t *Task, open *Run, as Run, now eventlog.Time) (string, Counts, error) {
	c, err := countsWith(v, t, open, as)
	if err != nil {
		return "", c, err
	}
	to, err := statusWithout(v, t, now, "")
	return to, c, err
}

// withGaveUp adds the end of a budget to the event that used it up.
func (l Limits) withGaveUp(t *Task, c Counts, last string, e eventlog.Event) Decision {
	events := []eventlog.Event{l.on(e)}
	if g := l.gaveUp(t, c, last); g != nil {
		events = append(events, event(t.ID, e.Run, g))
	}
	return decided(t.ID, events...)
}

// Beat records that a worker makes progress and moves its lease. A beat that
// follows the last one closely and says nothing new is acknowledged without an
// event: the log must not grow with the pulse of a worker.
func Beat(id, note string, l Limits, w Writer) Decider {
	return func(v View, now eventlog.Time) (Decision, error) {
		if err := checkText("the note", note, MaxNote); err != nil {
			return Decision{}, err
		}
		_, open, stop, err := fence(v, "heartbeat", id, w)
		if err != nil || stop.Refused != nil {
			return stop, err
		}
		if open == nil {
			return Decision{}, refuse(ErrState, id, "not running; there is no claim to keep alive")
		}
		if w.Run == 0 && open.Origin != OriginManual {
			return Decision{}, refuse(ErrFenced, id, "heartbeat refused: run %d has a worker; only that worker (or --run %d) keeps it alive", open.ID, open.ID)
		}
		ttl := open.Lease()
		last := max(open.LastHeartbeat, open.SpawnedAt)
		quiet := ttl / 4
		if l.HeartbeatStale > 0 {
			quiet = min(ttl, l.HeartbeatStale) / 4
		}
		// The clock may have gone back: a last beat from the future does not
		// silence this one.
		if (note == "" || note == open.LastNote) && open.LastHeartbeat != 0 && last <= now && now.Since(last) < quiet {
			return already(id, "acknowledged"), nil
		}
		return decided(id, event(id, open.ID, &eventlog.Heartbeat{Note: note, ClaimExpires: now.Add(ttl)})), nil
	}
}
