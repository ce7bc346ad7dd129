package tick

import (
	"kanlog/eventlog"
	"kanlog/projection"
)

// Next is the first moment after now at which a tick would find something to do
// although nothing was written and no process ended meanwhile; 0 if there is none.
// Who ticks by it and whenever the log moves or a process ends needs no polling. It
// reads what is active and the heads of the indexes, however big the board is.
func Next(v projection.View, p Policy, now eventlog.Time) (eventlog.Time, error) {
	active, err := v.Active()
	if err != nil {
		return 0, err
	}
	next := earliest{now: now}
	for _, r := range active {
		next.or(nextLook(r, now, p))
	}
	next.or(v.NextDue(now))
	for name := range p.Profiles {
		a, err := v.Alike(name)
		if err != nil {
			return 0, err
		}
		next.or(p.Breaker.Next(name, a, active, now))
	}
	return next.at, nil
}

// nextLook is when judge may first say something else about a run than now, by
// time alone. It pairs with judge: a bound there has its moment here.
func nextLook(r *projection.Run, now eventlog.Time, p Policy) eventlog.Time {
	next := earliest{now: now}
	if !r.HasWorker {
		if r.Origin == projection.OriginManual {
			next.or(r.ClaimExpires)
		} else {
			next.or(r.ClaimExpires.Add(p.KillGrace))
		}
		return next.at
	}
	next.or(r.ClaimExpires) // one that cannot be proven is released by it
	switch {
	case r.EndRequestedAt != 0:
		next.or(r.EndRequestedAt.Add(p.KillGrace))
		next.or(r.EndRequestedAt.Add(2 * p.KillGrace))
		if now.Since(r.EndRequestedAt) >= 2*p.KillGrace && r.DeferredReason == "" {
			// It is signalled again and again, for as long as that takes.
			next.or(now.Add(max(p.KillGrace, pressEvery)))
		}
	case !r.Open():
		next.or(r.EndedAt.Add(p.TerminalGrace))
	default:
		if until := r.Until(0); !until.IsZero() {
			next.or(eventlog.TimeOf(until))
		}
		if r.LastHeartbeat != 0 && p.Limits.HeartbeatStale > 0 {
			next.or(r.LastHeartbeat.Add(p.Limits.HeartbeatStale))
		}
	}
	return next.at
}

// earliest keeps the first of some moments that lie after now.
type earliest struct{ now, at eventlog.Time }

func (e *earliest) or(t eventlog.Time) {
	if t > e.now && (e.at == 0 || t < e.at) {
		e.at = t
	}
}
