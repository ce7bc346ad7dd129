package main

import (
	"context"
	"errors"
	"fmt"

	"kanlog/eventlog"
	"kanlog/proc"
	"kanlog/projection"
	"kanlog/tick"
)

// simBoard is the board as one dispatcher sees it.
type simBoard struct{ d *simDispatcher }

var errKilled = errors.New("killed")

func (b simBoard) Update(actor string, now eventlog.Time, decide projection.Decider) (projection.Result, error) {
	s := b.d.s
	switch {
	case b.d.dead:
		return projection.Result{}, errKilled
	case s.may(byStore, 3):
		return projection.Result{}, eventlog.ErrBusy
	}
	res, err := s.update(actor, now, decide)
	if err == nil && s.may(byStore, 2) {
		// It is stored, but nobody can say so.
		return projection.Result{}, eventlog.ErrUnknownOutcome
	}
	return res, err
}

func (b simBoard) View(fn func(projection.View) error) error {
	return b.d.s.store.View(fn)
}

// simWorld is the machine as one dispatcher sees it: the real mapping of what the
// real prober finds.
type simWorld struct{ d *simDispatcher }

func (w simWorld) view() simView { return simView{w.d.s.m, w.d.proc} }

func (w simWorld) Look([]*projection.Run) tick.Look {
	w.d.yield("look")
	real := &world{a: w.d.s.app, uuid: w.d.s.store.Mem.UUID()}
	return &simLook{w.d, &look{w: real, prober: proc.NewProberOn(w.view())}}
}

type simLook struct {
	d    *simDispatcher
	look *look
}

func (l *simLook) Worker(r *projection.Run) tick.Evidence {
	l.d.yield("probe")
	e := l.look.Worker(r)
	l.d.s.note("dispatch %d finds run %d %s", l.d.n, r.ID, e)
	return e
}

func (l *simLook) Claimer(r *projection.Run) tick.Evidence {
	l.d.yield("probe claimer")
	return l.look.Claimer(r)
}

func (l *simLook) Signal(r *projection.Run, e tick.Evidence, sig tick.Signal) error {
	l.d.yield("signal")
	l.d.s.note("dispatch %d: %s run %d", l.d.n, sig, r.ID)
	l.d.s.signalling = r.ID
	defer func() { l.d.s.signalling = 0 }()
	return l.look.Signal(r, e, sig)
}

func (w simWorld) Record(r *projection.Run) (*projection.ExitRecord, error) {
	w.d.yield("record")
	rec := w.d.s.records[r.ID]
	if rec == nil {
		return nil, nil
	}
	return exitRecord(*rec), nil
}

func (w simWorld) Host(bool) (tick.Host, func(), error) { return tick.Host{}, func() {}, nil }

func (w simWorld) Claimer() eventlog.Process {
	w.d.yield("claim")
	return processOf(proc.IdentifyOn(w.view()))
}

func (w simWorld) Start(l tick.Launch, begin func(fork func() error) error) (tick.Started, error) {
	w.d.starts.Store(goroutine(), l.Run)
	w.d.starting.Store(true)
	w.d.yield("prepare")
	s := w.d.s
	late := s.r.IntN(2) == 0
	switch {
	case s.may(byStore, 20):
		return nil, errors.New("the workspace cannot be made")
	case s.may(byStore, 10):
		return nil, fmt.Errorf("%w: no room", tick.ErrInfrastructure)
	}
	var sv *simSupervisor
	err := begin(func() error {
		if w.d.dead {
			return errKilled
		}
		sv = s.newSupervisor(w.d, l)
		return nil
	})
	return simStarted{w.d, sv, late}, err
}

type simStarted struct {
	d  *simDispatcher
	sv *simSupervisor
	// late: what had come in by the deadline is not looked at any more.
	late bool
}

func (s simStarted) PID() int          { return s.sv.p.pid }
func (s simStarted) Workspace() string { return "/ws" }

func (s simStarted) Await(ctx context.Context) tick.FirstWord {
	var word *tick.FirstWord
	select {
	case w := <-s.sv.word:
		word = &w
	case <-s.sv.gone:
	case <-ctx.Done():
	case <-s.d.die:
	}
	// Several of these may hold by now. Which of them counts must not be the
	// choice of the select, or a seed would be several histories.
	if s.d.dead {
		runtimeGoexit()
	}
	if ctx.Err() != nil && s.late {
		return tick.FirstWord{State: tick.TimedOut}
	}
	if word == nil {
		select {
		case w := <-s.sv.word:
			word = &w
		default:
		}
	}
	if word != nil {
		return *word
	}
	select {
	case <-s.sv.gone:
		return tick.FirstWord{State: tick.Died, Detail: "killed"}
	default:
		return tick.FirstWord{State: tick.TimedOut}
	}
}
