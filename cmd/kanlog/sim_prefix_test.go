package main

import (
	"flag"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"kanlog/eventlog"
	"kanlog/proc"
	"kanlog/projection"
	"kanlog/tick"
)

// Every prefix: a kill leaves a shorter log, so that any log, cut after any
// commit, must be a board that can go on. The logs are those that the scenarios
// leave behind, with real processes in them. What follows a cut happens on the
// machine of the simulation, started anew: the identities on record fit no
// process, every exit record is lost, and fair ticks with workers that complete
// must bring every card to its end, each with one start at most.

var prefixAll = flag.Bool("prefix.all", false, "cut the logs of the scenarios after every commit, not at a few places")

// prefixSample is how many cuts of one log are tried without -prefix.all, and
// prefixSampleLong of one that takes long to fold.
const (
	prefixSample     = 12
	prefixSampleLong = 5
	prefixLong       = 400 // commits
)

// PrefixFigures is what all prefixes together came across.
type PrefixFigures struct {
	mu                                              sync.Mutex
	logs, commits, cuts, cards, starts, ended, held int
	took                                            time.Duration
}

func (f *PrefixFigures) String() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return fmt.Sprintf("%d logs of %d commits, cut %d times in %s: %d cards, %d started after the cut, %d workers of the past booked, %d held for a person",
		f.logs, f.commits, f.cuts, f.took.Round(time.Millisecond), f.cards, f.starts, f.ended, f.held)
}

// CheckPrefixes cuts a log, which is whole, and drains what is left. It is
// exported for the runner of the scenarios, which is a package of its own.
func CheckPrefixes(t *testing.T, f *PrefixFigures, name string, uuid [16]byte, commits []eventlog.Commit) {
	cuts := prefixCuts(name, len(commits))
	began := time.Now()
	defer func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.logs, f.commits, f.took = f.logs+1, f.commits+len(commits), f.took+time.Since(began)
	}()
	for _, cut := range cuts {
		if s := drainPrefix(t, f, uuid, commits[:cut]); s.failure != "" {
			t.Errorf("%s: its log cut after commit %d of %d: %s\n  %s", name, cut, len(commits), s.failure,
				strings.Join(s.trace[max(0, len(s.trace)-60):], "\n  "))
			return
		}
	}
}

// prefixCuts are the lengths to cut at: the first, the last, and between them
// what the name of the scenario draws, so that a failure comes again.
func prefixCuts(name string, n int) []int {
	var cuts []int
	for i := range n {
		cuts = append(cuts, i+1)
	}
	sample := prefixSample
	if n > prefixLong {
		sample = prefixSampleLong
	}
	if *prefixAll || n <= sample {
		return cuts
	}
	h := fnv.New64a()
	h.Write([]byte(name))
	between := cuts[1 : n-1]
	r := rand.New(rand.NewPCG(h.Sum64(), 5))
	r.Shuffle(len(between), func(i, j int) { between[i], between[j] = between[j], between[i] })
	cuts = append([]int{1, n}, between[:sample-2]...)
	slices.Sort(cuts)
	return cuts
}

// prefixCard is what a cut must not lose.
type prefixCard struct {
	projection.Task
	body    string
	parents []string
	// begun: a dispatched run is open, and nobody has asked for its end.
	begun bool
	// gaveUps is how often a budget ran out; the death of a machine may be the last
	// straw of one.
	gaveUps int
}

// drainPrefix folds a prefix into a board of its own, verifies it, and lets
// fair ticks drain it.
func drainPrefix(t *testing.T, f *PrefixFigures, uuid [16]byte, commits []eventlog.Commit) (s *sim) {
	synctest.Test(t, func(t *testing.T) {
		s = prefixSim(uuid, commits)
		s.replay(commits)
		if s.failure != "" {
			return
		}
		before := s.prefixCards()
		workers := map[string]uint64{}
		for id, c := range before {
			workers[id] = c.Worker
		}
		claimed := s.audit.kinds[eventlog.KindClaimed]
		s.drain()
		if s.failure == "" {
			s.compare(before)
		}
		if s.failure == "" {
			s.verify()
		}
		for _, d := range s.dispatchers {
			s.kill(d)
		}
		synctest.Wait()

		f.mu.Lock()
		defer f.mu.Unlock()
		f.cuts++
		f.cards += len(before)
		f.starts += s.audit.kinds[eventlog.KindClaimed] - claimed
		for id, run := range workers {
			switch {
			case run == 0:
			case s.task(id).Worker == run:
				f.held++
			default:
				f.ended++
			}
		}
	})
	return s
}

