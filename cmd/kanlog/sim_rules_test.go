package main

import (
	"fmt"
	"slices"
	"strings"
	"syscall"
	"time"

	"kanlog/eventlog"
	"kanlog/projection"
)

// simRules are what the events of a history must keep to beside the invariants of
// simAudit: who is counted, who is ended, and when. Each was added since a
// deliberate bug (testdata/mutants) went through the simulation unseen. They
// follow the events and the machine, not the tables.
type simRules struct {
	holds map[string]simHold
	spent map[string]bool // gave up, and not by the plain limit of failures
	runs  map[uint64]*simRunRules
	jumps int // of the clock
	// before holds the dispatches that began before its last jump: each has read
	// its time once.
	before []*simDispatcher
}

func (r *simRules) jumped(now []*simDispatcher) { r.jumps, r.before = r.jumps+1, slices.Clone(now) }

type simHold struct{ since, until eventlog.Time }

// simRunRules is what is known of one run.
type simRunRules struct {
	assignee string
	claimer  *simDispatcher
	epoch    string // of the machine when its supervisor registered
	asked    bool
	askedAt  eventlog.Time // what the graces count from
	jumps    int           // of the clock, when it was asked to end
}

func (s *sim) ruleRun(run uint64) *simRunRules {
	if s.rules.runs == nil {
		s.rules.holds, s.rules.spent, s.rules.runs = map[string]simHold{}, map[string]bool{}, map[uint64]*simRunRules{}
	}
	if s.rules.runs[run] == nil {
		s.rules.runs[run] = &simRunRules{}
	}
	return s.rules.runs[run]
}

// sessionGivenAway tells whether another run with a worker on record had the same
// session number before. Who is known by that number alone would be taken for
// both, which is accepted (see Prober.sessionOf in package proc).
func (s *sim) sessionGivenAway(p *simProc) (given bool) {
	_ = s.store.View(func(v projection.View) error {
		active, err := v.Active()
		for _, r := range active {
			given = given || r.ID != p.run && r.PID == p.session
		}
		return err
	})
	return given
}

// epoch tells a namespace from what it was before a reboot.
func (m *simMachine) epoch(ns string) string { return fmt.Sprint(m.boot, ns, m.first[ns]) }

// ruled checks one event just after its commit, and after audited.
func (s *sim) ruled(e eventlog.Event, run uint64, at eventlog.Time, actor string) {
	card := e.Task
	known := s.ruleRun(run)
	hold := func(until eventlog.Time) {
		if until != 0 {
			s.rules.holds[card] = simHold{at, until}
		}
	}
	// backOff: what counts as a failure is not tried again at once.
	backOff := func(until eventlog.Time) {
		hold(until)
		if wait := time.Duration(until-at) * time.Microsecond; wait < s.policy.Limits.RetryBackoff {
			s.fail("%s of card %s is tried again after %s", e.Kind(), card, wait)
		}
	}
	switch d := e.Data.(type) {
	case *eventlog.Created:
		s.ruledAside(e, actor)
	case *eventlog.Claimed:
		s.ruledClaim(card, run, d, at)
		known.assignee, known.claimer = d.Assignee, s.dispatcherOf(actor)
		delete(s.rules.holds, card)
	case *eventlog.Spawned:
		for _, p := range s.m.sorted() {
			// One that could not read what it is has no epoch on record either.
			if p.kind == "supervisor" && p.run == run && !p.ended && strings.Contains(d.Fingerprint, "|") {
				known.epoch = s.m.epoch(p.ns)
			}
		}
	case *eventlog.TerminationRequested:
		s.ruledRequest(card, run, d.Reason)
	case *eventlog.Crashed:
		if !d.Final {
			backOff(d.RetryAt)
		}
		if s.records[run] == nil && known.epoch != "" && known.epoch != s.m.epoch("a") && known.epoch != s.m.epoch("b") {
			s.fail("run %d of card %s went with its machine or namespace, and is booked as crashed", run, card)
		}
	case *eventlog.TimedOut:
		backOff(d.RetryAt)
	case *eventlog.Failed:
		backOff(d.RetryAt)
	case *eventlog.Deferred:
		if e.Run == 0 {
			delete(s.rules.holds, card) // it is due then, and not held
		} else {
			hold(d.RetryAt)
		}
	case *eventlog.ProtocolViolation:
		hold(d.RetryAt)
	case *eventlog.RateLimited:
		hold(d.RetryAt)
	case *eventlog.Stale:
		hold(d.RetryAt)
	case *eventlog.SpawnFailed:
		hold(d.RetryAt)
	case *eventlog.Reclaimed:
		if c := known.claimer; d.Interrupted && strings.Contains(d.Reason, "dispatcher went away") && c != nil && !c.proc.ended {
			s.fail("run %d of card %s is cut off, but dispatch %d, which claimed it, is there", run, card, c.n)
		}
	case *eventlog.GaveUp:
		delete(s.rules.holds, card)
		s.rules.spent[card] = d.Budget != "failures"
		if failed := s.audit.failures[card]; d.Budget == "failures" && failed < s.retriesOf(card) {
			s.fail("card %s gave up for its failures, which are %d of %d", card, failed, s.retriesOf(card))
		}
	case *eventlog.Blocked, *eventlog.Archived, *eventlog.ReviewRequested, *eventlog.ChangesRequested:
		delete(s.rules.holds, card)
	case *eventlog.Unblocked, *eventlog.Completed:
		delete(s.rules.spent, card)
	case *eventlog.Reopened, *eventlog.Retracted:
		delete(s.rules.spent, card)
		delete(s.rules.holds, card)
	case *eventlog.Promoted:
		if d.Reason == "by_hand" {
			delete(s.rules.spent, card)
			delete(s.rules.holds, card)
		}
	}
}

