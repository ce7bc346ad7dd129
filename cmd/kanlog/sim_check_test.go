package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"kanlog/eventlog"
	"kanlog/projection"
	"kanlog/tick"
)

func (s *sim) task(id string) (t *projection.Task) {
	_ = s.store.View(func(v projection.View) (err error) { t, err = v.Task(id); return err })
	return t
}

func (s *sim) run(id uint64) (r *projection.Run) {
	_ = s.store.View(func(v projection.View) (err error) { r, err = v.Run(id); return err })
	return r
}

// check holds the machine against the board: after every step.
func (s *sim) check() {
	runs := map[string]uint64{}
	for _, p := range s.m.sorted() {
		if p.ended || p.kind != "command" && p.kind != "descendant" || s.forced[p.run] {
			continue
		}
		// I3: no card ever has processes of two runs.
		if other, ok := runs[p.card]; ok && other != p.run {
			s.fail("card %s has processes of runs %d and %d", p.card, other, p.run)
			return
		}
		runs[p.card] = p.run
	}
	for _, card := range slices.Sorted(maps.Keys(runs)) {
		// I6: a claim is never released beside a process of its run.
		t, r := s.task(card), s.run(runs[card])
		if r == nil || !r.HasWorker || t.Worker != r.ID {
			s.fail("run %d of card %s has live processes and no worker on record", runs[card], card)
			return
		}
	}
}

// signalled is told of every signal that the program sends.
func (s *sim) signalled(p *simProc, sig syscall.Signal) {
	s.note("  %s reaches %s %s %d of run %d", sig, p.kind, p.ns, p.pid, p.run)
	if r := s.run(s.signalling); r != nil && p.run != s.signalling && p.run != 0 && p.token == "" && p.holds == "" && p.session == r.PID && p.session != p.pid {
		// Not promised (docs/reliability.md): it left nothing but its session, and
		// the session's number has been given away since.
		return
	}
	// I5: no stranger is ever signalled.
	if s.signalling == 0 || p.run != s.signalling || p.kind == "dispatcher" || p.kind == "stranger" {
		s.fail("%s for run %d reached %s %s %d of run %d", sig, s.signalling, p.kind, p.ns, p.pid, p.run)
	}
	s.ruledKill(p, sig)
}

// simAudit follows the events by itself, without the fold.
type simAudit struct {
	open      map[string]uint64 // card -> its open run
	worker    map[string]uint64 // card -> the run with a worker on record
	completed map[string]int
	failures  map[string]int64 // counted since the last fresh start
	retries   map[string]int64
	assignee  map[string]string
	stopped   map[string]bool   // cancelled or archived, and nobody said otherwise
	reviewed  map[string]uint64 // card -> the run whose work is under review
	kinds     map[eventlog.Kind]int
	reasons   map[string]int // of requested ends
	paused    bool           // the board
}

func newSimAudit() simAudit {
	return simAudit{
		open: map[string]uint64{}, worker: map[string]uint64{}, completed: map[string]int{}, failures: map[string]int64{},
		retries: map[string]int64{}, assignee: map[string]string{}, stopped: map[string]bool{}, reviewed: map[string]uint64{},
		kinds: map[eventlog.Kind]int{}, reasons: map[string]int{},
	}
}