// prefixSim is a machine on which nothing of the log's past is left: the same
// machine by its id, started anew.
func prefixSim(uuid [16]byte, commits []eventlog.Commit) *sim {
	s := &sim{
		r: rand.New(rand.NewPCG(uint64(len(commits)), 11)), fair: true, began: time.Now(),
		store: &projection.MemStore{Mem: eventlog.NewMem(uuid)}, app: &app{boardDir: "/board"},
		records: map[uint64]*proc.Record{}, forced: map[uint64]bool{}, audit: newSimAudit(), policy: defaults().policy,
	}
	s.m = &simMachine{s: s, procs: map[simPID]*simProc{}, ticks: 1000, first: map[string]int{"a": 1, "b": 900}}
	s.policy.MaxInProgress = 64
	// A scenario may have run with any limit. With one that is never reached, what
	// a lower one has parked goes on, so that more is drained.
	s.policy.Limits.FailureLimit = 1 << 20
	profile := func(name string) {
		if name != "" {
			s.policy.Profiles[name] = tick.Profile{Name: name, Command: []string{name}, OnCleanExit: projection.CleanViolation}
		}
	}
	last := eventlog.Time(0)
	for _, c := range commits {
		last = max(last, c.At)
		for _, e := range c.Events {
			switch d := e.Data.(type) {
			case *eventlog.Created:
				profile(d.Assignee)
			case *eventlog.Assigned:
				profile(d.Assignee)
			case *eventlog.ReviewRequested:
				profile(d.Reviewer)
			case *eventlog.Spawned:
				if s.m.machine == "" {
					s.m.machine = d.Machine
				}
			}
		}
	}
	s.offset = time.Duration(last-s.now())*time.Microsecond + time.Second
	return s
}

// replay appends the prefix as it was and folds it. The chain must come out the
// same, and the audit of the simulation goes over what real processes wrote.
func (s *sim) replay(commits []eventlog.Commit) {
	for _, c := range commits {
		got, err := s.store.Mem.Append(c.Number-1, eventlog.Commit{At: c.At, Actor: c.Actor, Events: c.Events})
		if err == nil && got.Hash != c.Hash {
			err = fmt.Errorf("its hash is %x, on disk it was %x", got.Hash, c.Hash)
		}
		if err == nil {
			err = projection.Fold(s.store.Mem, got)
		}
		if err != nil {
			s.fail("commit %d does not open: %v", c.Number, err)
			return
		}
		for i, e := range c.Events {
			run := c.RunOf(i)
			s.note("  %s/%d %s by %s: %s", e.Task, run, e.Kind(), c.Actor, describe(e.Data))
			s.audited(e, run, c.Actor)
		}
		if s.failure != "" {
			return
		}
	}
	s.note("here the log is cut")
	s.verify()
}

func (s *sim) verify() {
	if rep := s.store.Verify(); rep.Problem != "" {
		s.fail("verify: %s", rep.Problem)
	}
}

func (s *sim) prefixCards() map[string]prefixCard {
	cards, gaveUps := map[string]prefixCard{}, map[string]int{}
	_ = s.store.Mem.Read(1, func(c eventlog.Commit) error {
		for _, e := range c.Events {
			if e.Kind() == eventlog.KindGaveUp {
				gaveUps[e.Task]++
			}
		}
		return nil
	})
	_ = s.store.View(func(v projection.View) error {
		for _, id := range s.cards {
			t, err := v.Task(id)
			if err != nil || t == nil {
				s.fail("card %s cannot be read: %v", id, err)
				return nil
			}
			c := prefixCard{Task: *t, body: v.Body(id), parents: v.Parents(id), gaveUps: gaveUps[id]}
			if r, _ := v.Run(t.CurrentRun); r != nil {
				// Nobody but a pull worker takes a card that is for nobody.
				byTick := r.Origin == projection.OriginDispatch || r.Origin == projection.OriginWork && t.Starter() != ""
				c.begun = byTick && r.EndRequestedAt == 0 && (!r.HasWorker || strings.Contains(r.Fingerprint, "|"))
			}
			cards[id] = c
		}
		return nil
	})
	return cards
}

