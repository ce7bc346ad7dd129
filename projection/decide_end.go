package projection

import (
	"fmt"
	"strings"
	"time"

	"kanlog/eventlog"
)

// ExitRecord is what a supervisor wrote about how its command ended.
type ExitRecord struct {
	Cause    string // one of the Cause words
	ExitCode *int64
	Signal   string
	Error    string
	// CoreDumped: the signal left a core.
	CoreDumped bool
	// OOMKill: the kernel's out-of-memory killer ended a process meanwhile. It
	// says where, one of the OOM words or, of a later program, another.
	OOMKill string
	// Infrastructure: it never started because the host refused (no room, no
	// process, a busy store); not the card's fault.
	Infrastructure bool
}

// Where the kernel's out-of-memory killer was at work.
const (
	OOMInGroup = "cgroup"
	OOMOnHost  = "host"
)

// outOfMemory says it in words. The kernel counts whom it ends and names nobody,
// so neither do we.
func (x *ExitRecord) outOfMemory() string {
	const killer = "; meanwhile the kernel's out-of-memory killer "
	switch {
	case x == nil || x.OOMKill == "":
		return ""
	case x.OOMKill == OOMInGroup:
		return killer + "ended a process in its control group"
	case x.OOMKill == OOMOnHost:
		return killer + "ended a process on this host"
	}
	return killer + "was at work"
}

// Ending is what is known about a run of which nothing is left.
type Ending struct {
	Run uint64
	// Record is the run's exit record, nil if there is none.
	Record *ExitRecord
	// OtherBoot: it was another boot, or a PID namespace that is gone.
	OtherBoot bool
	// Unproven: it cannot be looked at from here and its lease ran out.
	Unproven bool
	// Evidence says in words how the absence is known.
	Evidence string
}

// BookEnd books how a run ended. It is the only way in which a run that had a
// worker is closed other than by an answer or by force, and whoever notices
// the end calls it: the supervisor, the tick that started it, a later tick.
// Booking twice changes nothing.
func BookEnd(e Ending, l Limits) Decider {
	return func(v View, now eventlog.Time) (Decision, error) {
		r, err := v.Run(e.Run)
		if err != nil {
			return Decision{}, err
		}
		if r == nil {
			return Decision{}, &refusal{ErrNotFound, fmt.Sprintf("no such run: %d", e.Run)}
		}
		t, err := v.MustTask(r.Task)
		if err != nil {
			return Decision{}, err
		}
		if !r.HasWorker {
			if r.Open() {
				return Decision{}, refuse(ErrState, t.ID, "run %d has no worker whose end could be booked", r.ID)
			}
			return already(t.ID, "booked before"), nil
		}
		if e.Unproven && !r.LeasePast(now) {
			// It moved its lease since somebody looked.
			return already(t.ID, fmt.Sprintf("run %d has a lease until %s", r.ID, r.ClaimExpires)), nil
		}
		if !r.Open() {
			more, err := afterlife(v, t, r, now)
			return decided(t.ID, append([]eventlog.Event{event(t.ID, r.ID, closedEnd(r, e))}, more...)...), err
		}
		end := eventlog.End{Evidence: cut(e.Evidence, MaxError)}
		if e.Record != nil {
			end.ExitCode, end.Signal = e.Record.ExitCode, e.Record.Signal
		}
		if r.EndRequestedAt != 0 && !e.byItself(r) {
			return requested(v, t, r, e, end, l, now)
		}
		return l.book(v, t, r, e, end, now)
	}
}

// byItself tells whether a run ended for its own reasons, although its end was
// requested: its supervisor was killed and only what it left was ended, or its
// command had ended before anybody told it to, while others of its tree were
// still being ended. What an operator wished for holds all the same.
func (e Ending) byItself(r *Run) bool {
	switch r.EndReason {
	case EndOrphaned:
		return true
	case EndMaxRuntime, EndHeartbeatStale:
		return e.Record != nil && (e.Record.Cause == CauseExited || e.Record.Cause == CauseSignaled)
	}
	return false
}

// closedEnd is the end of a process whose run was closed before by an answer.
func closedEnd(r *Run, e Ending) eventlog.Payload {
	var code *int64
	signal := ""
	if e.Record != nil {
		code, signal = e.Record.ExitCode, e.Record.Signal
	}
	if r.EndRequestedAt != 0 {
		return &eventlog.TerminalWorkerReaped{ExitCode: code, Signal: signal, Evidence: e.inWords()}
	}
	return &eventlog.Exited{ExitCode: code, Signal: signal, Evidence: e.inWords()}
}

// inWords is the evidence for an event, which says so if it is no proof.
func (e Ending) inWords() string {
	if e.Unproven {
		return cut("unproven, its lease ran out: "+e.Evidence, MaxError)
	}
	return cut(e.Evidence, MaxError)
}

