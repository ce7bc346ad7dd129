package main

import (
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"kanlog/proc"
	"kanlog/projection"
	"kanlog/tick"
)

// pull lets a person's pull worker reach for a card: one process in the session of
// some terminal takes the run lock, claims and registers in one commit, and has the
// run's token only once it has become the supervisor.
func (s *sim) pull(card, starter string) {
	p := s.m.add("a", nil, "supervisor")
	p.session = 1
	id := proc.IdentifyOn(simView{s.m, p})
	res, err := s.update("operator:ann", s.now(), projection.Work(projection.ClaimFor{
		Task: card, Holder: "ann", Assignee: starter, Claimer: processOf(id), TTL: s.policy.Limits.ClaimTTL,
		OnCleanExit: pick(s.r, projection.CleanViolation, projection.CleanComplete, projection.CleanReview),
		MaxRuntime:  20 * time.Minute, // stands for the card's own: a command may hang
		Limits:      s.policy.Limits,
	}, func(run uint64) (projection.Registration, error) {
		p.holds, p.card, p.run = "run/"+strconv.FormatUint(run, 10), card, run
		return projection.Registration{Worker: processOf(id), OutputInode: p.holds, Token: s.token(run), Workspace: "/ws"}, nil
	}, projection.Writer{}))
	if err != nil {
		s.note("ann: work %s: %v", card, err)
		p.holds, p.card, p.run = "", "", 0
		s.m.end(p)
		return
	}
	p.sv = &simSupervisor{
		s: s, p: p, l: tick.Launch{Task: s.task(card), Run: res.Commit.Seq}, guest: true, state: "claimed",
		word: make(chan tick.FirstWord, 1), gone: make(chan struct{}),
	}
	p.sv.hung = s.may(byStop, 30)
	s.note("ann works on %s in %s %d, run %d", card, p.ns, p.pid, p.run)
}

// A pull worker is SIGKILLed, and its number becomes that of a stranger's session
// whose first process has ended: the run is booked, the rest of the stranger is not
// signalled. (The simulation meets this seldom.)
func TestPullWorkersNumberIsNoSession(t *testing.T) {
	story(t, func(s *sim) {
		card := s.cards[0]
		s.pull(card, s.task(card).Assignee)
		r := s.run(s.task(card).CurrentRun)
		if r == nil || !r.HasWorker || r.Origin != projection.OriginWork {
			t.Fatalf("the run: %+v", r)
		}
		w := s.m.procs[simPID{"a", r.PID}]
		for w.sv.state != "running" {
			w.sv.step()
		}
		if w.sv.command.session == w.session || w.token == "" {
			t.Errorf("supervisor %+v, command %+v", w, w.sv.command)
		}
		s.m.ticks++
		command := w.sv.command
		w.killed = true
		s.m.end(w)
		if !command.ended {
			t.Error("its command lives on")
		}
		stranger := s.m.add("a", nil, "stranger")
		stranger.session = r.PID
		s.ticksUntil(func() bool { return !s.run(r.ID).Open() })
		if stranger.ended || s.run(r.ID).Outcome != projection.OutCrashed {
			t.Errorf("stranger %+v, run %+v", stranger, s.run(r.ID))
		}
	})
}

// A pull worker goes its way to the end beside ticks that look at it all the time,
// also before it has become the supervisor.
func TestPullWorkerBesideTicks(t *testing.T) {
	story(t, func(s *sim) {
		card := s.cards[0]
		s.pull(card, s.task(card).Assignee)
		run := s.task(card).CurrentRun
		w := s.m.procs[simPID{"a", s.run(run).PID}]
		s.ticksUntil(func() bool { return s.dispatchers[len(s.dispatchers)-1].over && len(s.dispatchers) > 2 })
		if r := s.run(run); !r.Open() || r.EndRequestedAt != 0 {
			t.Fatalf("a tick took it away: %+v", r)
		}
		for !w.ended {
			for _, p := range []*simProc{w, w.sv.command} {
				if p != nil && !p.ended {
					s.act(p)
				}
			}
			s.check()
			s.advance(time.Second)
		}
		if s.failure != "" || s.run(run).HasWorker {
			t.Errorf("%s; run %+v", s.failure, s.run(run))
		}
	})
}

// story is a history of one card in which nothing happens by itself.
func story(t *testing.T, tell func(s *sim)) {
	synctest.Test(t, func(t *testing.T) {
		s := newSim(1, allTrouble-1)
		s.policy.Profiles = map[string]tick.Profile{}
		s.newCard()
		tell(s)
		if s.failure != "" {
			t.Error(s.failure)
		}
		for _, d := range s.dispatchers {
			s.kill(d)
		}
		synctest.Wait()
	})
}

// ticksUntil lets one tick after another go by.
func (s *sim) ticksUntil(over func() bool) {
	for range 20 {
		s.newTick("a")
		for d := s.dispatchers[len(s.dispatchers)-1]; !d.over; {
			synctest.Wait()
			s.release()
			synctest.Wait()
		}
		s.check()
		if over() {
			return
		}
		s.advance(s.policy.KillGrace)
	}
	s.fail("not so after many ticks")
}
