package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"time"

	"kanlog/eventlog"
	"kanlog/proc"
	"kanlog/projection"
	"kanlog/tick"
)

// puller is a pull worker until it has a card.
type puller struct {
	a     *app
	o     workOptions
	actor string
	world *world
	// policy is what a tick on this board would go by.
	policy tick.Policy
	said   string // what it waits for
}

// pulled is a claimed card: this process is on record as its supervisor.
type pulled struct {
	tick.Launch
	world *world
	token string
	lock  *proc.RunLock
}

// notYet says that there is no card now, but that there may be one later.
type notYet struct {
	error
	why string // what is waited for
}

func (e *notYet) Unwrap() error { return e.error }

// work pulls one card and runs the command on it. It returns only if that could not
// be begun; else the supervisor that this process becomes ends it.
func (a *app) work(o workOptions) error {
	if own := os.Getenv("KANLOG_TASK"); own != "" {
		// See dispatch: what it started would be part of the worker's own tree.
		return &refusedError{fmt.Sprintf("work refused: this process is a worker of %s; what it started would be ended with it", own)}
	}
	ctx, stop := signal.NotifyContext(context.Background(), proc.EndSignals()...)
	defer stop()
	if o.id != "" {
		id, err := a.resolve(o.id)
		if err != nil {
			return err
		}
		o.id = id
	}
	p := &puller{a: a, o: o, actor: dispatcherActor()}
	w, err := p.pull(ctx)
	if err != nil {
		return err
	}
	return a.workOn(ctx, w)
}

// pull claims a card, and waits for one if it was told to: until the log moves or a
// moment comes at which time alone changes something.
func (p *puller) pull(ctx context.Context) (*pulled, error) {
	var hint *moved
	if p.o.wait {
		hint = p.a.watch()
		defer hint.stop()
	}
	var due time.Time
	var rest pace
	for {
		began, err := cpuTime(), error(nil)
		if !time.Now().Before(due) {
			if due, err = p.look(ctx); err != nil {
				return nil, err
			}
		}
		was := p.a.store.Stamp()
		w, next, err := p.try()
		var later *notYet
		if err == nil || !p.o.wait || !errors.As(err, &later) {
			return w, err
		}
		if later.why != p.said {
			p.said = later.why
			p.a.warn("waiting: %s", later.why)
		}
		if at := next.Std().Add(-p.a.offset()); next != 0 && at.Before(due) {
			due = at
		}
		if !sleep(ctx, rest.spent(cpuTime()-began, time.Now())) || !p.a.idle(ctx, hint.C, was, due, wakes{}) {
			return nil, &codedError{interrupted}
		}
	}
}

// look does what a tick does that starts nothing: a fleet of pull workers needs no
// dispatcher beside it. It says when to look again at the latest.
func (p *puller) look(ctx context.Context) (due time.Time, err error) {
	p.a.set = nil // the settings may be others since
	d, err := p.a.newDispatcher(p.actor)
	if err != nil {
		return due, err
	}
	p.world, p.policy = d.World.(*world), d.Policy
	rep, err := d.Tick(ctx, tick.Options{Max: 0})
	switch {
	case ctx.Err() != nil:
		return due, &codedError{interrupted}
	case err != nil:
		return due, err
	}
	for _, f := range rep.Errors {
		p.a.warn("run %d of %s: %s", f.Run, f.Task, f.Error)
	}
	if rep.SkippedLocked {
		return time.Now().Add(lookEvery), nil // that one may have read the board too early
	}
	return time.Now().Add(p.a.set.interval), nil
}

// try claims a card that could start now. next is when another one could by time
// alone.
func (p *puller) try() (w *pulled, next eventlog.Time, err error) {
	for tried := ""; ; {
		p.a.now = p.a.clock()
		card, next, err := p.choose()
		if err != nil {
			return nil, next, err
		}
		w, err := p.claim(card)
		switch {
		case err == nil || !errors.Is(err, projection.ErrState):
			return w, next, err
		case p.o.id != "" || card.ID == tried:
			return nil, next, &notYet{err, err.Error()}
		}
		tried = card.ID // any will do: one that somebody else has by now is passed over
	}
}