// requested is the outcome that was decided when the end was requested.
func requested(v View, t *Task, r *Run, e Ending, end eventlog.End, l Limits, now eventlog.Time) (Decision, error) {
	to, err := statusWithout(v, t, now, "")
	if err != nil {
		return Decision{}, err
	}
	end.To, end.Evidence = to, e.inWords()
	switch r.EndReason {
	case EndMaxRuntime:
		c, err := countsWith(v, t, r, Run{Outcome: OutTimedOut, Counted: true})
		if err != nil {
			return Decision{}, err
		}
		end.Error = "exceeded its time: " + r.EndDetail
		end.RetryAt = l.retryAt(now, c.Failures, r.ID)
		d := &eventlog.TimedOut{
			End: end, LimitSeconds: r.MaxRuntimeSeconds, LimitSource: runtimeSource(t, r),
			ElapsedSeconds: int64(r.EndRequestedAt.Since(r.SpawnedAt) / time.Second),
		}
		return l.withGaveUp(t, c, end.Error, event(t.ID, r.ID, d)), nil
	case EndHeartbeatStale:
		c, err := countsWith(v, t, r, Run{Outcome: OutStale})
		if err != nil {
			return Decision{}, err
		}
		end.Error = "its heartbeats stopped: " + r.EndDetail
		end.RetryAt = l.retryAt(now, c.Stale, r.ID)
		d := &eventlog.Stale{End: end, SilentSeconds: int64(r.EndRequestedAt.Since(r.LastHeartbeat) / time.Second)}
		return l.withGaveUp(t, c, end.Error, event(t.ID, r.ID, d)), nil
	}
	return closeAs(v, t, r, r.EndReason, r.EndDetail, now, eventlog.Reclaimed{
		Reason: r.EndReason + colon(r.EndDetail), Unproven: e.Unproven, Evidence: end.Evidence, ExitCode: end.ExitCode, Signal: end.Signal,
	})
}

// runtimeSource says whose limit ended a run.
func runtimeSource(t *Task, r *Run) string {
	if t.MaxRuntimeSeconds == r.MaxRuntimeSeconds {
		return "task"
	}
	return "profile"
}

// book is the one classifier of ends that nobody asked for.
func (l Limits) book(v View, t *Task, r *Run, e Ending, end eventlog.End, now eventlog.Time) (Decision, error) {
	to, err := statusWithout(v, t, now, "")
	if err != nil {
		return Decision{}, err
	}
	end.To = to
	counts := func(as Run) (Counts, error) { return countsWith(v, t, r, as) }
	rec := e.Record
	interrupted := func(reason string) (Decision, error) {
		d := eventlog.Reclaimed{Reason: reason, To: to, Interrupted: true, Unproven: e.Unproven, Evidence: end.Evidence, ExitCode: end.ExitCode, Signal: end.Signal}
		return l.interrupted(v, t, r, d)
	}
	switch {
	case rec != nil && rec.Cause == CauseTerminated:
		return interrupted("interrupted: the supervisor was told to stop")
	case rec != nil && (rec.Cause == CauseStartFailed || rec.Cause == CauseNeverStarted):
		end.Error = cut(or(rec.Error, "the command never started"), MaxError)
		return l.spawnFailed(v, t, r, end, rec.Infrastructure, now)
	case rec == nil && e.Unproven:
		return interrupted("interrupted: on another machine or in another PID namespace, and its lease ran out")
	case rec == nil && e.OtherBoot:
		return interrupted("interrupted: " + or(e.Evidence, "another boot"))
	case rec == nil:
		end.Error = "ended without a trace: " + or(e.Evidence, "nothing of the run is left")
	case rec.Signal != "" && rec.CoreDumped:
		end.Error = "ended by signal " + rec.Signal + " (core dumped)"
	case rec.Signal != "":
		end.Error = "ended by signal " + rec.Signal
	case rec.ExitCode == nil:
		end.Error = "ended, but its exit record holds neither a code nor a signal"
	default:
		end.Error = fmt.Sprintf("exited with %d", *rec.ExitCode)
	}
	end.Error += rec.outOfMemory()
	code := int64(-1)
	if rec != nil && rec.ExitCode != nil && rec.Signal == "" {
		code = *rec.ExitCode
	}
	done := code == 0 && to != Todo // not before what it was built on
	switch {
	case done && r.OnCleanExit == CleanComplete:
		return completed(v, t, r.ID, &eventlog.Completed{By: byCleanExit, ExitCode: end.ExitCode, Reviewed: t.ReviewedRun}, now)
	case done && r.OnCleanExit == CleanReview && r.Lane == LaneReady:
		return decided(t.ID, event(t.ID, r.ID, &eventlog.ReviewRequested{
			By: byCleanExit, ExitCode: end.ExitCode, Reviewer: or(t.Reviewer, r.Reviewer),
		})), nil
	case code == 0:
		end.Error = "exited with 0 without an answer" + r.answers()
		if !done {
			end.Error += "; it cannot be done yet, since it waits for another card (block --kind dependency says so)"
		}
		c, err := counts(Run{Outcome: OutCrashed, Violation: true})
		if err != nil {
			return Decision{}, err
		}
		end.RetryAt = l.retryAt(now, c.Violations, r.ID)
		return l.withGaveUp(t, c, end.Error, event(t.ID, r.ID, &eventlog.ProtocolViolation{End: end})), nil
	case code == ExitTryLater:
		end.Error = "exited with 75: try later" + rec.outOfMemory()
		c, err := counts(Run{Outcome: OutRateLimited})
		if err != nil {
			return Decision{}, err
		}
		if l.RateLimitCooldown > 0 {
			end.RetryAt = now.Add(l.RateLimitCooldown)
		}
		return l.withGaveUp(t, c, end.Error, event(t.ID, r.ID, &eventlog.RateLimited{End: end})), nil
	}
	c, err := counts(Run{Outcome: OutCrashed, Counted: true})
	if err != nil {
		return Decision{}, err
	}
	if code == ExitFinal {
		end.Error = "exited with 78: it can never work" + rec.outOfMemory()
		return decided(t.ID, l.on(event(t.ID, r.ID, &eventlog.Crashed{End: end, Final: true})),
			event(t.ID, r.ID, &eventlog.GaveUp{Budget: "final", Failures: c.Failures, Limit: 1, LimitSource: "built-in", Sticky: true, Reason: end.Error})), nil
	}
	end.RetryAt = l.retryAt(now, c.Failures, r.ID)
	return l.withGaveUp(t, c, end.Error, event(t.ID, r.ID, &eventlog.Crashed{End: end})), nil
}

