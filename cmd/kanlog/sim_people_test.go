package main

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"strconv"
	"syscall"
	"time"

	"kanlog/eventlog"
	"kanlog/proc"
	"kanlog/projection"
	"kanlog/tick"
)

func runtimeGoexit() { runtime.Goexit() }

// simSupervisor is what proc.Supervise does, step by step.
type simSupervisor struct {
	s    *sim
	p    *simProc
	l    tick.Launch
	word chan tick.FirstWord
	gone chan struct{}

	state string
	// hung: it has stopped looking after its worker and hears no signal but KILL.
	hung       bool
	command    *simProc
	ended      bool // the command
	terminated bool // it was told to end before that
	ending     bool
	killAt     eventlog.Time
	rec        proc.Record
}

func (s *sim) token(run uint64) string { return startOf(s.store.Mem.UUID(), run) }

func (s *sim) newSupervisor(d *simDispatcher, l tick.Launch) *simSupervisor {
	p := s.m.add(d.proc.ns, d.proc, "supervisor")
	p.session, p.token, p.holds, p.run, p.card = p.pid, s.token(l.Run), "", l.Run, l.Task.ID
	sv := &simSupervisor{s: s, p: p, l: l, word: make(chan tick.FirstWord, 1), gone: make(chan struct{}), state: "born"}
	sv.hung = s.may(byStop, 30)
	p.sv = sv
	s.note("dispatch %d forks a supervisor %s %d for run %d", d.n, p.ns, p.pid, l.Run)
	return sv
}

func (sv *simSupervisor) record(cause string) proc.Record {
	return proc.Record{Task: sv.l.Task.ID, Run: sv.l.Run, Token: sv.s.token(sv.l.Run), Cause: cause}
}

// step is one step of a supervisor that is not stopped.
func (sv *simSupervisor) step() {
	s, p := sv.s, sv.p
	switch sv.state {
	case "born":
		p.holds = "run/" + strconv.FormatUint(sv.l.Run, 10)
		sv.state = "locked"
	case "locked":
		id := proc.IdentifyOn(simView{s.m, p})
		_, err := s.update(sv.actor(), s.now(), projection.Register(projection.Registration{
			Task: sv.l.Task.ID, Run: sv.l.Run, Worker: processOf(id), OutputInode: p.holds, Token: p.token, Workspace: "/ws",
		}))
		if err == nil {
			sv.word <- tick.FirstWord{State: tick.Registered}
			sv.state = "registered"
			return
		}
		if s.records[sv.l.Run] == nil {
			rec := sv.record(proc.CauseNeverStarted)
			rec.Error, rec.Infrastructure = err.Error(), !errors.Is(err, projection.ErrFenced)
			s.records[sv.l.Run] = &rec
		}
		sv.word <- tick.FirstWord{State: tick.Refused, Detail: err.Error()}
		s.note("supervisor of run %d is refused: %v", sv.l.Run, err)
		s.m.end(p)
	case "registered":
		switch {
		case p.term:
			sv.rec, sv.state = sv.record(proc.CauseTerminated), "recording"
		case s.may(byStore, 30):
			sv.rec, sv.state = sv.record(proc.CauseStartFailed), "recording"
			sv.rec.Error = "not found"
		default:
			sv.command = s.m.add(p.ns, p, "command")
			sv.command.work = s.newWork(s.run(sv.l.Run).Lane)
			s.note("run %d runs its command %s %d: %s", sv.l.Run, p.ns, sv.command.pid, sv.command.work)
			sv.state = "running"
		}
	case "running":
		if !sv.hung {
			sv.attend()
		}
	case "recording":
		rec := sv.rec
		s.records[sv.l.Run] = &rec
		sv.state = "booking"
	case "booking":
		_, err := s.update(sv.actor(), s.now(), projection.BookEnd(projection.Ending{
			Run: sv.l.Run, Record: exitRecord(sv.rec), Evidence: "its supervisor saw the whole tree end",
		}, s.policy.Limits))
		if err != nil {
			s.note("supervisor of run %d: %v", sv.l.Run, err)
		}
		s.m.end(p)
	}
}

func (sv *simSupervisor) actor() string {
	return fmt.Sprintf("supervisor:%s/%d", sv.l.Task.ID, sv.l.Run)
}

// attend is one round of waiting and ending.
func (sv *simSupervisor) attend() {
	s, p := sv.s, sv.p
	if sv.command.ended && !sv.ended {
		sv.ended = true
		sv.rec = sv.record(proc.CauseExited)
		if w := sv.command.work; sv.command.killed || w.signal != "" {
			sv.rec.Cause, sv.rec.Signal = proc.CauseSignaled, orDash(w.signal, "SIGKILL")
		} else {
			code := w.code
			sv.rec.ExitCode = &code
		}
	}
	left := 0
	for _, c := range s.m.sorted() {
		switch {
		case !s.m.under(c, p):
		case c.ended && c.parent == p:
			s.m.reap(c)
		default:
			left++
		}
	}
	if p.term {
		p.term = false
		sv.terminated = sv.terminated || !sv.ended
	}
	if sv.ended && left == 0 {
		if sv.terminated {
			sv.rec.Cause = proc.CauseTerminated
		}
		sv.state = "recording"
		return
	}
	switch {
	case (sv.ended || sv.terminated) && !sv.ending:
		sv.ending, sv.killAt = true, s.now().Add(s.policy.KillGrace)
		sv.tree(syscall.SIGTERM)
	case sv.ending && s.now() >= sv.killAt:
		sv.tree(syscall.SIGKILL)
	}
}

func (sv *simSupervisor) tree(sig syscall.Signal) {
	for _, c := range sv.s.m.sorted() {
		if sv.s.m.under(c, sv.p) {
			sv.s.m.deliver(c, sig)
		}
	}
}

// under tells whether a process is a descendant of another.
func (m *simMachine) under(p, top *simProc) bool {
	for q := p.parent; q != nil; q = q.parent {
		if q == top {
			return true
		}
	}
	return false
}

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
// once its supervisor was killed (docs: not promised).
func (s *sim) fork(p *simProc) {
	c := s.m.add(p.ns, p, "descendant")
	c.deaf = s.r.IntN(3) == 0
	c.life = pick(s.r, 1, 5, 30, -1)
	switch keep := s.r.IntN(4); {
	case keep == 0 && !s.second && !s.sessionGivenAway(p):
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
		verb: pick(s.r, "reclaim", "cancel", "unblock", "unblock", "unblock", "assign", "comment", "block", "complete", "claim", "archive", "force",
			"link", "link", "unlink", "promote", "reopen", "reopen", "edit", "put off", "approve", "changes", "review"),
		card: card, run: t.Owner(), of: t.ReviewedRun,
	})
}

func (s *sim) carryOut(want *simIntent) {
	me := projection.Writer{}
	var do projection.Decider
	switch want.verb {
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
