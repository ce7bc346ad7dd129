package projection

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"time"

	"kanlog/eventlog"
)

// Counts is how a card's recent runs weigh on its budgets: derived from the
// history each time, so that no loop can reset what should stop it.
type Counts struct {
	// Failures counts attempts that failed since the last fresh start.
	Failures int64
	// Violations, Limited, Interrupted and Stale are streaks that reach to the
	// newest run.
	Violations  int64
	Limited     int64
	Interrupted int64
	Stale       int64
	// Uncounted are all attempts that ran and that no failure budget counts:
	// ends that take turns break each other's streaks.
	Uncounted int64
}

// Count weighs the closed runs of a card, oldest first. Runs up to freshFrom do
// not count.
func Count(runs []*Run, freshFrom uint64) Counts {
	var c Counts
	violations, limited, interrupted, stale := true, true, true, true
	for i := len(runs) - 1; i >= 0; i-- {
		r := runs[i]
		if r.ID <= freshFrom || r.Open() {
			continue
		}
		wait := r.Outcome == OutRateLimited || r.Outcome == OutDeferred
		switch {
		case r.Counted:
			c.Failures++
		case r.Outcome != OutSpawnFailed: // that one never ran
			c.Uncounted++
		}
		// Quota walls between two violations neither break the streak nor
		// lengthen it.
		if violations = violations && (r.Violation || r.Outcome == OutRateLimited); violations && r.Violation {
			c.Violations++
		}
		if limited = limited && wait; limited {
			c.Limited++
		}
		if interrupted = interrupted && r.Interrupted; interrupted {
			c.Interrupted++
		}
		if stale = stale && r.Outcome == OutStale; stale {
			c.Stale++
		}
	}
	return c
}

// CountsOf weighs a card's runs as they stand.
func (v View) CountsOf(t *Task) (Counts, error) {
	// Older runs do not count and are not read: a long history costs nothing.
	runs, err := v.runsAfter(t.ID, t.FreshFrom)
	return Count(runs, t.FreshFrom), err
}

// countsWith weighs a card's runs as if run had just ended as given.
func countsWith(v View, t *Task, run *Run, as Run) (Counts, error) {
	runs, err := v.runsAfter(t.ID, t.FreshFrom)
	if err != nil {
		return Counts{}, err
	}
	for i, r := range runs {
		if r.ID == run.ID {
			as.ID = r.ID
			runs[i] = &as
		}
	}
	return Count(runs, t.FreshFrom), nil
}

// failureLimit is the card's own limit, or the settings'.
func (l Limits) failureLimit(t *Task) (int64, string) {
	if t.MaxRetries > 0 {
		return t.MaxRetries, "task"
	}
	return l.FailureLimit, "settings"
}

func (l Limits) violationLimit(t *Task) (int64, string) {
	if t.MaxRetries > 0 {
		return t.MaxRetries, "task"
	}
	return l.ViolationLimit, "settings"
}

// gaveUp returns the end of the road for a card whose newest run brought its
// counts to c, or nil if it may go on.
func (l Limits) gaveUp(t *Task, c Counts, lastError string) *eventlog.GaveUp {
	if limit, source := l.violationLimit(t); c.Violations >= limit {
		return &eventlog.GaveUp{
			Budget: "violations", Failures: c.Violations, Limit: limit, LimitSource: source, Sticky: true,
			Reason: fmt.Sprintf("%d times in a row the worker ended with 0 and gave no answer", c.Violations),
		}
	}
	if limit, source := l.failureLimit(t); c.Failures >= limit {
		return &eventlog.GaveUp{
			Budget: "failures", Failures: c.Failures, Limit: limit, LimitSource: source,
			Reason: cut(fmt.Sprintf("%d of %d attempts failed; the last: %s", c.Failures, limit, lastError), MaxReason),
		}
	}
	if c.Limited >= MaxRateLimited {
		return &eventlog.GaveUp{
			Budget: "rate_limit", Failures: c.Limited, Limit: MaxRateLimited, LimitSource: "built-in", Sticky: true,
			Reason: fmt.Sprintf("quota: %d times in a row it was put off", c.Limited),
		}
	}
	if c.Interrupted >= MaxInterruptions {
		return &eventlog.GaveUp{
			Budget: "interruptions", Failures: c.Interrupted, Limit: MaxInterruptions, LimitSource: "built-in", Sticky: true,
			Reason: fmt.Sprintf("%d times in a row the run was cut off (dispatcher gone, reboot, service stop)", c.Interrupted),
		}
	}
	if c.Stale >= MaxStale {
		return &eventlog.GaveUp{
			Budget: "stale", Failures: c.Stale, Limit: MaxStale, LimitSource: "built-in", Sticky: true,
			Reason: fmt.Sprintf("%d times in a row its heartbeats stopped", c.Stale),
		}
	}
	violations, _ := l.violationLimit(t)
	if limit := max(MaxUncounted, violations); c.Uncounted >= limit {
		return &eventlog.GaveUp{
			Budget: "uncounted", Failures: c.Uncounted, Limit: limit, LimitSource: "built-in", Sticky: true,
			Reason: cut(fmt.Sprintf("%d attempts that count toward no limit; the last: %s", c.Uncounted, lastError), MaxReason),
		}
	}
	return nil
}

// retryAt is when the n-th failure of a card may be tried again: the back-off
// doubles, and a hash of the run's number spreads it by up to a quarter, so
// that a replay plans the same. 0 means at once.
func (l Limits) retryAt(now eventlog.Time, n int64, run uint64) eventlog.Time {
	if l.RetryBackoff <= 0 {
		return 0
	}
	d := l.RetryBackoff
	for ; n > 1 && d < l.MaxBackoff; n-- {
		d *= 2
	}
	d = min(d, l.MaxBackoff)
	h := sha256.Sum256(num(run))
	return now.Add(d + time.Duration(float64(d/4)*float64(binary.BigEndian.Uint32(h[:4]))/(1<<32)))
}