// answers names the verbs that would have been an answer.
func (r *Run) answers() string {
	if r.Lane == LaneReview {
		return " (approve, request-changes, block, fail or defer)"
	}
	return " (complete, request-review, block, fail or defer)"
}

func (l Limits) interrupted(v View, t *Task, r *Run, d eventlog.Reclaimed) (Decision, error) {
	c, err := countsWith(v, t, r, Run{Outcome: OutReclaimed, Interrupted: true})
	if err != nil {
		return Decision{}, err
	}
	return l.withGaveUp(t, c, d.Reason, event(t.ID, r.ID, &d)), nil
}

func (l Limits) spawnFailed(v View, t *Task, r *Run, end eventlog.End, infrastructure bool, now eventlog.Time) (Decision, error) {
	c, err := countsWith(v, t, r, Run{Outcome: OutSpawnFailed, Counted: !infrastructure})
	if err != nil {
		return Decision{}, err
	}
	end.RetryAt = l.retryAt(now, max(1, c.Failures), r.ID)
	if infrastructure && l.RateLimitCooldown > 0 {
		// A full host is no better off for being asked again at once.
		end.RetryAt = now.Add(l.RateLimitCooldown)
	}
	return l.withGaveUp(t, c, end.Error, event(t.ID, r.ID, &eventlog.SpawnFailed{End: end, Infrastructure: infrastructure})), nil
}

// CutOff is what is known of a dispatched claim whose supervisor never
// registered.
type CutOff struct {
	Run uint64
	// Interrupted: the claimer is proven gone. Otherwise the supervisor could
	// not be started or did not report in time, which counts.
	Interrupted bool
	// Infrastructure: the host refused; not counted.
	Infrastructure bool
	Error          string
	Evidence       string
}

// BookCutOff closes a claim that has no worker. It needs no proof that no
// supervisor will come: one that does is refused by the fence.
func BookCutOff(c CutOff, l Limits) Decider {
	return func(v View, now eventlog.Time) (Decision, error) {
		r, err := v.Run(c.Run)
		if err != nil || r == nil || !r.Open() || r.HasWorker || r.Origin == OriginManual {
			return Decision{}, err
		}
		t, err := v.MustTask(r.Task)
		if err != nil {
			return Decision{}, err
		}
		to, err := statusWithout(v, t, now, "")
		if err != nil {
			return Decision{}, err
		}
		if c.Interrupted {
			return l.interrupted(v, t, r, eventlog.Reclaimed{
				Reason: "interrupted: the dispatcher went away between claim and start", To: to, Interrupted: true, Evidence: cut(c.Evidence, MaxError),
			})
		}
		end := eventlog.End{Error: cut(strings.TrimSpace(c.Error), MaxError), Evidence: cut(c.Evidence, MaxError), To: to}
		return l.spawnFailed(v, t, r, end, c.Infrastructure, now)
	}
}

// ExpireManual ends a manual claim whose lease ran out. The card is held, not
// started: somebody may still be working on it.
func ExpireManual(run uint64) Decider {
	return func(v View, now eventlog.Time) (Decision, error) {
		r, err := v.Run(run)
		if err != nil || r == nil || !r.Open() || r.HasWorker || r.Origin != OriginManual || !r.LeaseOver(now) {
			return Decision{}, err
		}
		reason := fmt.Sprintf("the manual claim%s (run %d) ran out", by(r), r.ID)
		return decided(r.Task,
			event(r.Task, run, &eventlog.Reclaimed{Reason: "manual claim ran out", To: Blocked, Evidence: "lease of " + r.Lease().String() + " ran out"}),
			event(r.Task, 0, &eventlog.Blocked{Reason: reason, BlockKind: NeedsInput})), nil
	}
}

func or(s, otherwise string) string {
	if s == "" {
		return otherwise
	}
	return s
}
