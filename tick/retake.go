package tick

import (
	"strings"
	"time"

	"kanlog/eventlog"
	"kanlog/projection"
)

// WhatIf puts other values in the place of the settings on a decision's record; what is
// nil stays.
type WhatIf struct {
	projection.WhatIf
	Policy     func(*Policy)
	MaxRuntime func(assignee string, limit *time.Duration)
}

// Retake takes the decision of a commit once more, see projection.Retake; what a
// dispatcher decided about a worker is judged once more as well, by the evidence on
// its record.
func Retake(v projection.View, c eventlog.Commit, w WhatIf) (projection.Retaken, error) {
	r, err := projection.Retake(v, c, w.WhatIf)
	first := c.Events[0]
	if err != nil || !strings.HasPrefix(c.Actor, "dispatcher:") || r.Differs() {
		return r, err
	}
	var e Evidence
	p, wanted := Policy{}, ""
	switch d := first.Data.(type) {
	case *eventlog.TerminationRequested:
		answer, why, _ := strings.Cut(d.Evidence, ": ")
		e, wanted = Evidence{Answer: Answer(answer), Why: why}, d.Reason
		limit := time.Duration(d.LimitSeconds) * time.Second
		switch d.Reason {
		case projection.EndMaxRuntime:
		case projection.EndHeartbeatStale:
			p.Limits.HeartbeatStale = limit
		case projection.EndTerminalGrace:
			p.TerminalGrace = limit
		case projection.EndOrphaned:
			limit = 1 // none is needed
		default:
			return r, nil
		}
		if limit == 0 || e.Answer != Alive && e.Answer != Orphaned && e.Answer != Held {
			return r, nil // shorter than a second, or not on record
		}
	case *eventlog.ClaimExtended:
		e = Evidence{Answer: Alive}
	default:
		return r, nil
	}
	if w.Policy != nil {
		w.Policy(&p)
	}
	run, err := v.Run(first.Run)
	if err != nil || run == nil {
		return r, err
	}
	if w.MaxRuntime != nil {
		limit := time.Duration(run.MaxRuntimeSeconds) * time.Second
		w.MaxRuntime(run.Assignee, &limit)
		run.MaxRuntimeSeconds = int64(limit / time.Second)
	}
	got := judge(run, e, c.At, p)
	switch {
	case got.requestEnd == wanted:
	case got.requestEnd != "":
		r.Now = string(eventlog.KindTerminationRequested) + " (" + got.requestEnd + ")"
	default:
		r.Now = "nothing: the run goes on"
	}
	return r, nil
}