// audited checks one event as it is appended.
func (s *sim) audited(e eventlog.Event, run uint64, actor string) {
	a, card := &s.audit, e.Task
	a.kinds[e.Kind()]++
	closes := func() {
		if run != 0 && a.open[card] == run {
			a.open[card] = 0
		}
	}
	gone := func() {
		if a.worker[card] == run {
			a.worker[card] = 0
		}
	}
	counted := func() { a.failures[card]++ }
	fresh := func() { a.failures[card] = 0 }
	switch d := e.Data.(type) {
	case *eventlog.Created:
		s.cards = append(s.cards, card)
		a.retries[card], a.assignee[card] = d.MaxRetries, d.Assignee
	case *eventlog.Edited:
		if d.MaxRetries != nil {
			a.retries[card] = *d.MaxRetries
		}
	case *eventlog.Claimed:
		// I2: no run is opened beside another, or beside a worker on record.
		if a.open[card] != 0 || a.worker[card] != 0 {
			s.fail("run %d of card %s is opened beside run %d, worker of %d", run, card, a.open[card], a.worker[card])
		}
		if lane := map[bool]string{true: projection.LaneReady, false: projection.LaneReview}[a.reviewed[card] == 0]; d.Lane != lane || d.Reviews != a.reviewed[card] {
			s.fail("run %d of card %s is in lane %s and reviews run %d; under review is run %d", run, card, d.Lane, d.Reviews, a.reviewed[card])
		}
		if a.stopped[card] {
			s.fail("card %s was cancelled or archived, and run %d begins", card, run)
		}
		limit := a.retries[card]
		if limit == 0 {
			limit = s.policy.Limits.FailureLimit
		}
		if a.paused && d.Origin == projection.OriginDispatch {
			s.fail("the board is paused, and run %d of card %s begins", run, card)
		}
		// A review is no further attempt: what was handed in is looked at.
		if d.Origin == projection.OriginDispatch && d.Lane == projection.LaneReady && a.failures[card] >= limit {
			s.fail("card %s failed %d times of %d, and run %d begins", card, a.failures[card], limit, run)
		}
		a.open[card] = run
	case *eventlog.Spawned:
		if a.open[card] != run || a.worker[card] != 0 {
			s.fail("a supervisor registers for run %d of card %s, whose open run is %d", run, card, a.open[card])
		}
		a.worker[card] = run
	case *eventlog.Completed:
		if a.completed[card]++; a.completed[card] > 1 {
			s.fail("card %s is completed a second time", card)
		}
		if d.Reviewed != a.reviewed[card] {
			s.fail("card %s is completed (%s) as the work of run %d, and under review is run %d", card, d.By, d.Reviewed, a.reviewed[card])
		}
		a.reviewed[card] = 0
		closes()
		fresh()
		if d.By == "clean_exit" {
			gone()
		}
	case *eventlog.ReviewRequested:
		if a.reviewed[card] != 0 {
			s.fail("run %d of card %s hands in work beside that of run %d", run, card, a.reviewed[card])
		}
		a.reviewed[card] = run
		closes()
		if d.By == "clean_exit" {
			gone()
		}
	case *eventlog.ChangesRequested:
		if d.Reviewed != a.reviewed[card] {
			s.fail("the work of run %d of card %s is sent back, and under review is run %d", d.Reviewed, card, a.reviewed[card])
		}
		if e.Run == 0 {
			fresh() // a person asks for another attempt
		}
		a.reviewed[card] = 0
		closes()
	case *eventlog.Reopened:
		if a.open[card] != 0 {
			s.fail("card %s is reopened beside its open run %d", card, a.open[card])
		}
		a.stopped[card] = false
		a.completed[card], a.reviewed[card] = 0, 0
		fresh()
	case *eventlog.Retracted:
		if running := d.To == projection.Running; running != (a.open[card] != 0) {
			s.fail("card %s is retracted to %s, and its open run is %d", card, d.To, a.open[card])
		}
		a.completed[card], a.reviewed[card] = 0, 0
		fresh()
	case *eventlog.Promoted:
		if d.Reason == "by_hand" {
			a.stopped[card] = false
			fresh()
		}
	case *eventlog.Failed:
		closes()
		counted()
	case *eventlog.Deferred:
		closes()
	case *eventlog.Blocked:
		closes()
	case *eventlog.Crashed, *eventlog.TimedOut:
		closes()
		gone()
		counted()
	case *eventlog.SpawnFailed:
		closes()
		gone()
		if !d.Infrastructure {
			counted()
		}
	case *eventlog.ProtocolViolation, *eventlog.RateLimited, *eventlog.Stale:
		closes()
		gone()
	case *eventlog.Reclaimed:
		closes()
		gone()
		if !d.Interrupted {
			fresh()
		}
		s.forced[run] = s.forced[run] || d.Forced
	case *eventlog.Exited:
		gone()
		s.forced[run] = s.forced[run] || strings.HasPrefix(d.Evidence, "forced")
	case *eventlog.TerminalWorkerReaped:
		gone()
	case *eventlog.TerminationRequested:
		a.reasons[d.Reason]++
		switch d.Reason {
		case projection.EndCancel, projection.EndArchive:
			a.stopped[card] = true
		case projection.EndReclaim:
			if d.To != "" {
				a.stopped[card] = false
			}
		}
	case *eventlog.Paused:
		a.paused = true
	case *eventlog.Resumed:
		a.paused = false
	case *eventlog.Archived:
		a.stopped[card], a.reviewed[card] = true, 0
	case *eventlog.Unblocked:
		a.stopped[card] = false
		fresh()
	case *eventlog.Assigned:
		if a.assignee[card] != d.Assignee {
			fresh()
		}
		a.assignee[card] = d.Assignee
	}
	// A worker writes about its own card only as its open run.
	if strings.HasPrefix(actor, "worker:"+card+"/") && e.Kind() != eventlog.KindFenced && e.Kind() != eventlog.KindGaveUp && e.Kind() != eventlog.KindBlockLoop && e.Kind() != eventlog.KindPromoted {
		if actor != fmt.Sprintf("worker:%s/%d", card, e.Run) {
			s.fail("%s of card %s by %s is booked for run %d", e.Kind(), card, actor, e.Run)
		}
	}
}

