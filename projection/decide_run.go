package projection

import (
	"time"

	"kanlog/eventlog"
)

// ClaimFor is what a claimer knows.
type ClaimFor struct {
	Task        string
	Origin      string
	Holder      string // the name a manual claimer gave
	Claimer     eventlog.Process
	TTL         time.Duration // the worker's lease, or the manual claim's
	LaunchGrace time.Duration // a dispatched claim must register within it
	OnCleanExit string
	MaxRuntime  time.Duration // the profile's cap, 0 for none; the card's own wins
	Assignee    string        // but by hand: the claim is void if the card is for another by now
	Reviewer    string        // who reviews the assignee's work by the settings, "" for a person
	Caps        Caps          // a pull worker's are none: a person decided
	Limits      Limits
}

// Claim opens a run: exclusive ownership of a card. It refuses while anything
// of an earlier run may be alive (I2). A dispatched claim of a card whose budgets
// are used up is its gave_up instead: a limit may have been lowered while its last
// run went on, or in the settings, and no end of a run has judged that.
func Claim(c ClaimFor, w Writer) Decider {
	return func(v View, now eventlog.Time) (Decision, error) {
		if err := checkName("the name", c.Holder); err != nil {
			return Decision{}, err
		}
		if c.TTL < time.Second || c.TTL > MaxDuration {
			return Decision{}, invalid("a claim of %s is out of range (1s or more)", c.TTL)
		}
		// The lease is kept in whole seconds. A deadline beyond it would look
		// like one that another clock wrote, and count as run out at once.
		ttl := (c.TTL + time.Second - 1).Truncate(time.Second)
		t, open, stop, err := fence(v, "claim", c.Task, w)
		if err != nil || stop.Refused != nil {
			return stop, err
		}
		if open != nil {
			return Decision{}, refuse(ErrState, t.ID, "already claimed%s, run %d", by(open), open.ID)
		}
		if t.Worker != 0 {
			return Decision{}, refuse(ErrState, t.ID, "the process of run %d has not ended", t.Worker)
		}
		if t.Status != Ready && t.Status != Review {
			return Decision{}, refuse(ErrState, t.ID, "cannot be claimed: %s%s", t.Status, colon(t.BlockReason))
		}
		waits, err := v.openParents(t.ID, "")
		if err != nil {
			return Decision{}, err
		}
		if len(waits) > 0 {
			return Decision{}, refuse(ErrState, t.ID, "cannot be claimed: waits for %s (%s)", waits[0].ID, waits[0].Status)
		}
		if c.Origin != OriginManual {
			taken, err := v.PlaceTaken(t)
			if err != nil {
				return Decision{}, err
			}
			if taken != "" {
				return Decision{}, refuse(ErrState, t.ID, "%s", taken)
			}
		}
		d := &eventlog.Claimed{
			Origin: c.Origin, Lane: t.Lane(), Assignee: t.Starter(), Holder: c.Holder, Reviews: t.ReviewedRun,
			Deadline: now.Add(ttl), TTLSeconds: int64(ttl / time.Second), Claimer: c.Claimer,
			OnCleanExit: c.OnCleanExit, MaxRuntimeSeconds: limitSeconds(c.MaxRuntime),
		}
		if t.MaxRuntimeSeconds != 0 {
			d.MaxRuntimeSeconds = max(0, t.MaxRuntimeSeconds)
		}
		if d.Lane == LaneReady {
			d.Reviewer = c.Reviewer
		}
		if c.Origin != OriginManual {
			if t.Starter() != c.Assignee {
				return Decision{}, refuse(ErrState, t.ID, "assigned to %q by now", t.Starter())
			}
			if t.heldAt(now) {
				return Decision{}, refuse(ErrState, t.ID, "held until %s (%s)", t.HoldUntil, t.HoldReason)
			}
			u, err := v.usage(t.Starter())
			if err != nil {
				return Decision{}, err
			}
			if c.Origin == OriginDispatch {
				d.Active, d.ActiveAssignee = u.Total, u.Mine
				d.BoardCap, d.AssigneeCap, d.HostCap = c.Caps.Board, c.Caps.Profile, c.Caps.Host
			}
			if full := c.Caps.Full(t.Starter(), u, now); full != "" {
				return Decision{}, refuse(ErrState, t.ID, "%s", full)
			}
		}
		if c.Origin == OriginDispatch {
			d.Deadline = now.Add(c.LaunchGrace)
			if d.Lane == LaneReady { // a review is no further attempt
				counts, err := v.CountsOf(t)
				if err != nil {
					return Decision{}, err
				}
				if g := c.Limits.gaveUp(t, counts, t.LastError); g != nil {
					return decided(t.ID, c.Limits.on(event(t.ID, 0, g))), nil
				}
			}
		}
		if c.Origin == OriginDispatch {
			return decided(t.ID, c.Limits.on(event(t.ID, 0, d))), nil
		}
		return decided(t.ID, event(t.ID, 0, d)), nil
	}
}

