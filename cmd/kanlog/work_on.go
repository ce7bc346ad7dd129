package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"syscall"

	"kanlog/eventlog"
	"kanlog/proc"
	"kanlog/projection"
	"kanlog/tick"
)

// workOn prepares a claimed card and becomes its supervisor. It returns only if no
// command was started, which is booked then.
func (a *app) workOn(ctx context.Context, w *pulled) error {
	// From now on somebody waits for this process: a terminal that stops writers in
	// the background must not. The supervisor catches it, so the command does not
	// inherit that.
	signal.Ignore(syscall.SIGTTOU)
	a.warn("%s: run %d: %s", w.Task.ID, w.Run, w.Task.Title)
	a.fail.hit("work.claimed")
	p, err := w.world.prepare(w.Launch, func(fork func() error) error { return fork() })
	a.fail.hit("work.prepared")
	spec := w.world.spec(w.Launch, w.token, p)
	spec.Shown = &shown{Home: a.home, Slug: a.slug, JSON: a.asJSON}
	rec := proc.Record{Task: spec.Task, Run: spec.Run, Token: spec.Token, Cause: proc.CauseStartFailed}
	if err == nil && ctx.Err() == nil {
		err = w.become(spec, p, func() bool { return ctx.Err() != nil })
	}
	if ctx.Err() != nil {
		rec.Cause, err = proc.CauseTerminated, errors.New("told to end before the command was started")
	}
	rec.Error, rec.Infrastructure = err.Error(), errors.Is(err, tick.ErrInfrastructure)
	b := newSupervisedBoard(spec)
	held := new(tick.HeldError)
	isHeld := errors.As(err, &held)
	if isHeld {
		block := projection.Block(spec.Task, held.Reason, projection.NeedsInput, spec.Limits, projection.Writer{Card: spec.Task, Run: spec.Run})
		if err := b.update(block); err != nil {
			a.warn("%v", err)
		}
	}
	// Whoever cannot book leaves the record, and the next tick does.
	if err := errors.Join(proc.WriteRecord(spec.RecordPath, rec), b.Book(rec)); err != nil {
		a.warn("%v", err)
	}
	code := spec.Shown.ending(b)
	if isHeld {
		code = max(code, exitFailed) // blocked, but nothing was done
	}
	return &codedError{code}
}

func (w *pulled) become(spec superviseSpec, p prepared, told func() bool) error {
	text, err := json.Marshal(spec)
	if err != nil {
		return err
	}
	return hostRefused(proc.Become(proc.Handover{
		Args: []string{"kanlog", superviseVerb}, Env: supervisorEnv(w.world.environment(w.Launch, w.token, p)), Spec: text, Lock: w.lock, Told: told,
	}))
}

// shown is a pull worker's run for who looks on.
type shown struct {
	Home, Slug string
	JSON       bool
}

// output is where what the command writes is shown.
func (s *shown) output() io.Writer {
	if s.JSON {
		return os.Stderr
	}
	return os.Stdout
}

// answered are the outcomes after which work was done, whatever came of it.
var answered = []string{
	projection.OutCompleted, projection.OutBlocked, projection.OutFailed, projection.OutDeferred,
	projection.OutReviewRequested, projection.OutChangesRequested,
}

// ending says what became of the run, and is the exit code of work.
func (s *shown) ending(b *supervisedBoard) int {
	a := &app{
		home: s.Home, slug: s.Slug, asJSON: s.JSON, out: os.Stdout, errw: os.Stderr,
		store: b.store, boardDir: b.spec.BoardDir, now: eventlog.TimeOf(b.now()),
	}
	var form *runJSON
	words := ""
	code := exitFailed
	err := a.view(func(v projection.View) error {
		r, err := v.Run(b.spec.Run)
		if err != nil || r == nil {
			return err
		}
		form = a.newRunJSON(r)
		words = fmt.Sprintf("%s: run %d ended as %s", r.Task, r.ID, r.Outcome)
		if r.Open() {
			words = fmt.Sprintf("%s: the end of run %d is not booked yet; kanlog dispatch does that", r.Task, r.ID)
		}
		if what := form.what(); what != "" {
			words += ": " + what
		}
		if slices.Contains(answered, r.Outcome) {
			code = exitOK
		}
		t, err := v.MustTask(r.Task)
		if err != nil || t.Over() || r.Open() {
			return err
		}
		words += "; it is " + t.Status
		if t.Startable(a.now) {
			return nil
		}
		why, err := v.Why(t, a.now, projection.Admission{Profiles: map[string]bool{t.Starter(): true}})
		if why != "" {
			words += " (" + why + ")"
		}
		return err
	})
	switch {
	case err == nil && form == nil:
		err = fmt.Errorf("run %d of %s is not on the board", b.spec.Run, b.spec.Task)
	case err == nil && s.JSON:
		err = a.json(form)
	case err == nil:
		a.warn("%s", words)
	}
	if err != nil {
		a.warn("%v", err)
		return max(code, exitCode(err))
	}
	return code
}