// choose picks the card.
func (p *puller) choose() (card *projection.Task, next eventlog.Time, err error) {
	err = p.a.view(func(v projection.View) (err error) {
		if next, err = tick.Next(v, p.policy, p.a.now); err != nil {
			return err
		}
		if p.o.id != "" {
			card, err = p.theOne(v)
			return err
		}
		if card, err = tick.Pull(v, p.o.assignee, p.a.now); err == nil && card == nil {
			err = p.none()
		}
		return err
	})
	return card, next, err
}

// theOne is the card that was named, if it could be claimed.
func (p *puller) theOne(v projection.View) (*projection.Task, error) {
	t, err := v.MustTask(p.o.id)
	if err != nil {
		return nil, err
	}
	// A review that waits for a person may be this one's.
	if t.Startable(p.a.now) || t.Status == projection.Review && t.Reviewer == "" && t.Owner() == 0 {
		return t, nil
	}
	if t.Over() {
		return nil, &refusedError{fmt.Sprintf("%s is %s; there is nothing to work on", t.ID, t.Status)}
	}
	why, err := v.Why(t, p.a.now, projection.Admission{Profiles: map[string]bool{t.Starter(): true}})
	if err != nil {
		return nil, err
	}
	if why == "" {
		why = fmt.Sprintf("run %d of it is open; kanlog show %s says whose", t.Owner(), t.ID)
	}
	return nil, &notYet{&refusedError{fmt.Sprintf("%s cannot be worked on now: %s", t.ID, why)}, t.ID + ": " + why}
}

// none says that there is no card, and which there could be.
func (p *puller) none() error {
	if p.o.assignee == "" {
		return &notYet{
			notFound("no such card: none that nobody is assigned to could start now (--assignee P takes those of P, --wait waits for one)"),
			"for a card that nobody is assigned to",
		}
	}
	return &notYet{
		notFound("no such card: none of %s could start now (kanlog list --assignee %s --why says what they wait for, --wait waits for one)", p.o.assignee, p.o.assignee),
		"for a card of " + p.o.assignee,
	}
}

// claim claims the card and registers this process as its supervisor, in one commit.
func (p *puller) claim(card *projection.Task) (*pulled, error) {
	profile := p.policy.Profiles[card.Starter()] // of one that no dispatch knows: nothing
	profile.Command, profile.OnCleanExit = p.o.command, p.o.cleanExit
	w := &pulled{world: p.world, Launch: tick.Launch{Task: card, Profile: profile}}
	who := projection.Writer{}
	res, err := p.a.update("work", who, projection.Work(projection.ClaimFor{
		Task: card.ID, Assignee: card.Starter(), Holder: userName(), Claimer: p.world.Claimer(),
		TTL: p.policy.Limits.ClaimTTL, OnCleanExit: p.o.cleanExit, Reviewer: profile.Reviewer, Limits: p.policy.Limits,
	}, w.register, who))
	if err != nil {
		w.release()
		return nil, err
	}
	w.Run = res.Commit.Seq
	return w, nil
}

// register takes the run's lock, as every supervisor does before it registers.
func (w *pulled) register(run uint64) (g projection.Registration, err error) {
	w.release() // of an earlier try in one call
	if err := w.world.makeRunDir(w.Task.ID); err != nil {
		return g, err
	}
	if w.lock, err = proc.TakeRunLock(w.world.a.files().output(w.Task.ID, run)); err != nil {
		return g, err
	}
	w.token = newToken(w.world.uuid, run)
	return projection.Registration{
		Worker: w.world.Claimer(), OutputInode: w.lock.Inode, Token: w.token, Workspace: w.world.a.workspaceOf(w.Task),
	}, nil
}

func (w *pulled) release() {
	if w.lock != nil {
		w.lock.Release()
		w.lock = nil
	}
}