func by(r *Run) string {
	switch {
	case r.Holder != "":
		return " by " + r.Holder
	case r.Origin == OriginDispatch:
		return " by the dispatcher"
	}
	return ""
}

func colon(s string) string {
	if s == "" {
		return ""
	}
	return ": " + s
}

// Registration is a supervisor's report of itself.
type Registration struct {
	Task        string
	Run         uint64
	Worker      eventlog.Process
	OutputInode string
	Token       string
	Workspace   string
}

// Register puts a supervisor's identity on record. Only after it succeeded may
// the command start (I3). The same identity again is success.
func Register(g Registration) Decider {
	return func(v View, now eventlog.Time) (Decision, error) {
		_, open, stop, err := fence(v, "register", g.Task, Writer{Card: g.Task, Run: g.Run})
		if err != nil || stop.Refused != nil {
			return stop, err
		}
		if open.HasWorker {
			if open.PID == g.Worker.PID && open.Fingerprint == g.Worker.Fingerprint && open.Token == g.Token {
				return already(g.Task, "registered before"), nil
			}
			return Decision{}, refuse(ErrFenced, g.Task, "run %d has another supervisor, pid %d", g.Run, open.PID)
		}
		if open.Origin == OriginManual {
			return Decision{}, refuse(ErrFenced, g.Task, "run %d is a manual claim and takes no supervisor", g.Run)
		}
		if open.EndRequestedAt != 0 {
			return Decision{}, refuse(ErrFenced, g.Task, "run %d was asked to end (%s)", g.Run, open.EndReason)
		}
		return decided(g.Task, event(g.Task, g.Run, &eventlog.Spawned{
			PID: g.Worker.PID, Fingerprint: g.Worker.Fingerprint, Machine: g.Worker.Machine, PIDNS: g.Worker.PIDNS,
			OutputInode: g.OutputInode, Token: g.Token, Workspace: g.Workspace, ClaimExpires: now.Add(open.Lease()),
		})), nil
	}
}

// Extend moves the lease of a worker that was proven alive; a lease that runs
// out proves nothing by itself.
func Extend(run uint64) Decider {
	return func(v View, now eventlog.Time) (Decision, error) {
		r, err := v.Run(run)
		if err != nil || r == nil || !r.Open() || !r.HasWorker || r.EndRequestedAt != 0 || !r.LeaseOver(now) {
			return Decision{}, err
		}
		return decided(r.Task, event(r.Task, run, &eventlog.ClaimExtended{
			WorkerPID: r.PID, ClaimExpiresWas: r.ClaimExpires, ClaimExpiresNow: now.Add(r.Lease()), Reason: "pid_alive",
		})), nil
	}
}

// LeaseOver tells whether the lease has run out by now. A lease that lies
// further in the future than it can last was written by another clock and
// counts as run out: harmless, since no lease alone releases a worker.
func (r *Run) LeaseOver(now eventlog.Time) bool {
	return now >= r.ClaimExpires || r.ClaimExpires > now.Add(r.Lease()+ClockSlack)
}

// LeasePast tells whether the lease has run out beyond doubt. It alone may
// release a worker that cannot be looked at from here, so a lease written by
// another clock has to pass like any other.
func (r *Run) LeasePast(now eventlog.Time) bool { return now >= r.ClaimExpires }
