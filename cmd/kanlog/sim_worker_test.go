package main

import (
	"fmt"
	"math/rand/v2"
	"time"

	"kanlog/projection"
)

// simWorker is what a command has in mind: what it does, one step each.
type simWorker struct {
	plan   []string
	onTerm string // what it does when told to end: die, fail, complete, exit 0, nothing
	code   int
	signal string
}

func (w *simWorker) String() string { return fmt.Sprintf("%v, on SIGTERM %s", w.plan, w.onTerm) }

func (s *sim) newWork(lane string) *simWorker {
	w := &simWorker{onTerm: pick(s.r, "die", "die", "die", "fail", "complete", "exit 0", "nothing")}
	for range s.r.IntN(5) {
		w.plan = append(w.plan, pick(s.r, "think", "think", "beat", "comment", "fork", "create"))
	}
	answers := []string{"complete", "complete", "complete", "review", "review", "fail", "defer", "block", "wait", "exit 1", "exit 0", "exit 75", "exit 78", "crash", "hang"}
	if lane == projection.LaneReview {
		answers = []string{"approve", "approve", "changes", "changes", "complete", "review", "fail", "block", "exit 1", "exit 0", "exit 75", "crash", "hang"}
	}
	if s.fair {
		w.plan, w.onTerm = []string{answers[0], "exit 0"}, "die"
		return w
	}
	w.plan = append(w.plan, pick(s.r, answers...))
	switch s.r.IntN(4) {
	case 0: // lives on after its answer
		w.plan = append(w.plan, "fork", "think", pick(s.r, "hang", "exit 0", "fail"))
	case 1:
		w.plan = append(w.plan, "exit 1")
	}
	w.plan = append(w.plan, "exit 0")
	return w
}

func pick[T any](r *rand.Rand, from ...T) T { return from[r.IntN(len(from))] }

// work is one step of a command.
func (s *sim) work(p *simProc) {
	w := p.work
	end := func(code int) {
		w.code = code
		s.m.end(p)
	}
	if p.term {
		p.term = false
		s.note("the worker of run %d is told to end: %s", p.run, w.onTerm)
		switch w.onTerm {
		case "die":
			w.signal = "SIGTERM"
			end(0)
			return
		case "fail":
			w.plan = []string{"fail", "exit 1"}
		case "complete":
			w.plan = []string{"complete", "exit 0"}
		case "exit 0":
			end(0)
			return
		}
	}
	if len(w.plan) == 0 {
		end(0)
		return
	}
	do := w.plan[0]
	if do != "hang" {
		w.plan = w.plan[1:]
	}
	me := projection.Writer{Card: p.card, Run: p.run}
	if !s.fair && s.r.IntN(50) == 0 {
		me.Run = 0 // a script that dropped its environment
	}
	actor := fmt.Sprintf("worker:%s/%d", me.Card, me.Run)
	say := func(d projection.Decider) {
		if _, err := s.update(actor, s.now(), d); err != nil {
			s.note("the worker of run %d: %s: %v", p.run, do, err)
		}
	}
	switch do {
	case "beat":
		say(projection.Beat(p.card, "", s.policy.Limits, me))
	case "comment":
		say(projection.AddComment(p.card, actor, "note", me))
	case "complete":
		say(projection.Complete(p.card, projection.Answer{Summary: "ok"}, me))
	case "fail":
		say(projection.Fail(p.card, "no", s.policy.Limits, me))
	case "defer":
		say(projection.Defer(p.card, time.Minute, "", s.policy.Limits, me))
	case "block":
		say(projection.Block(p.card, pick(s.r, "help", "help me"), pick(s.r, "", "", projection.Transient), s.policy.Limits, me))
	case "wait": // for a card of its own making, or another
		say(projection.Link(s.cards[s.r.IntN(len(s.cards))], p.card, me))
		say(projection.Block(p.card, "first that", projection.Dependency, s.policy.Limits, me))
	case "review":
		say(projection.RequestReview(p.card, projection.Answer{Summary: "look"}, pick(s.r, "", "tool", "other"), nil, me))
	case "approve":
		say(projection.Approve(p.card, projection.Answer{}, 0, me))
	case "changes":
		say(projection.RequestChanges(p.card, "not yet", 0, s.policy.Limits, me))
	case "create":
		if len(s.cards) < 8 {
			say(projection.Create(s.draft(), me))
		}
	case "fork":
		s.fork(p)
	case "crash":
		w.signal = "SIGSEGV"
		end(0)
	case "exit 0":
		end(0)
	case "exit 1":
		end(1)
	case "exit 75":
		end(75)
	case "exit 78":
		end(78)
	}
}

// fork makes a descendant that may leave the session, wipe its environment or
// close its output; not all three, since then nothing tells it from a stranger
// once its supervisor was killed (docs: not promised). Of a pull worker's run the
// session tells nothing: the command has one of its own, whose number nobody knows.
func (s *sim) fork(p *simProc) {
	c := s.m.add(p.ns, p, "descendant")
	c.deaf = s.r.IntN(3) == 0
	c.life = pick(s.r, 1, 5, 30, -1)
	switch keep := s.r.IntN(4); {
	case keep == 0 && !s.second && !s.sessionGivenAway(p) && s.run(p.run).Origin != projection.OriginWork:
		c.token, c.holds = "", ""
	case keep == 1 && !s.second:
		c.session, c.holds = c.pid, ""
	case keep < 3:
		c.session, c.token = c.pid, ""
	}
	s.note("run %d forks %s %d (session %d, token %t, lock %t, deaf %t)", c.run, c.ns, c.pid, c.session, c.token != "", c.holds != "", c.deaf)
}

// live lets one process that can do so act.
func (s *sim) live() {
	var able []*simProc
	for _, p := range s.m.sorted() {
		if p.stopped || p.ended {
			continue
		}
		switch p.kind {
		case "supervisor", "command", "descendant":
			able = append(able, p)
		}
	}
	if len(able) == 0 {
		s.release()
		return
	}
	s.act(able[s.r.IntN(len(able))])
}

func (s *sim) act(p *simProc) {
	switch p.kind {
	case "supervisor":
		p.sv.step()
	case "command":
		s.work(p)
	case "descendant":
		if p.life > 0 {
			if p.life--; p.life == 0 {
				s.m.end(p)
			}
		}
	}
}