// settle lets everybody go on with nothing going wrong any more, until every
// card has reached an end or a stated hold.
func (s *sim) settle() {
	s.fair = true
	s.m.noise = 0
	s.note("from here on nothing goes wrong")
	if _, err := s.update("operator:ann", s.now(), projection.ResumeBoard(projection.Writer{})); err != nil {
		s.fail("resume: %v", err)
	}
	for _, p := range s.m.sorted() {
		p.stopped = false
	}
	for round := range 120 {
		for range 2000 {
			if !s.turn() {
				break
			}
			synctest.Wait()
			if s.check(); s.failure != "" {
				return
			}
		}
		if s.settled() {
			return
		}
		if round < 80 {
			s.advance(61 * time.Second)
		} else {
			s.advance(30 * time.Minute) // a clock that went back has to catch up
		}
		if ns := []string{"a", "b"}[round%2]; ns == "a" || s.second {
			s.newTick(ns)
		}
		synctest.Wait()
	}
	for _, id := range s.cards {
		if t := s.task(id); !s.rests(t) {
			s.fail("with fair ticks card %s is still %s (run %d, worker of %d, held until %s)", id, t.Status, t.CurrentRun, t.Worker, t.HoldUntil)
		}
	}
}

// turn lets everybody who can go on do one step; it tells whether anybody did
// more than wait.
func (s *sim) turn() bool {
	did := false
	for s.release() {
		did = true
		synctest.Wait()
	}
	for _, p := range s.m.sorted() {
		switch {
		case p.ended || p.kind == "stranger" || p.kind == "dispatcher":
			continue
		case p.kind == "descendant" && p.life < 0, p.kind == "command" && len(p.work.plan) > 0 && p.work.plan[0] == "hang" && !p.term:
			continue // lives until somebody ends it
		case p.kind == "supervisor" && p.sv.state == "running" && p.sv.hung:
			continue
		case p.kind == "supervisor" && p.sv.state == "running" && !p.term && !p.sv.command.ended && !(p.sv.ending && s.now() >= p.sv.killAt):
			continue // waits
		case p.kind == "supervisor" && p.sv.state == "running" && p.sv.ending && s.now() < p.sv.killAt && !s.canReap(p):
			continue
		}
		s.act(p)
		did = true
	}
	return did
}