func (s *sim) retriesOf(card string) int64 {
	if n := s.audit.retries[card]; n != 0 {
		return n
	}
	return s.policy.Limits.FailureLimit
}

func (s *sim) dispatcherOf(actor string) *simDispatcher {
	for _, d := range s.dispatchers {
		if actor == fmt.Sprintf("dispatcher:host/%d", d.n) {
			return d
		}
	}
	return nil
}

// ruledClaim checks a claim by a dispatcher or a pull worker against what the claim itself has to
// look at again.
func (s *sim) ruledClaim(card string, run uint64, d *eventlog.Claimed, at eventlog.Time) {
	if d.Origin == projection.OriginManual {
		return
	}
	if h := s.rules.holds[card]; h.since <= at.Add(projection.ClockSlack) && at < h.until {
		s.fail("card %s is held until %s, and run %d begins", card, h.until, run)
	}
	if s.rules.spent[card] {
		s.fail("card %s gave up for good, and run %d begins", card, run)
	}
	if d.Origin == projection.OriginWork {
		return // no cap holds a person
	}
	total, mine := 0, 0
	for other, open := range s.audit.open {
		owner := max(open, s.audit.worker[other])
		if owner == 0 {
			continue
		}
		total++
		if owner == run || s.ruleRun(owner).assignee == d.Assignee {
			mine++
		}
	}
	if most := s.policy.MaxInProgress; total > most {
		s.fail("run %d is the %dth at once, of at most %d", run, total, most)
	}
	if most := s.policy.Profiles[d.Assignee].MaxInProgress; most > 0 && mine > most {
		s.fail("run %d is the %dth of %s at once, of at most %d", run, mine, d.Assignee, most)
	}
}

// ruledRequest checks that a tick ends nobody who gave no reason for it, and that
// the graces count from the first request.
func (s *sim) ruledRequest(card string, run uint64, reason string) {
	known, r := s.ruleRun(run), s.run(run)
	if known.asked && r.EndRequestedAt != known.askedAt {
		s.fail("the grace of run %d of card %s begins anew", run, card)
	}
	if !known.asked {
		known.asked, known.askedAt, known.jumps = true, r.EndRequestedAt, s.rules.jumps
	}
	since := func(t eventlog.Time) time.Duration { return r.EndRequestedAt.Since(t) }
	open := s.audit.open[card] == run
	wrong := false
	switch reason {
	case projection.EndMaxRuntime:
		wrong = !open || since(r.SpawnedAt) < time.Duration(r.MaxRuntimeSeconds)*time.Second
	case projection.EndHeartbeatStale:
		wrong = !open || since(r.LastHeartbeat) < s.policy.Limits.HeartbeatStale
	case projection.EndTerminalGrace:
		wrong = open || since(r.EndedAt) < s.policy.TerminalGrace
	}
	if wrong {
		s.fail("run %d of card %s is ended (%s): open %t, started %s, last beat %s, ended %s, now %s",
			run, card, reason, open, r.SpawnedAt, r.LastHeartbeat, r.EndedAt, r.EndRequestedAt)
	}
}

// ruledKill checks that nobody is killed who was not asked first, and given the
// time to obey.
func (s *sim) ruledKill(p *simProc, sig syscall.Signal) {
	if sig != syscall.SIGKILL {
		return
	}
	known, grace := s.ruleRun(s.signalling), s.policy.KillGrace
	if p.kind == "supervisor" {
		grace *= 2 // one of them is for what it does to its tree
	}
	fooled := slices.ContainsFunc(s.rules.before, func(d *simDispatcher) bool { return !d.over && !d.dead })
	// While the clock jumps nobody can tell.
	if !known.asked || !fooled && known.jumps == s.rules.jumps && s.now().Since(known.askedAt) < grace {
		s.fail("%s %d of run %d is killed, and was asked to end at %s", p.kind, p.pid, p.run, known.askedAt)
	}
}

// ruledAside checks that a worker creates cards only while its run is its own, or
// after its own answer.
func (s *sim) ruledAside(e eventlog.Event, actor string) {
	card, run, ok := strings.Cut(strings.TrimPrefix(actor, "worker:"), "/")
	if !ok || !strings.HasPrefix(actor, "worker:") {
		return
	}
	t := s.task(card)
	if fmt.Sprint(t.LastRun) == run {
		switch s.run(t.LastRun).Outcome {
		case "", projection.OutCompleted, projection.OutBlocked, projection.OutFailed, projection.OutDeferred, projection.OutReviewRequested, projection.OutChangesRequested:
			return
		}
	}
	s.fail("card %s is created by run %s of card %s, which was taken away", e.Task, run, card)
}
