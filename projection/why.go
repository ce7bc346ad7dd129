package projection

import (
	"fmt"
	"strings"
	"time"

	"kanlog/eventlog"
)

// Admission is what the one reason function knows beside the board.
type Admission struct {
	// Profiles are the assignees that a dispatcher can start here.
	Profiles map[string]bool
	// Full says in words why an assignee's next card is not started although
	// it could be ("cap 2 of 2"), "" if nothing is full. May be nil.
	Full func(assignee string) string
}

// Why says why a card does not run and what would end that; "" if it runs, is
// over, or would start in the next tick.
func (v View) Why(t *Task, now eventlog.Time, w Admission) (string, error) {
	switch t.Status {
	case Triage:
		if t.BlockReason != "" {
			return fmt.Sprintf("in triage: its workers blocked it %d times for the same kind of reason (%s: %s); somebody has to see to that, then kanlog promote %s lets it go on",
				t.WorkerBlocks, t.BlockKind, t.BlockReason, t.ID), nil
		}
		return "in triage: somebody has to specify it; kanlog promote " + t.ID + " lets it go on", nil
	case Scheduled:
		return "scheduled: not before " + toSecond(t.NotBefore), nil
	case Review:
		if t.Reviewer == "" {
			return fmt.Sprintf("waits for a review of run %d by a person: kanlog approve %s, or kanlog request-changes %s REASON", t.ReviewedRun, t.ID, t.ID), nil
		}
	case Blocked:
		how := "kanlog unblock " + t.ID + " lets it go on"
		switch {
		case t.ParkedLimit > 0 && t.ReviewedRun != 0:
			how += fmt.Sprintf("; kanlog edit %s --reviewer P has another one review it", t.ID)
		case t.ParkedLimit > 0 && t.MaxRetries > 0:
			how += "; so does another assignee"
		case t.ParkedLimit > 0:
			how += "; so does a failure limit above " + fmt.Sprint(t.ParkedLimit) + " or another assignee"
		}
		return fmt.Sprintf("blocked (%s): %s; %s", or(t.BlockKind, NeedsInput), t.BlockReason, how), nil
	case Todo:
		open, err := v.openParents(t.ID, "")
		if err != nil {
			return "", err
		}
		if len(open) == 0 {
			return "waits for nothing any more, and is not let go on by itself; kanlog promote " + t.ID + " does", nil
		}
		return "waits for " + nameParents(open), nil
	case Running:
		r, err := v.runOf(t.CurrentRun)
		if err != nil {
			return "", err
		}
		if why := r.ending(); why != "" {
			return why, nil
		}
		// It does not wait, but nothing ends it for being late either.
		if until := r.Until(now); !until.IsZero() && r.unproven() && now.Std().After(until) {
			return fmt.Sprintf("run %d is over its time since %s and cannot be ended: what its supervisor is was not captured when it registered; kanlog reclaim %s --force --reason T lets the card go on beside it",
				r.ID, eventlog.TimeOf(until), t.ID), nil
		}
		return "", nil
	case Done, Archived:
		return "", nil
	}
	switch {
	case t.Worker != 0:
		r, err := v.runOf(t.Worker)
		if err != nil {
			return "", err
		}
		if why := r.ending(); why != "" {
			return why, nil
		}
		return fmt.Sprintf("the process of run %d has not ended; it is ended after the terminal grace, or by kanlog reclaim %s --reason T", r.ID, t.ID), nil
	case t.heldAt(now):
		return fmt.Sprintf("%s until %s", t.HoldReason, toSecond(t.HoldUntil)), nil
	case t.Starter() == "":
		return fmt.Sprintf("nobody is assigned; kanlog assign %s PROFILE, or kanlog work %s -- CMD", t.ID, t.ID), nil
	case !w.Profiles[t.Starter()] && t.Lane() == LaneReview:
		return fmt.Sprintf("no profile %q in the settings to review run %d: kanlog approve %s, or kanlog request-changes %s REASON, or kanlog work --assignee %s -- CMD, or [profiles.%s]",
			t.Reviewer, t.ReviewedRun, t.ID, t.ID, ShellWord(t.Reviewer), TOMLKey(t.Reviewer)), nil
	case !w.Profiles[t.Starter()]:
		return fmt.Sprintf("no profile %q in the settings: waits for a pull worker (kanlog work --assignee %s -- CMD), for kanlog claim, or for [profiles.%s]",
			t.Starter(), ShellWord(t.Starter()), TOMLKey(t.Starter())), nil
	}
	if w.Full != nil {
		if why := w.Full(t.Starter()); why != "" {
			return why, nil
		}
	}
	return v.PlaceTaken(t)
}

// ending says that a run's processes are being ended and how far that is, "" if
// they are not.
func (r *Run) ending() string {
	reason := r.EndReason
	if reason == EndOrphaned {
		reason = "its supervisor is gone"
	}
	switch {
	case r.EndRequestedAt == 0:
		return ""
	case r.DeferredReason != "":
		return fmt.Sprintf("run %d was asked to end (%s), but its process can neither be proven nor ruled out: %s; kanlog reclaim %s --force --reason T lets the card go on beside it",
			r.ID, reason, r.DeferredReason, r.Task)
	}
	return fmt.Sprintf("run %d is being ended (%s) since %s; each kanlog dispatch presses on", r.ID, reason, toSecond(r.EndRequestedAt))
}

// unproven tells whether nothing on record can ever prove what the supervisor
// is: it is never signalled.
func (r *Run) unproven() bool { return r.HasWorker && !strings.Contains(r.Fingerprint, "|") }

// toSecond is a moment for people, who read no microseconds.
func toSecond(t eventlog.Time) string { return t.Std().Truncate(time.Second).Format(time.RFC3339) }