// canReap tells whether a supervisor has something to wait for that has ended,
// or nothing left at all.
func (s *sim) canReap(p *simProc) bool {
	left := false
	for _, c := range s.m.sorted() {
		if s.m.under(c, p) {
			left = true
			if c.ended && c.parent == p {
				return true
			}
		}
	}
	return !left
}

func (s *sim) settled() bool {
	for _, id := range s.cards {
		if !s.rests(s.task(id)) {
			return false
		}
	}
	return true
}

func (s *sim) why(t *projection.Task) (why string) {
	_ = s.store.View(func(v projection.View) (err error) {
		full, err := tick.Full(v, s.policy, tick.Host{}, s.now())
		if err != nil {
			return err
		}
		profiles := map[string]bool{}
		for name := range s.policy.Profiles {
			profiles[name] = true
		}
		why, err = v.Why(t, s.now(), projection.Admission{Profiles: profiles, Full: full})
		return err
	})
	return why
}

// rests tells whether a card has reached an end, or waits for a person or for a
// card that does.
func (s *sim) rests(t *projection.Task) bool {
	if t.Worker != 0 {
		// Held: nobody may signal it or rule it out. That is said, and only a
		// person can go on from there.
		return s.run(t.Worker).DeferredReason != "" || t.Status == projection.Running && s.why(t) != ""
	}
	if t.Status == projection.Running {
		return s.why(t) != ""
	}
	switch t.Status {
	case projection.Ready, projection.Scheduled:
		// No place will be free until a person has looked after those that are
		// held; the card says so.
		return s.heldFull(t.Starter()) && strings.Contains(s.why(t), "neither proven nor ruled out")
	case projection.Review:
		return t.Reviewer == "" // a person's
	case projection.Todo:
		var parents []string
		_ = s.store.View(func(v projection.View) error { parents = v.Parents(t.ID); return nil })
		for _, p := range parents {
			if status := s.task(p).Status; status != projection.Done && status != projection.Archived {
				return s.rests(s.task(p))
			}
		}
		return false
	}
	return true
}

// heldFull tells whether runs that only a person can set free take every place
// that an assignee has.
func (s *sim) heldFull(assignee string) bool {
	total, mine := 0, 0
	_ = s.store.View(func(v projection.View) error {
		active, err := v.Active()
		for _, r := range active {
			if r.DeferredReason == "" {
				continue
			}
			if total++; r.Assignee == assignee {
				mine++
			}
		}
		return err
	})
	most := s.policy.Profiles[assignee].MaxInProgress
	return total >= s.policy.MaxInProgress || most > 0 && mine >= most
}

// simReach is what all histories together came across: a simulation that meets
// no trouble proves nothing.
type simReach struct {
	kinds   map[eventlog.Kind]int
	reasons map[string]int
	forced  int
}

func newReach() *simReach { return &simReach{map[eventlog.Kind]int{}, map[string]int{}, 0} }

func (r *simReach) add(s *sim) {
	for k, n := range s.audit.kinds {
		r.kinds[k] += n
	}
	for k, n := range s.audit.reasons {
		r.reasons[k] += n
	}
	r.forced += len(s.forced)
}

func (r *simReach) report(t *testing.T, count int) {
	var list []string
	for _, k := range eventlog.Kinds() {
		list = append(list, fmt.Sprintf("%s %d", k, r.kinds[k]))
		if r.kinds[k] == 0 && count >= 1000 {
			t.Errorf("no history came across %s", k)
		}
	}
	for _, k := range []string{
		projection.EndReclaim, projection.EndCancel, projection.EndArchive, projection.EndMaxRuntime,
		projection.EndHeartbeatStale, projection.EndTerminalGrace, projection.EndOrphaned, projection.EndReopened,
	} {
		list = append(list, fmt.Sprintf("end by %s %d", k, r.reasons[k]))
		if r.reasons[k] == 0 && count >= 1000 {
			t.Errorf("no history requested an end by %s", k)
		}
	}
	t.Logf("%d histories: %s", count, strings.Join(list, ", "))
}
