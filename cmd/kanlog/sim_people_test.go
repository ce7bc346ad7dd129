package main

import (
	"fmt"
	"runtime"
	"time"

	"kanlog/projection"
)

func runtimeGoexit() { runtime.Goexit() }

// killSomebody is SIGKILL out of the blue.
func (s *sim) killSomebody() {
	var able []*simProc
	for _, p := range s.m.sorted() {
		if !p.ended && p.kind != "stranger" {
			able = append(able, p)
		}
	}
	if len(able) == 0 {
		return
	}
	p := able[s.r.IntN(len(able))]
	s.note("SIGKILL to %s %s %d of run %d", p.kind, p.ns, p.pid, p.run)
	if p.kind == "dispatcher" {
		for _, d := range s.dispatchers {
			if d.proc == p {
				s.kill(d)
			}
		}
		return
	}
	p.killed = true
	s.m.end(p)
}

// stopSomebody is SIGSTOP, or SIGCONT to one who had it.
func (s *sim) stopSomebody() {
	all := s.m.sorted()
	if len(all) == 0 {
		return
	}
	p := all[s.r.IntN(len(all))]
	p.stopped = !p.stopped
	s.note("%s %s %d of run %d is stopped: %t", p.kind, p.ns, p.pid, p.run, p.stopped)
}

// reboot starts the machine anew, or only the second namespace.
func (s *sim) reboot() {
	everything := s.r.IntN(2) == 0
	for _, d := range s.dispatchers {
		if everything || d.proc.ns == "b" {
			s.kill(d)
		}
	}
	if everything {
		s.note("the machine is started anew")
		s.m.reboot()
		return
	}
	s.note("the second PID namespace is made anew")
	s.m.recreate()
}

// stranger is a process of somebody else that comes or goes, so that numbers
// are given away.
func (s *sim) stranger() {
	for _, p := range s.m.sorted() {
		if p.kind == "stranger" && s.r.IntN(2) == 0 {
			s.m.end(p)
			return
		}
	}
	p := s.m.add(pick(s.r, "a", "a", "b"), nil, "stranger")
	if s.r.IntN(2) == 0 {
		p.session = 1
	}
}

func (s *sim) draft() projection.Draft {
	s.made++
	d := projection.Draft{
		Title: fmt.Sprint("card ", s.made), Assignee: pick(s.r, "coder", "coder", "tool", "other"), WorkspaceKind: projection.Scratch,
		MaxRetries: pick[int64](s.r, 0, 0, 1, 3), Priority: s.r.Int64N(3),
	}
	d.ID[0], d.ID[1] = byte(s.made), byte(s.made>>8)
	if len(s.cards) > 0 && s.r.IntN(3) == 0 {
		d.Parents = []string{s.cards[s.r.IntN(len(s.cards))]}
	}
	return d
}

func (s *sim) newCard() {
	if _, err := s.update("operator:ann", s.now(), projection.Create(s.draft(), projection.Writer{})); err != nil {
		s.fail("create: %v", err)
	}
}

// simIntent is what an operator wants, by what was seen some time ago.
type simIntent struct {
	verb, card string
	run, of    uint64
	starter    string
}

// operate lets an operator look, or act on an earlier look.
func (s *sim) operate() {
	if n := len(s.intents); n > 0 && s.r.IntN(2) == 0 {
		i := s.r.IntN(n)
		want := s.intents[i]
		s.intents = append(s.intents[:i], s.intents[i+1:]...)
		s.carryOut(want)
		return
	}
	if len(s.cards) < 6 && s.r.IntN(6) == 0 {
		s.newCard()
		return
	}
	card := s.cards[s.r.IntN(len(s.cards))]
	t := s.task(card)
	s.intents = append(s.intents, &simIntent{
		verb: pick(s.r, "reclaim", "cancel", "unblock", "unblock", "unblock", "unblock", "unblock", "assign", "comment", "block", "complete", "claim", "archive", "force",
			"link", "link", "unlink", "promote", "reopen", "reopen", "edit", "put off", "approve", "changes", "review", "work", "work", "pause", "resume", "resume"),
		card: card, run: t.Owner(), of: t.ReviewedRun, starter: t.Starter(),
	})
}

func (s *sim) carryOut(want *simIntent) {
	me := projection.Writer{}
	var do projection.Decider
	switch want.verb {
	case "work":
		s.pull(want.card, want.starter)
		return
	case "reclaim":
		do = projection.Reclaim(want.card, want.run, "why not", "seen", false, me)
	case "force":
		if s.r.IntN(4) > 0 {
			return
		}
		do = projection.Reclaim(want.card, want.run, "why not", "seen", true, me)
	case "cancel":
		do = projection.Cancel(want.card, want.run, "enough", "seen", me)
	case "archive":
		if s.r.IntN(3) > 0 {
			return
		}
		do = projection.Archive(want.card, want.run, "", "seen", me)
	case "unblock":
		do = projection.Unblock(want.card, me)
	case "assign":
		do = projection.Assign(want.card, pick(s.r, "coder", "tool", "other"), me)
	case "comment":
		do = projection.AddComment(want.card, "ann", "hm", me)
	case "block":
		do = projection.Block(want.card, "wait", "", s.policy.Limits, me)
	case "link":
		do = projection.Link(s.cards[s.r.IntN(len(s.cards))], want.card, me)
	case "unlink":
		var parents []string
		_ = s.store.View(func(v projection.View) error { parents = v.Parents(want.card); return nil })
		do = projection.Unlink(pick(s.r, append(parents, "t_none")...), want.card, me)
	case "promote":
		do = projection.Promote(want.card, me)
	case "reopen":
		do = projection.Reopen(want.card, "wrong", me)
	case "edit":
		title, retries := fmt.Sprint("again ", s.r.IntN(9)), s.r.Int64N(4)
		do = projection.Edit(want.card, projection.Changes{Title: &title, MaxRetries: &retries}, s.policy.Limits, me)
	case "pause":
		do = projection.PauseBoard("hold on", me)
	case "resume":
		do = projection.ResumeBoard(me)
	case "put off":
		do = projection.Defer(want.card, 5*time.Minute, "", s.policy.Limits, me)
	case "approve":
		do = projection.Approve(want.card, projection.Answer{}, want.of, me)
	case "changes":
		do = projection.RequestChanges(want.card, "no", want.of, s.policy.Limits, me)
	case "review":
		do = projection.RequestReview(want.card, projection.Answer{}, pick(s.r, "", "other"), nil, me)
	case "complete":
		if s.r.IntN(3) > 0 {
			return
		}
		do = projection.Complete(want.card, projection.Answer{}, me)
	case "claim":
		do = projection.Claim(projection.ClaimFor{Task: want.card, Origin: projection.OriginManual, Holder: "ann", TTL: 10 * time.Minute}, me)
	}
	if _, err := s.update("operator:ann", s.now(), do); err != nil {
		s.note("ann: %s %s: %v", want.verb, want.card, err)
	}
}