// drain lets fair ticks go on until every card rests. Time goes by faster and
// faster, since a card may wait for a day that is far away.
func (s *sim) drain() {
	// Somebody lets a paused board go on.
	if _, err := s.update("operator:ann", s.now(), projection.ResumeBoard(projection.Writer{})); err != nil {
		s.fail("resume: %v", err)
	}
	for round := range 200 {
		for range 2000 {
			if !s.turn() {
				break
			}
			synctest.Wait()
			if s.check(); s.failure != "" {
				return
			}
		}
		if s.failure != "" || s.drained() {
			return
		}
		switch {
		case round < 60:
			s.advance(61 * time.Second)
		case round < 100:
			s.advance(30 * time.Minute)
		case round < 140:
			s.advance(24 * time.Hour)
		default:
			s.advance(700 * 24 * time.Hour)
		}
		s.newTick("a")
		synctest.Wait()
	}
	for _, id := range s.cards {
		if t := s.task(id); !s.prefixRests(t) {
			s.fail("with fair ticks card %s is still %s (run %d, worker of %d, held until %s): %s", id, t.Status, t.CurrentRun, t.Worker, t.HoldUntil, s.why(t))
			return
		}
	}
}

func (s *sim) drained() bool {
	return !slices.ContainsFunc(s.cards, func(id string) bool { return !s.prefixRests(s.task(id)) })
}

// prefixRests tells whether only a person can let a card go on, or nobody has
// to. It is stricter than rests: on a machine that was started anew a run is
// held only if what its process was is not on record.
func (s *sim) prefixRests(t *projection.Task) bool {
	if t.Worker != 0 {
		return !strings.Contains(s.run(t.Worker).Fingerprint, "|")
	}
	switch t.Status {
	case projection.Done, projection.Archived, projection.Blocked, projection.Triage:
		return true
	case projection.Review:
		return t.Reviewer == ""
	case projection.Ready:
		return t.Assignee == ""
	case projection.Todo:
		var parents []string
		_ = s.store.View(func(v projection.View) error { parents = v.Parents(t.ID); return nil })
		return slices.ContainsFunc(parents, func(id string) bool {
			p := s.task(id)
			return p.Status != projection.Done && p.Status != projection.Archived && s.prefixRests(p)
		})
	}
	return false
}

// compare holds the drained board against the cut one: no card lost or made up,
// none run twice.
func (s *sim) compare(before map[string]prefixCard) {
	after := s.prefixCards()
	if len(after) != len(before) {
		s.fail("%d cards at the cut, %d after it", len(before), len(after))
	}
	starts := map[string]int{}
	cut := uint64(0)
	for _, c := range before {
		cut = max(cut, c.CreatedSeq, c.LastRun)
	}
	_ = s.store.Mem.Read(1, func(c eventlog.Commit) error {
		for i, e := range c.Events {
			if _, claimed := e.Data.(*eventlog.Claimed); claimed && c.Seq+uint64(i) > cut {
				starts[e.Task]++
			}
		}
		return nil
	})
	for id, was := range before {
		is := after[id]
		switch {
		case is.Title != was.Title || is.body != was.body || is.Key != was.Key || is.CreatedSeq != was.CreatedSeq || !slices.Equal(is.parents, was.parents):
			s.fail("card %s was %+v and is %+v", id, was, is)
		case starts[id] > 1:
			s.fail("card %s ran %d times after the cut, although its worker completes", id, starts[id])
		case was.Status == projection.Done && (is.Status != projection.Done || is.LastRun != was.LastRun):
			s.fail("card %s was done by run %d; it is %s, its last run %d", id, was.LastRun, is.Status, is.LastRun)
		case was.begun && is.Status != projection.Done && is.gaveUps == was.gaveUps:
			s.fail("card %s was running and is %s: %s", id, is.Status, is.BlockReason)
		case was.Status == projection.Ready && was.Worker == 0 && was.Assignee != "" && is.Status != projection.Done:
			s.fail("card %s was ready and is %s: %s", id, is.Status, is.BlockReason)
		}
	}
}
