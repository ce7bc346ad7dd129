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
	// Rounds counts reviews that sent the card back.
	Rounds int64
	// Uncounted are all attempts that ran and are not in Failures. Kinds that
	// take turns break each other's streaks; this bounds them together.
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
		if r.Outcome == OutChangesRequested && r.TTLSeconds != 0 {
			c.Rounds++ // a person's word, given without a claim, is no loop
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
			as.ID, as.TTLSeconds = r.ID, r.TTLSeconds
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

// Budget is one way in which a card's runs may use up the patience with it.
type Budget struct {
	Name   string `json:"budget"` // failures, violations, rate_limit, interruptions, stale, reviews, uncounted
	Used   int64  `json:"used"`
	Limit  int64  `json:"limit"`
	Source string `json:"limit_source"` // task, settings or built-in
	// Sticky: once it is used up only an operator frees the card.
	Sticky bool `json:"sticky"`

	spent string // in words, when it is used up
}

// Budgets weighs a card's counts against every limit there is, in the order in
// which they are judged.
func (l Limits) Budgets(t *Task, c Counts) []Budget {
	const builtIn = "built-in"
	violations, violationSource := l.violationLimit(t)
	failures, failureSource := l.failureLimit(t)
	times := func(n int64, what string) string { return fmt.Sprintf("%d times in a row %s", n, what) }
	return []Budget{
		{"violations", c.Violations, violations, violationSource, true, times(c.Violations, "the worker ended with 0 and gave no answer")},
		{"failures", c.Failures, failures, failureSource, false, fmt.Sprintf("%d of %d attempts failed", c.Failures, failures)},
		{"rate_limit", c.Limited, MaxRateLimited, builtIn, true, "quota: " + times(c.Limited, "it was put off")},
		{"interruptions", c.Interrupted, MaxInterruptions, builtIn, true,
			times(c.Interrupted, "the run was cut off (dispatcher gone, reboot, service stop)")},
		{"stale", c.Stale, MaxStale, builtIn, true, times(c.Stale, "its heartbeats stopped")},
		{"reviews", c.Rounds, MaxRounds, builtIn, true, fmt.Sprintf("reviews sent it back %d times", c.Rounds)},
		// Not less than what somebody allowed on purpose.
		{"uncounted", c.Uncounted, max(MaxUncounted, violations), builtIn, true,
			fmt.Sprintf("%d attempts ended in ways that no other limit counts", c.Uncounted)},
	}
}

// gaveUp returns the end of the road for a card whose newest run brought its
// counts to c, or nil if it may go on.
func (l Limits) gaveUp(t *Task, c Counts, lastError string) *eventlog.GaveUp {
	for _, b := range l.Budgets(t, c) {
		if b.Used >= b.Limit {
			reason := b.spent
			if b.Name == "failures" || b.Name == "uncounted" || b.Name == "reviews" { // the others say what the last was
				reason += "; the last: " + lastError
			}
			return &eventlog.GaveUp{
				Budget: b.Name, Failures: b.Used, Limit: b.Limit, LimitSource: b.Source, Sticky: b.Sticky, Reason: cut(reason, MaxReason),
			}
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
	// Somebody who asks for a longer wait gets it, each time.
	d = min(d, max(l.MaxBackoff, l.RetryBackoff))
	h := sha256.Sum256(num(run))
	return now.Add(d + time.Duration(float64(d/4)*float64(binary.BigEndian.Uint32(h[:4]))/(1<<32)))
}
