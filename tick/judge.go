package tick

import (
	"fmt"
	"time"

	"kanlog/eventlog"
	"kanlog/projection"
)

// verdict is what to do about one run. Its parts are carried out in this
// order: what is appended first, then the signal.
type verdict struct {
	// requestEnd is the reason to ask for the end of its processes.
	requestEnd string
	detail     string
	// limit and measured are the bound that was exceeded and by what, for the
	// reasons that have one.
	limit, measured time.Duration
	signal          Signal
	// deferEnd: the end was asked for, but nobody may be signalled.
	deferEnd bool
	extend   bool
	book     bool
	unproven bool
	// cutOff closes a claim without a worker.
	cutOff       bool
	interrupted  bool
	expireManual bool
}

// judge is the evidence table (docs/evidence.md): one run, what a look found, the
// time and the policy give one verdict. It is pure, and everything it concludes
// is checked again inside the transaction that carries it out.
func judge(r *projection.Run, e Evidence, now eventlog.Time, p Policy) verdict {
	if !r.HasWorker {
		return judgeClaim(r, e, now, p)
	}
	asked := r.EndRequestedAt != 0
	switch e.Answer {
	case Dead:
		return verdict{book: true}
	case Held:
		// Never a signal: it may be somebody else's process.
		if e.Unprovable && r.LeasePast(now) {
			return verdict{book: true, unproven: true}
		}
		if !asked && !r.Open() && now.Since(r.EndedAt) >= p.TerminalGrace {
			// Asked for without a signal, so that the next tick says why the
			// card waits.
			return verdict{requestEnd: projection.EndTerminalGrace, detail: e.Why}
		}
		return verdict{deferEnd: asked}
	case Orphaned:
		v := verdict{signal: TermMembers}
		if !asked {
			v.requestEnd, v.detail = projection.EndOrphaned, e.Why
		} else if now.Since(r.EndRequestedAt) >= p.KillGrace {
			v.signal = KillMembers
		}
		return v
	case Alive:
		if asked {
			// The supervisor kills the tree after one grace. Not gone after
			// another: it is stopped or hangs.
			if now.Since(r.EndRequestedAt) >= 2*p.KillGrace {
				return verdict{signal: KillSupervisor}
			}
			return verdict{signal: TermSupervisor}
		}
		return judgeAlive(r, now, p)
	}
	return verdict{}
}

func judgeAlive(r *projection.Run, now eventlog.Time, p Policy) verdict {
	if !r.Open() {
		if over := now.Since(r.EndedAt); over >= p.TerminalGrace {
			return verdict{requestEnd: projection.EndTerminalGrace, detail: "alive " + seconds(over) + " after its answer", limit: p.TerminalGrace, measured: over, signal: TermSupervisor}
		}
		return verdict{}
	}
	if limit := time.Duration(r.MaxRuntimeSeconds) * time.Second; limit > 0 {
		if ran := now.Since(r.SpawnedAt); ran >= limit {
			return verdict{requestEnd: projection.EndMaxRuntime, detail: fmt.Sprintf("ran %s of at most %s", seconds(ran), limit), limit: limit, measured: ran, signal: TermSupervisor}
		}
	}
	if r.LastHeartbeat != 0 && p.Limits.HeartbeatStale > 0 {
		if silent, limit := now.Since(r.LastHeartbeat), p.Limits.HeartbeatStale; silent >= limit {
			return verdict{requestEnd: projection.EndHeartbeatStale, detail: fmt.Sprintf("silent for %s, at most %s", seconds(silent), limit), limit: limit, measured: silent, signal: TermSupervisor}
		}
	}
	return verdict{extend: r.LeaseOver(now)}
}

// judgeClaim judges a claim for which no supervisor has registered.
func judgeClaim(r *projection.Run, e Evidence, now eventlog.Time, p Policy) verdict {
	switch {
	case r.Origin == projection.OriginManual:
		return verdict{expireManual: r.LeaseOver(now)}
	case e.Answer == Dead:
		// No lease is waited for: a supervisor that comes late is refused.
		return verdict{cutOff: true, interrupted: true}
	case now >= r.ClaimExpires.Add(p.KillGrace):
		// The claimer lives, or cannot be looked at, and should have booked
		// this itself when the time for its start ran out.
		return verdict{cutOff: true}
	}
	return verdict{}
}

func seconds(d time.Duration) string { return d.Truncate(time.Second).String() }
