package main

import (
	"errors"
	"fmt"
	"strconv"
	"syscall"

	"kanlog/eventlog"
	"kanlog/proc"
	"kanlog/projection"
	"kanlog/tick"
)

// simSupervisor is what proc.Supervise does, step by step.
type simSupervisor struct {
	s    *sim
	p    *simProc
	l    tick.Launch
	word chan tick.FirstWord
	gone chan struct{}

	state string
	// guest: it is a pull worker in somebody's session, see pull.
	guest bool
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
	case "claimed":
		p.token = s.token(sv.l.Run)
		sv.state = "registered"
	case "registered":
		switch {
		case p.term:
			sv.rec, sv.state = sv.record(proc.CauseTerminated), "recording"
		case s.may(byStore, 30):
			sv.rec, sv.state = sv.record(proc.CauseStartFailed), "recording"
			sv.rec.Error = "not found"
		default:
			sv.command = s.m.add(p.ns, p, "command")
			if sv.guest {
				sv.command.session = sv.command.pid
			}
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
