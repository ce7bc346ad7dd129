package projection

import (
	"strings"

	"kanlog/eventlog"
)

const byApproval = "approval"

// RequestReview ends an attempt: somebody has to look at its work before the card
// is done. reviewer is the profile that is to do it; empty is who did it before, or
// whom the settings name (byProfile: the assignee's reviewer), or else a person.
func RequestReview(id string, a Answer, reviewer string, byProfile map[string]string, w Writer) Decider {
	return func(v View, now eventlog.Time) (Decision, error) {
		if err := a.check(); err != nil {
			return Decision{}, err
		}
		if err := checkName("the reviewer", reviewer); err != nil {
			return Decision{}, err
		}
		t, open, stop, err := answer(v, "request-review", id, w)
		if err != nil || stop.Refused != nil {
			return stop, err
		}
		switch {
		case t.ReviewedRun != 0:
			return Decision{}, refuse(ErrState, id, "in review already (of run %d); approve it or request changes", t.ReviewedRun)
		case open == nil && t.Status != Ready:
			return Decision{}, refuse(ErrState, id, "%s; only a running or ready card can be reviewed", t.Status)
		}
		if err := finishable(v, t, open); err != nil {
			return Decision{}, err
		}
		reviewer := or(reviewer, t.Reviewer)
		if open != nil {
			reviewer = or(reviewer, open.Reviewer)
		}
		return decided(id, event(id, runID(open), &eventlog.ReviewRequested{
			Summary: a.Summary, Result: a.Result, Metadata: a.Metadata, By: byAnswer, Reviewer: or(reviewer, byProfile[t.Assignee]),
		})), nil
	}
}

// underReview is the fence for what ends a review: the reviewer's own run, or an
// operator. seen is the run whose work the caller looked at, 0 if it does not say:
// nobody approves what was handed in since.
func underReview(v View, verb, id string, seen uint64, w Writer) (*Task, *Run, Decision, error) {
	_, open, stop, err := fence(v, verb, id, w)
	if err != nil || stop.Refused != nil {
		return nil, nil, stop, err
	}
	if open != nil && open.Lane != LaneReview {
		return nil, nil, Decision{}, refuse(ErrState, id, "%s refused: run %d works on the card and does not review it", verb, open.ID)
	}
	t, open, stop, err := answer(v, verb, id, w)
	if err != nil || stop.Refused != nil {
		return nil, nil, stop, err
	}
	switch {
	case t.ReviewedRun == 0 && open != nil && open.Lane == LaneReview:
		err = refuse(ErrState, id, "%s refused: what run %d reviews was taken back, since %s was reopened", verb, open.ID, open.EndDetail)
	case t.ReviewedRun == 0 || open == nil && t.Status != Review:
		err = refuse(ErrState, id, "not in review but %s", t.Status)
	case seen != 0 && seen != t.ReviewedRun:
		err = refuse(ErrState, id, "what is in review is the work of run %d, not of run %d; look again", t.ReviewedRun, seen)
	case open == nil && t.Worker != 0:
		err = refuse(ErrState, id, "the process of run %d has not ended; wait for it or reclaim the card", t.Worker)
	}
	return t, open, Decision{}, err
}

// Approve ends a review: the card is done.
func Approve(id string, a Answer, seen uint64, w Writer) Decider {
	return func(v View, now eventlog.Time) (Decision, error) {
		if err := a.check(); err != nil {
			return Decision{}, err
		}
		t, open, stop, err := underReview(v, "approve", id, seen, w)
		if err != nil || stop.Refused != nil {
			return stop, err
		}
		if err := finishable(v, t, open); err != nil {
			return Decision{}, err
		}
		d := &eventlog.Completed{Summary: a.Summary, Result: a.Result, Metadata: a.Metadata, By: byApproval, Reviewed: t.ReviewedRun}
		return completed(v, t, runID(open), d, now)
	}
}

// RequestChanges ends a review: the card goes back to who worked on it. A card
// that is sent back again and again is blocked: two workers that do not agree
// would go on for ever.
func RequestChanges(id, reason string, seen uint64, l Limits, w Writer) Decider {
	return func(v View, now eventlog.Time) (Decision, error) {
		if strings.TrimSpace(reason) == "" {
			return Decision{}, invalid("request-changes needs a reason: it is all that the next attempt learns")
		}
		if err := checkText("the reason", reason, MaxReason); err != nil {
			return Decision{}, err
		}
		t, open, stop, err := underReview(v, "request-changes", id, seen, w)
		if err != nil || stop.Refused != nil {
			return stop, err
		}
		back := *t
		back.ReviewedRun = 0
		to, err := statusWithout(v, &back, now, "")
		if err != nil {
			return Decision{}, err
		}
		d := &eventlog.ChangesRequested{Reason: reason, To: to, Reviewed: t.ReviewedRun}
		if open == nil {
			return decided(id, event(id, 0, d)), nil
		}
		c, err := countsWith(v, t, open, Run{Outcome: OutChangesRequested})
		if err != nil {
			return Decision{}, err
		}
		return l.withGaveUp(t, c, reason, event(id, open.ID, d)), nil
	}
}

func runID(r *Run) uint64 {
	if r == nil {
		return 0
	}
	return r.ID
}
